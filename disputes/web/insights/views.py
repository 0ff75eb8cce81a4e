"""The insights on how the team rules, as a page and for download."""

import csv
from dataclasses import astuple, fields
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse

from disputes import tallies
from disputes.web import view_helpers
from disputes.web.insights import charts, summary
from disputes.web.view_helpers import attached, staff_get
from tasks.access import projects_for
from tasks.models import Project

DAYS = 30
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # the beginnings by which a spreadsheet recognises a formula


def _asked(request: HttpRequest) -> tuple[list[Project], list[Project], int]:
    """Return all projects of the person, those asked for, and the number of days. Raises Http404."""
    own = list(projects_for(request.user).order_by("name", "pk"))
    slug = request.GET.get("project", "")
    asked = [project for project in own if project.slug == slug] if slug else own
    if slug and not asked:
        raise Http404("There is no such project.")
    days = request.GET.get("days", "")
    return own, asked, int(days) if days in map(str, tallies.PERIODS) else DAYS


@staff_get
def page(request: HttpRequest) -> HttpResponse:
    """Show all figures with their charts and tables."""
    own, asked, days = _asked(request)
    report = summary.report(asked, days)
    points = report.points
    first, last = points[0].first, points[-1].last
    context: dict[str, Any] = {
        "title": "Insights",
        "report": report,
        "projects": own,
        "project": asked[0] if request.GET.get("project") else None,
        "days": days,
        "periods": tallies.PERIODS,
        "is_weekly": tallies.STEPS[days] > 1,
        "time_chart": charts.lines(
            [
                ("90 %", "is-tail", [point.waited.ninety for point in points]),
                ("median", "is-main", [point.waited.median for point in points]),
            ],
            first=f"{first:%-d %b}", last=f"{last:%-d %b}",
        ),
        "flow_chart": charts.bars(
            [
                ("is-tail", [point.opened for point in points]),
                ("is-main", [point.waited.n for point in points]),
            ],
            first=f"{first:%-d %b}", last=f"{last:%-d %b}",
        ),
    }  # fmt: skip
    return view_helpers.page(request, "disputes/insights.html", context)


@staff_get
def as_json(request: HttpRequest) -> HttpResponse:
    """Return the same figures for programs."""
    _, asked, days = _asked(request)
    reply = JsonResponse(summary.as_json(summary.report(asked, days), asked), json_dumps_params={"indent": 2})
    return attached(reply, f"insights-{days}-days.json")


@staff_get
def as_csv(request: HttpRequest) -> HttpResponse:
    """Return the same figures for spreadsheets, one per row."""
    _, asked, days = _asked(request)
    reply = HttpResponse(content_type="text/csv; charset=utf-8")
    writer = csv.writer(reply)
    writer.writerow([each.name for each in fields(summary.Figure)])
    for figure in summary.listed(summary.report(asked, days)):
        writer.writerow([harmless(cell) for cell in astuple(figure)])
    return attached(reply, f"insights-{days}-days.csv")


def harmless(cell: Any) -> Any:
    """Return the cell so that no spreadsheet takes it for a formula, because names come from agents."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell
