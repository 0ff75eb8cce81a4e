"""The filters of the queue, which its URL may contain."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import django_filters
from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.forms import SearchInput, Select, TextInput
from django.forms.utils import flatatt
from django.http import HttpRequest, QueryDict
from django.utils.functional import cached_property, lazy
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from disputes import searching, staleness
from disputes.models import Conflict, Dispute
from disputes.web.queue.listing import VisibleProjects
from tasks.access import RULE, PreparedForReaders, Reader, projects_for, who_may_enter
from tasks.database.clock import estimated_time
from tasks.filtering import SeverityFilter
from tasks.models import Project, Task

AGES = {
    "4h": ("4 hours", timedelta(hours=4)),
    "1d": ("a day", timedelta(days=1)),
    "3d": ("3 days", timedelta(days=3)),
    "7d": ("a week", timedelta(days=7)),
}
STALE = "stale"
PEOPLE_MAX = 200
ME, SOMEBODY, NOBODY = "me", "somebody", "nobody"
MORE = ("reason", "coder", "reviewer", "model", "age", "holder")  # the filters behind "More"


def _words(name: str, method: Any) -> django_filters.CharFilter:
    """Return a filter by a name that is typed; the page suggests the names that it shows."""
    look = TextInput(attrs={"list": f"{name}s", "autocomplete": "off", "placeholder": name.capitalize()})
    return django_filters.CharFilter(method=method, label=name.capitalize(), max_length=120, widget=look)


def _holds(**lookups: Any) -> Exists:
    """Return a filter for disputes that have a conflict which matches the lookups."""
    return Exists(Conflict.objects.filter(dispute=OuterRef("pk"), **lookups))


def _by(lookup: str) -> Callable[..., QuerySet[Dispute]]:
    """Return what filters disputes by one lookup of their conflicts."""
    return lambda disputes, name, value: disputes.filter(_holds(**{lookup: value}))


def _others_who_may_rule(reader: Reader) -> QuerySet[Any, Any]:
    users = get_user_model().objects.filter(
        who_may_enter(), memberships__project__in=projects_for(reader), memberships__role__in=RULE
    )
    rows = users.exclude(pk=reader.pk).distinct()
    return rows.values_list("username", "first_name", "last_name")[:PEOPLE_MAX]


_who_may_rule = PreparedForReaders(_others_who_may_rule)


class FlatSelect(Select):
    """A list of choices written in one go; with a template for each choice, they take a tenth of the page."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        widget = self.get_context(name, value, attrs)["widget"]
        options = (
            (option["value"], SafeString(" selected") if option["selected"] else "", option["label"])
            for _, group, _ in widget["optgroups"]
            for option in group
        )
        return format_html(
            '<select name="{}"{}>{}</select>', name, flatatt(widget["attrs"]),
            format_html_join("", '<option value="{}"{}>{}</option>', options),
        )  # fmt: skip


