"""The set-up page of a project, its part that is refreshed during trials, and its buttons."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agents.web import setup
from agents.web.setup_forms import CommandsForm, RepositoryForm
from disputes.web.view_helpers import page, project_of, staff_form, staff_post
from tasks import base
from tasks.access import MAINTAIN, is_superuser, may_set_commands, require_role, role_in
from tasks.configuration.changing import configure
from tasks.configuration.policy import SHELL_COMMANDS
from tasks.database.locking import locked
from tasks.errors import Refused
from tasks.events import Actor
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
    """Show the page; after a refusal, with its reason and what was typed."""
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


@staff_form
def setup_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what is known of the target branch and what was tried; on POST, save the set-up and try it."""
    project = project_of(request, slug)
    if request.method != "POST":
        return _show(request, project)
    commands = _commands_form(request, project, request.POST)
    repository = RepositoryForm(project_of(request, slug), request.POST, may_move=is_superuser(request))
    try:
        is_saved = _save(request, project, commands, repository)
    except Refused as refused:
        return _show(request, project, refused=refused, commands=commands, repository=repository)
    if not is_saved:
        return _show(request, project, commands=commands, repository=repository, status=422)
    project.refresh_from_db()
    messages.success(request, f"Saved. {project.branch} is being tried with these commands.")
    return redirect("project-setup", slug)


def _save(request: HttpRequest, project: Project, commands: CommandsForm, repository: RepositoryForm) -> bool:
    """Save the commands and the repository and have them tried; return False if a form has errors.

    Raises Refused: no_right, changed.
    """
    require_role(role_in(request, project.pk), project, MAINTAIN, "change the set-up")
    actor = Actor.person(request.user)
    with transaction.atomic():
        row = locked(Project.objects).get(pk=project.pk)
        if CommandsForm(row).shown != commands.shown or commands.is_stale:
            commands.renew()
            now = "; ".join(
                f"{key.partition('_')[0]}: {commands.now[key] or 'none'}" for key in SHELL_COMMANDS
            )
            raise Refused(
                "changed", f"Somebody changed the commands meanwhile. They are now {now}.",
                "What you typed is kept below; save once more to put it in their place.",
            )  # fmt: skip
        if not all([commands.is_valid(), repository.is_valid()]):  # both, so that each shows what is wrong
            return False
        before, moved = row.base_at, repository.changed_data
        if moved:
            repository.instance.save(update_fields=moved)  # what somebody else changed meanwhile stays
            record(row, "project_edited", actor=actor, note=", ".join(moved))
        if commands.is_typed or not moved:  # an offer that nobody touched was found elsewhere
            configure(row, commands.changes(), actor=actor)
        row.refresh_from_db()
        if moved or row.base_at == before:  # the commands stayed the same, perhaps with other limits
            base.try_again(row, actor=actor)
    return True


@never_cache
@require_safe
def progress(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the part of the page that is refreshed; whoever was signed out is sent to sign in again."""
    user = request.user
    if not user.is_authenticated:
        back = urlencode({"next": reverse("project-setup", args=[slug])})
        return HttpResponse(status=403, headers={"HX-Redirect": f"{reverse('admin:login')}?{back}"})
    project = project_of(request, slug)
    context = {
        "project": project, "page": setup.SetupPage(project, role_in(request, project.pk)),
        "form": _commands_form(request, project), "is_renewed": True,
    }  # fmt: skip
    return render(request, "agents/parts/setup_now.html", context)


@staff_post
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
