"""The gaps of a project of documents, and the session that works on them."""

import re
from collections.abc import Collection, Iterable

from django.db.models import Exists, OuterRef, QuerySet

from disputes import alerts
from disputes.models import Conflict
from disputes.protocol.rounds.gaps import GapState, TaskFacts, gap_of
from disputes.protocol.text.identifiers import gaps_in
from tasks.adding import create_last, section_titled
from tasks.events import SYSTEM, Actor
from tasks.models import Project, Review, Submission, Task
from tasks.models.event import record
from tasks.models.submission import SubmissionQuerySet
from tasks.states import Severity, Status, severity_rank
from tasks.text.regex import regex

AREA = regex(r"[A-Z]{2,10}")
NO_AREA = "DOC"
NUMBER_MAX = 999
TITLE = "Rounds"


def session_of(project: Project) -> Task | None:
    """Return the newest session of the project, or None before its first round."""
    found: Task | None = project.tasks.filter(origin=Task.Origin.ROUNDS).order_by("-number").first()
    if found is not None:
        found.project = project
    return found


def by_code(project: Project) -> dict[str, Task]:
    """Return the project's gaps by their codes, in the order of their rank."""
    rows = project.tasks.gaps().exclude(gap="").order_by("rank")
    found = {gap.gap: gap for gap in rows}
    for gap in found.values():
        gap.project = project
    return found


def assigned(session: Task) -> list[Task]:
    """Return the gaps that the session's engineer is working on, gravest first."""
    given = session.project.tasks.gaps().filter(status=Status.IN_PROGRESS).exclude(gap="")
    return _gravest_first(given)


def under_review(session: Task) -> list[Task]:
    """Return the proposed gaps, and those that the document treats with a finding left unanswered."""
    last = session.last_submission()
    rows = session.project.tasks.gaps().filter(status=Status.REVIEW)
    if last is not None:
        treated = Submission.objects.standing().filter(at=last.at, kind="document")
        rows |= session.project.tasks.gaps().filter(
            status=Status.IN_PROGRESS, pk__in=treated.filter(task__project=session.project).values("task")
        )
    return _gravest_first(rows.exclude(gap=""))


def documents_of(gap: Task) -> SubmissionQuerySet:
    """Return what was proposed for the gap, newest first. In each session rounds are counted from one.

    Each has the time of the session's submission that it is a part of.
    """
    return gap.submissions.standing().filter(kind=Submission.Kind.DOCUMENT).order_by("-pk")


def _gravest_first(gaps: QuerySet[Task]) -> list[Task]:
    return sorted(gaps, key=lambda gap: (-severity_rank(gap.severity), gap.rank))


# --- The codes of gaps ------------------------------------------------------------------------------------


def name_gaps(project: Project) -> None:
    """Give each gap without a code the one in its title, if that is free, or else the next free code."""
    nameless = list(project.tasks.gaps().filter(gap="").select_related("section").order_by("rank"))
    if not nameless:
        return
    taken = set(project.tasks.exclude(gap="").values_list("gap", flat=True))
    for gap in nameless:
        named = [code for code in gaps_in(gap.title)[:1] if code not in taken]
        gap.gap = named[0] if named else free_code(area_of(gap.section.title), taken)
        taken.add(gap.gap)
        gap.save(update_fields=["gap"])


def area_of(words: str) -> str:
    """Return the middle part of a gap's code, such as SIGNIN for "Sign in"."""
    letters = re.sub(r"[^A-Z]", "", words.upper())[:10]
    return letters if AREA.fullmatch(letters) and words != "Tasks" else NO_AREA


def free_code(area: str, taken: Collection[str]) -> str:
    """Return the next free code of that area. Raises ValueError if all of them are used."""
    for number in range(1, NUMBER_MAX + 1):
        if (code := f"GAP-{area}-{number:03d}") not in taken:
            return code
    raise ValueError(f"All codes GAP-{area}-001 to {NUMBER_MAX} are used.")


# --- Creating gaps and sessions ---------------------------------------------------------------------------


def add_gap(
    session: Task, code: str, title: str, severity: str, *, parent: Task | None, note: str,
    actor: Actor = SYSTEM, body: str = "",
) -> Task:  # fmt: skip
    """Create a gap that came up in a round of the session. The caller holds the project's lock."""
    project = session.project
    gap = create_last(
        project, section=parent.section if parent else session.section, gap=code, parent=parent,
        title=f"{code}: {title}"[:300] if title else code, severity=severity, body=body,
    )  # fmt: skip
    record(
        project, "gap_found", actor=actor, task=gap, new=gap.status, note=note,
        data={"gap": code, "parent": parent.gap if parent else "", "round": session.round},
    )  # fmt: skip
    return gap


def begin(project: Project) -> Task:
    """Create a session for the project's gaps. The caller holds the project's lock."""
    before = project.tasks.filter(origin=Task.Origin.ROUNDS).count()
    number = f" ({before + 1})" if before else ""
    session = create_last(
        project, section=section_titled(project, TITLE), origin=Task.Origin.ROUNDS, body=project.brief,
        title=f"Rounds of {project.name}"[:280] + number, severity=Severity.HIGH.value,
    )  # fmt: skip
    record(project, "session_begun", task=session, new=session.status)
    return session


# --- The state of gaps ------------------------------------------------------------------------------------


def with_facts(gaps: QuerySet[Task]) -> QuerySet[Task]:
    """Annotate the gaps with what `state_of` needs to know, in one query."""
    verdicts = Review.objects.standing().filter(submission__task=OuterRef("pk")).order_by("-pk")
    help_asked = Conflict.objects.of(OuterRef("pk")).open().filter(kind=Conflict.Kind.HELP)
    last = Submission.objects.standing().filter(task=OuterRef("pk")).newest_first()
    return gaps.annotate(
        verdict=verdicts.values("verdict")[:1],
        needs_help=Exists(help_asked),
        has_children=Exists(Task.objects.filter(parent=OuterRef("pk"))),
        last_round=last.values("round")[:1],
    )


def state_of(gap: Task) -> GapState:
    """Return the state of a gap that was read through `with_facts`."""
    return gap_of(
        TaskFacts(
            Status(gap.status),
            rejected=gap.verdict == Review.Verdict.NEEDS_REVISION,  # type: ignore[attr-defined]
            landed=is_resolved(gap),
            shipped=gap.accepted_id is not None,
            needs_help=gap.needs_help,  # type: ignore[attr-defined]
            has_children=gap.has_children,  # type: ignore[attr-defined]
        )
    )


def is_resolved(task: Task) -> bool:
    """Whether the task is on the target branch, or was finished outside the loop."""
    return bool(task.landed_at or task.finished_by in {"hand", "import"})


def may_be_given(project: Project) -> Iterable[Task]:
    """Return the gaps that nobody is working on and nothing holds up, gravest first."""
    waiting = project.tasks.gaps().filter(status=Status.PENDING, waits_for=0, section__is_stopped=False)
    return _gravest_first(waiting.filter(alerts.in_focus(project)).exclude(gap=""))


def is_work_left(project: Project) -> bool:
    """Whether a gap is with the engineer, or may be given to it."""
    given = project.tasks.gaps().filter(status=Status.IN_PROGRESS).exclude(gap="")
    return given.exists() or any(may_be_given(project))
