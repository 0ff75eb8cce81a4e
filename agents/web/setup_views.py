"""The set-up page of a project, its part that is renewed while something is tried, and its buttons."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from agents.web import setup
from agents.web.setup_forms import CommandsForm, RepositoryForm
from disputes.web.view_helpers import page, project_of, staff_only
from tasks import base
from tasks.access import MAINTAIN, is_superuser, may_set_commands, require_role, role_in
from tasks.configuration.changing import configure
from tasks.configuration.policy import SHELL_COMMANDS
from tasks.errors import Refused
from tasks.events import Actor
from tasks.locking import locked
from tasks.models import Project
from tasks.models.event import record


def _commands_form(request: HttpRequest, project: Project, data: Any = None) -> CommandsForm:
    return CommandsForm(project, data, may_set_commands=may_set_commands(request.user))


def _show(
    request: HttpRequest,
    project: Project,
    *,
    refused: Refused | None = None,
    commands: CommandsForm | None = None,
    repository: RepositoryForm | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page; after a refusal with its reason and with what was typed."""
    project.refresh_from_db()
    context = {
        "title": f"Set-up of {project.name}",
        "project": project,
        "page": setup.SetupPage(project, role_in(request, project.pk)),
        "form": commands or _commands_form(request, project),
        "repository": repository or RepositoryForm(project, may_move=is_superuser(request)),
        "refused": refused,
    }
    return page(request, "agents/setup.html", context, refused.status if refused else status)


@staff_only
@require_http_methods(["GET", "HEAD", "POST"])
def setup_page(request: HttpRequest, slug: str) -> HttpResponse:
    """What is known of the target branch and what was tried; sent, the commands are saved and tried."""
    project = project_of(request, slug)
    if request.method != "POST":
        return _show(request, project)
    form = _commands_form(request, project, request.POST)
    try:
        _save_commands(request, project, form)
    except Refused as refused:
        return _show(request, project, refused=refused, commands=form)
    if form.errors:
        return _show(request, project, commands=form, status=422)
    messages.success(request, f"Saved. {project.target_branch} is being tried with these commands.")
    return redirect("project-setup", slug)


def _save_commands(request: HttpRequest, project: Project, form: CommandsForm) -> None:
    """Raises Refused: no_right, changed. Where the form holds errors nothing is saved."""
    require_role(role_in(request, project.pk), project, MAINTAIN, "change the set-up")
    actor = Actor.person(request.user)
    with transaction.atomic():
        row = locked(Project.objects).get(pk=project.pk)
        if CommandsForm(row).shown != form.shown or form.is_stale:
            form.renew()
            now = "; ".join(f"{key.partition('_')[0]}: {form.now[key] or 'none'}" for key in SHELL_COMMANDS)
            raise Refused(
                "changed", f"Somebody changed the commands meanwhile. They are now {now}.",
                "What you typed is kept below; save once more to put it in their place.",
            )  # fmt: skip
        if not form.is_valid():
            return
        before = row.base_at
        configure(row, form.changes(), actor=actor)
        row.refresh_from_db()
        if row.base_at == before:  # the same commands as before, or other limits
            base.try_again(row, actor=actor)


@staff_only
@require_POST
def move(request: HttpRequest, slug: str) -> HttpResponse:
    """Save where the repository is, and look at it again."""
    project = project_of(request, slug)
    form = RepositoryForm(project_of(request, slug), request.POST, may_move=is_superuser(request))
    try:
        require_role(role_in(request, project.pk), project, MAINTAIN, "change the set-up")
    except Refused as refused:
        return _show(request, project, refused=refused, repository=form)
    if not form.is_valid():
        return _show(request, project, repository=form, status=422)
    actor = Actor.person(request.user)
    with transaction.atomic():
        form.instance.save(update_fields=form.changed_data)  # what somebody else changed meanwhile stays
        if form.changed_data:
            record(project, "project_edited", actor=actor, note=", ".join(form.changed_data))
        base.try_again(project, actor=actor)
    messages.success(request, "Saved. The repository is being looked at.")
    return redirect("project-setup", slug)


@never_cache
@require_safe
def progress(request: HttpRequest, slug: str) -> HttpResponse:
    """The part of the page that is renewed. Who was signed out meanwhile is sent to sign in again."""
    user = request.user
    if not (user.is_authenticated and user.is_active and user.is_staff):
        back = urlencode({"next": reverse("project-setup", args=[slug])})
        return HttpResponse(status=403, headers={"HX-Redirect": f"{reverse('admin:login')}?{back}"})
    project = project_of(request, slug)
    context = {
        "project": project, "page": setup.SetupPage(project, role_in(request, project.pk)),
        "form": _commands_form(request, project), "is_renewed": True,
    }  # fmt: skip
    return render(request, "agents/parts/setup_now.html", context)


@staff_only
@require_POST
def act(request: HttpRequest, slug: str, verb: str) -> HttpResponse:
    """Press one of the page's buttons."""
    project = project_of(request, slug)
    try:
        said = setup.carry_out(
            project, verb, user=request.user, role=role_in(request, project.pk),
            mark=request.POST.get("mark", "")[:80],
        )  # fmt: skip
    except Refused as refused:
        return _show(request, project, refused=refused)
    messages.success(request, said)
    return redirect("project-setup", slug)