class QueueFilter(django_filters.FilterSet):
    """All filters of the queue. An invalid one is reported on the page and filters nothing."""

    q = django_filters.CharFilter(
        method="search",
        label="Search",
        max_length=200,
        widget=SearchInput(attrs={"placeholder": "Search questions and code"}),
    )
    project = django_filters.ChoiceFilter(
        field_name="project__slug", label="Project", empty_label="Project", choices=()
    )
    kind = django_filters.ChoiceFilter(
        method="of_kind", label="Kind", choices=Conflict.Kind.choices, empty_label="Kind"
    )
    severity = SeverityFilter(label="Severity", empty_label="Severity")
    reason = django_filters.ChoiceFilter(
        method=_by("reason"), label="Reason", choices=Conflict.Reason.choices, empty_label="Reason"
    )
    coder = _words("coder", _by("coder_label__iexact"))
    reviewer = _words("reviewer", _by("reviewer_label__iexact"))
    model = _words("model", "of_model")
    age = django_filters.ChoiceFilter(
        method="of_age", label="Older than", empty_label="Older than",
        choices=[*((value, label) for value, (label, _) in AGES.items()), (STALE, "its project’s limit")],
    )  # fmt: skip
    holder = django_filters.ChoiceFilter(
        method="of_holder", label="Held by", empty_label="Held by", choices=()
    )

    def __init__(self, data: QueryDict, queryset: QuerySet[Dispute], request: HttpRequest) -> None:
        super().__init__(data, queryset, request=request)
        self.reach = VisibleProjects(request)
        for each in self.filters.values():
            if isinstance(each, django_filters.ChoiceFilter):
                each.extra["widget"] = FlatSelect
        # What only the page shows is read when it does. A form copies its fields, but not functions.
        self.filters["project"].extra["choices"] = lambda: self._projects
        self.filters["coder"].label = lazy(self._coder_word, str)()
        self.filters["holder"].extra["choices"] = lambda: self._holders

    @cached_property
    def _projects(self) -> list[tuple[str, str]]:
        return [(project.slug, project.name) for project in self.reach.projects.values()]

    def _coder_word(self) -> str:
        asked, seen = self.data.get("project"), self.reach.projects.values()
        kinds = [project.kind for project in seen if asked in (project.slug, None, "")]
        return Project.coder_word_of(kinds).capitalize()

    @cached_property
    def _holders(self) -> list[tuple[str, str]]:
        """Return me, somebody, nobody, and everybody who may rule in a project that the person sees."""
        found = _who_may_rule.found(self.reach.user)
        others = {name: f"{first} {last}".strip() or name for name, first, last in found}
        people = [(f"@{name}", label) for name, label in sorted(others.items(), key=lambda each: each[1])]
        return [(ME, "Me"), (SOMEBODY, "Somebody"), (NOBODY, "Nobody"), *people]

    def asked(self) -> dict[str, str]:
        """Return what the URL asks for, by the filter's name."""
        return {name: self.data[name] for name in self.filters if self.data.get(name)}

    def search(self, disputes: QuerySet[Dispute], name: str, words: str) -> QuerySet[Dispute]:
        """Search in questions, titles, finding codes and paths, or by a name: D-7, C-9 or ledger-214."""
        asked = searching.holding(words)
        head, _, number = words.strip().rpartition("-")
        if head.upper() in {"C", "D"}:
            if number.isdecimal() and len(number) < 18:
                asked |= Q(pk=number) if head.upper() == "D" else Q(_holds(pk=number))
        else:
            asked |= Q(task__in=Task.objects.searched(words))
        return disputes.filter(asked)

    def of_kind(self, disputes: QuerySet[Dispute], name: str, kind: str) -> QuerySet[Dispute]:
        """Filter by the kind of any conflict, or of any open one if the dispute is open."""
        still = Q(status=Dispute.Status.OPEN) & Q(_holds(kind=kind, status=Conflict.Status.OPEN))
        return disputes.filter(still | (~Q(status=Dispute.Status.OPEN) & Q(_holds(kind=kind))))

    def of_model(self, disputes: QuerySet[Dispute], name: str, model: str) -> QuerySet[Dispute]:
        """Filter by the coder's or the reviewer's model."""
        either = Q(_holds(submission__by_model__iexact=model))
        return disputes.filter(either | Q(_holds(finding__review__by_model__iexact=model)))

    def of_age(self, disputes: QuerySet[Dispute], name: str, age: str) -> QuerySet[Dispute]:
        if age == STALE:
            return disputes.filter(staleness.stale())
        return disputes.filter(opened_at__lte=estimated_time() - AGES[age][1])

    def of_holder(self, disputes: QuerySet[Dispute], name: str, who: str) -> QuerySet[Dispute]:
        """Filter by who is assigned or is looking at the dispute at this moment."""
        claimed = Q(claimed_until__gt=estimated_time())
        if who == NOBODY:
            return disputes.filter(Q(assignee__isnull=True), Q(claimed_until__isnull=True) | ~claimed)
        if who == SOMEBODY:
            return disputes.filter(Q(assignee__isnull=False) | claimed)
        person = self.reach.user.get_username() if who == ME else who.removeprefix("@")
        return disputes.filter(Q(assignee__username=person) | (claimed & Q(claimed_by__username=person)))
