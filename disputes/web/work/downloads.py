"""Downloading the records: anybody who may read a project may have its dispute.md and decisions.md."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from disputes.models import Dispute
from disputes.records import FILES
from disputes.web.view_helpers import attached, project_of, staff_get
from tasks.access import projects_for

MARKDOWN = "text/markdown; charset=utf-8"


@staff_get
def of_project(request: HttpRequest, slug: str, file: str) -> HttpResponse:
    """Download the record of a whole project."""
    project = project_of(request, slug)
    return attached(HttpResponse(FILES[file](project), content_type=MARKDOWN), f"{project.slug}-{file}")


@staff_get
def of_dispute(request: HttpRequest, pk: int, file: str) -> HttpResponse:
    """Download the part of the record that is about one dispute."""
    visible = Dispute.objects.filter(project__in=projects_for(request.user))
    dispute = get_object_or_404(visible.select_related("project"), pk=pk)
    reply = HttpResponse(FILES[file](dispute.project, dispute), content_type=MARKDOWN)
    return attached(reply, f"{dispute.ref}-{file}")
