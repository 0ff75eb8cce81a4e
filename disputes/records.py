"""dispute.md and decisions.md of a project, or of one dispute, written from its rows.

Each takes the same few queries, however many conflicts there are.
"""

import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from django.db.models import Prefetch, QuerySet

from disputes.models import NOT_STATED, Conflict, Decision, Dispute
from disputes.presenting import is_implicit, named
from disputes.protocol.rulings import records
from disputes.protocol.rulings.options import NOT_FOR_THE_CODER
from disputes.protocol.rulings.prompt_lines import action_for_coder
from disputes.rulings import ruling_of
from disputes.rulings.offers import heard
from tasks.models import Project

DISPUTE_FILE, DECISIONS_FILE = "dispute.md", "decisions.md"
# How many settled disputes are listed, newest first; the file says how many it leaves out.
SETTLED_MAX = 500
# Columns that may be large and that the records never show.
LEFT_OUT = (
    "submission__diff",
    "submission__specification",
    "submission__response",
    "finding__excerpt",
    "raised_as__excerpt",
)


def disputes_text(project: Project, dispute: Dispute | None = None) -> str:
    """Return dispute.md of the project, or of one of its disputes."""
    conflicts = _conflicts(project, dispute)
    opened = conflicts.open().order_by(
        "-dispute__severity_rank", "-dispute__blocks", "dispute__opened_at", "pk"
    )
    settled = conflicts.exclude(status=Conflict.Status.OPEN).order_by("-pk")
    entries = [_dispute_entry(conflict) for conflict in [*opened, *settled[:SETTLED_MAX]]]
    return records.dispute_record(entries, max(settled.count() - SETTLED_MAX, 0))


def decisions_text(project: Project, dispute: Dispute | None = None) -> str:
    """Return decisions.md of the project, or of one of its disputes: the rulings in force."""
    entries = [
        _decision_entry(conflict, ruling)
        for conflict in _conflicts(project, dispute).filter(status=Conflict.Status.DECIDED)
        for ruling in conflict.rulings  # type: ignore[attr-defined]
    ]
    return records.decisions_record(
        sorted(entries, key=lambda entry: (entry.task_ref, entry.round, entry.at))
    )


FILES: dict[str, Callable[..., str]] = {DISPUTE_FILE: disputes_text, DECISIONS_FILE: decisions_text}


def _conflicts(project: Project, dispute: Dispute | None) -> QuerySet[Conflict]:
    people = ("user", "policy_set_by")
    rulings = Decision.objects.standing().select_related(*people).order_by("pk")
    rulings = rulings.with_cited()
    rows = Conflict.objects.filter(dispute__project=project)
    if dispute is not None:
        rows = rows.filter(dispute=dispute)
    return (
        rows.select_related(
            "dispute__task__project", "dispute__project", "finding__gap", "raised_as", "submission"
        )
        .defer(*LEFT_OUT)
        .prefetch_related(Prefetch("decisions", queryset=rulings, to_attr="rulings"))
        .order_by("pk")
    )


