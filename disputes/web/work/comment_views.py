"""The views for commenting on a task or a project and for settling a thread."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from disputes.models import Dispute
from disputes.opening import live_dispute
from disputes.web.view_helpers import next_url, project_of, refusal_page, staff_post, task_of
from tasks.access import RULE, projects_for, require
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Comment, Project, Task
from tasks.remarks.comments import add_comment, settle
from tasks.text.numbers import whole_number


@staff_post
def on_task(request: HttpRequest, ref: str) -> HttpResponse:
    """Comment on a task; the event names the task's dispute, if there is one."""
    task = task_of(request, ref)
    return _say(request, task.project, task, live_dispute(task))


@staff_post
def on_project(request: HttpRequest, slug: str) -> HttpResponse:
    """Comment on a whole project."""
    project = project_of(request, slug)
    dispute = Dispute.objects.live().filter(project=project, task__isnull=True).first()
    return _say(request, project, None, dispute)


def _say(request: HttpRequest, project: Project, task: Task | None, dispute: Dispute | None) -> HttpResponse:
    require(request.user, project, RULE, "comment")
    body = request.POST.get("body", "").replace("\r\n", "\n")
    beside = dispute.ref if dispute else ""
    try:
        parent = _parent(request, project, task)
        made = add_comment(
            project, body, actor=Actor.person(request.user), task=task, parent=parent, dispute=beside
        )
    except Refused as error:
        return refusal_page(request, "Comment not added", error, texts=body, back=_back(request, dispute))
    messages.success(request, "Your reply was added." if parent else "Your comment was added.")
    return redirect(f"{_back(request, dispute)}#comment-{made.pk}")


def _parent(request: HttpRequest, project: Project, task: Task | None) -> Comment | None:
    """Return the comment that is answered, on the same task, or None. Raises Refused("not_found")."""
    named = request.POST.get("parent", "")
    if not named:
        return None
    found = project.comments.filter(pk=whole_number(named), task=task).first()
    if found is None:
        raise Refused("not_found", "The comment that you answer is gone.", "Say it on its own.", status=404)
    return found


def _back(request: HttpRequest, dispute: Dispute | None) -> str:
    return next_url(request, reverse("dispute", args=[dispute.pk]) if dispute else reverse("queue"))


@staff_post
def resolve(request: HttpRequest, pk: int) -> HttpResponse:
    """Settle a thread, or open it again."""
    visible = Comment.objects.filter(project__in=projects_for(request.user))
    comment = get_object_or_404(visible.select_related("project", "task"), pk=pk)
    require(request.user, comment.project, RULE, "comment")
    resolved = request.POST.get("resolved") != "no"
    try:
        settle(comment, actor=Actor.person(request.user), resolved=resolved)
        messages.success(request, "The thread is resolved." if resolved else "The thread is open again.")
    except Refused as error:
        messages.info(request, error.message)
    dispute = live_dispute(comment.task) if comment.task else None
    return redirect(f"{_back(request, dispute)}#comment-{pk}")