def write_records(project: Project, folder: Path) -> list[Path]:
    """Write both files into the folder, and return their paths. Raises OSError.

    Each file is replaced as a whole, so that a reader sees either the old or the new one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in FILES.items():
        path = folder / name
        draft = folder / f".{name}.{os.getpid()}"
        draft.write_text(text(project), encoding="utf-8", newline="\n")
        draft.replace(path)
        written.append(path)
    return written


# --- dispute.md -------------------------------------------------------------------------------------------


def _dispute_entry(conflict: Conflict) -> records.DisputeEntry:
    dispute, submission = conflict.dispute, conflict.submission
    ruling = next(iter(conflict.rulings), None)  # type: ignore[attr-defined]
    ended = ruling.at if ruling else dispute.closed_at or conflict.opened_at
    return records.DisputeEntry(
        ref=f"{dispute.ref}, {conflict.ref}",
        status=_status(conflict),
        task_ref=_ref(conflict),
        task=dispute.task.title if dispute.task else dispute.project.name,
        question=conflict.question,
        reason=_reason(conflict),
        severity=conflict.severity,
        created=f"{conflict.opened_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        files=tuple(submission.diff_stat.get("since_base", [])) if submission else (),
        sides=tuple(_sides(conflict)),
        option=ruling.option if ruling else "",
        outcome=conflict.get_status_display(),
        resolved_on=f"{ended.astimezone(UTC):%Y-%m-%d}",
        ruling=ruling.text if ruling and ruling.text not in _positions(conflict) else "",
        notes=ruling.rationale if ruling else _minor_notes(conflict),
        citation=ruling.citation if ruling else "",
    )


def _status(conflict: Conflict) -> str:
    if conflict.is_open:
        return records.OPEN
    return records.MINOR if conflict.is_logged else records.RESOLVED


def _ref(conflict: Conflict) -> str:
    """Return the task's name, or the project's for a card about a whole project."""
    dispute = conflict.dispute
    return dispute.task.ref if dispute.task else dispute.project.slug


def _reason(conflict: Conflict) -> str:
    """Return the reason that was given, or else how the conflict came up."""
    if conflict.reason != Conflict.Reason.OTHER:
        return conflict.reason.replace("_", " ").capitalize()
    return conflict.get_origin_display()


def _positions(conflict: Conflict) -> set[str]:
    return {conflict.reviewer_position, conflict.coder_position}


def _minor_notes(conflict: Conflict) -> str:
    """Return what a minor dispute says, from whichever side spoke."""
    said = [text for text in (conflict.coder_position, conflict.reviewer_position) if text != NOT_STATED]
    return "\n\n".join(filter(None, said)) if conflict.is_logged else ""


def _sides(conflict: Conflict) -> Iterable[records.Statement]:
    if conflict.kind != Conflict.Kind.DISAGREEMENT:
        told = [heard(conflict.coder_position), *map(str, conflict.evidence)]
        yield records.Statement("What Happened", "", "\n".join(filter(None, told)) or conflict.question)
        if heard(conflict.reviewer_position):
            yield records.Statement("Reviewer Position", conflict.reviewer_label, conflict.reviewer_position)
        return
    yield records.Statement(
        "Coder Position", conflict.coder_label, heard(conflict.coder_position),
        conflict.coder_rationale, conflict.alternative,
    )  # fmt: skip
    yield records.Statement("Reviewer Position", conflict.reviewer_label, heard(conflict.reviewer_position))


# --- decisions.md -----------------------------------------------------------------------------------------


def _decision_entry(conflict: Conflict, ruling: Decision) -> records.DecisionEntry:
    ruling.conflict = conflict
    submission, task = conflict.submission, conflict.dispute.task
    return records.DecisionEntry(
        round=submission.round if submission else max(task.round, 1) if task else 1,
        code=conflict.name,
        title=conflict.question,
        conflict_type=_type(conflict),
        task_ref=_ref(conflict),
        about=conflict.subject_name,
        about_in_full=named(conflict),
        severity=conflict.severity,
        reviewer=heard(conflict.reviewer_position),
        coder=heard(conflict.coder_position),
        option=ruling.option,
        text=ruling.text,
        rationale=ruling.rationale,
        constraints=ruling.constraints_text,
        for_coder="Nothing." if ruling.option in NOT_FOR_THE_CODER else action_for_coder(ruling_of(ruling)),
        action=ruling.action,
        by=ruling.by,
        at=iso(ruling.at),
        state=conflict.get_followed_display(),
        citation=ruling.citation,
    )


def iso(at: datetime) -> str:
    """Return the time in ISO 8601 in UTC, to the second (TIME-1)."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _type(conflict: Conflict) -> str:
    if conflict.kind != Conflict.Kind.DISAGREEMENT:
        return f"{conflict.get_kind_display()}: {conflict.get_origin_display()}"
    if is_implicit(conflict):
        return "Implicit (converted)"
    return "Explicit DISAGREE" if conflict.origin == Conflict.Origin.DISAGREE else "Explicit"
