"""dispute.md and decisions.md: what is in dispute and what was decided, in the designs' words.

Values go in, Markdown comes out. Every text of an agent or a person is bounded and either on one line or
quoted, so that nothing in it becomes a heading, a label or a tag of the record.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from disputes.protocol.rulings.options import ROWS, Option
from disputes.protocol.text.quotes import as_heading, inert, one_line, quoted
from tasks.text.counting import counted

POSITION_MAX = 8_000
RULING_MAX = 20_000  # as long as a person's text may be
LINE_MAX = 300
FILES_MAX = 20
OPEN, RESOLVED, MINOR = "open", "resolved", "minor"
AWAITING = "AWAITING HUMAN DECISION"
NOBODY = "none"

# What the ruling did to the task, by `Decision.action`.
WHAT_CAME: dict[str, str] = {
    "revise": "{task} goes back to the coder.",
    "review": "{task} is reviewed, then it may be completed.",
    "accept": "{task} is completed; its commit may land.",
    "advance": "{task} goes on to its next stage.",
    "wait": "{task} stays where it is.",
    "retry": "{task} is started again.",
    "defer": "{task} is deferred until somebody resumes it.",
    "cancel": "{task} is cancelled.",
    "hold": "{task} is held until the conflict that came of it is ruled.",
    "apply": "It was carried out at once.",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """What one side says: `title` heads it and `who` said it; `rationale` and `alternative` may be empty."""

    title: str
    who: str
    position: str
    rationale: str = ""
    alternative: str = ""


@dataclass(frozen=True, slots=True)
class DisputeEntry:
    """One conflict as dispute.md lists it. Times are texts: `created` to the minute, `resolved_on` a day."""

    ref: str
    status: str  # OPEN, RESOLVED or MINOR
    task_ref: str
    task: str
    question: str
    reason: str
    severity: str
    created: str
    files: tuple[str, ...] = ()
    sides: tuple[Statement, ...] = ()
    option: str = ""
    outcome: str = ""  # what became of it if no option was ruled: "moot"
    resolved_on: str = ""
    ruling: str = ""
    notes: str = ""
    citation: str = ""


@dataclass(frozen=True, slots=True)
class DecisionEntry:
    """One standing decision as decisions.md lists it. `at` is ISO 8601 in UTC."""

    round: int
    code: str  # the finding's code, or "Task ledger-214"
    title: str
    conflict_type: str
    task_ref: str
    about: str  # the gap's code, or the task's name
    about_in_full: str  # with its title
    severity: str
    reviewer: str
    coder: str
    option: str
    text: str
    rationale: str
    constraints: str
    for_coder: str
    action: str
    by: str
    at: str
    state: str = ""
    citation: str = ""


# --- dispute.md -------------------------------------------------------------------------------------------


def dispute_record(entries: Sequence[DisputeEntry], left_out: int = 0) -> str:
    """Return dispute.md: first open disputes, then resolved ones, then minor ones, which wait for nobody.

    `left_out` is how many older resolved ones are not listed.
    """
    listed = [entry for status in (OPEN, RESOLVED) for entry in entries if entry.status == status]
    lines = ["# Active Disputes", ""]
    for entry in listed:
        lines += [*(_open(entry) if entry.status == OPEN else _resolved(entry)), "", "---", ""]
    if not listed:
        lines += ["None.", ""]
    if left_out:
        lines += [f"Settled and not listed here: {counted(left_out, 'older dispute')}.", ""]
    if minor := [entry for entry in entries if entry.status == MINOR]:
        lines += ["# Minor Disputes", "", "Logged; nothing waits for them. The coder's version stands.", ""]
        for entry in minor:
            lines += [*_resolved(entry), ""]
    return "\n".join(lines)


def _line(label: str, text: str) -> str:
    return f"**{label}:** {inert(one_line(text, LINE_MAX))}".rstrip()


def _open(entry: DisputeEntry) -> list[str]:
    shown = entry.files[:FILES_MAX]
    more = len(entry.files) - len(shown)
    files = ", ".join(one_line(path, LINE_MAX) for path in shown) or NOBODY
    lines = [
        f"## Dispute: {entry.ref} (OPEN)",
        "",
        _line("Task", f"{entry.task} ({entry.task_ref})"),
        _line("Question", entry.question),
        _line("Reason", entry.reason),
        _line("Severity", entry.severity.upper()),
        _line("Created", entry.created),
        f"**Files:** {inert(files)}{f' and {more} more' if more else ''}",
    ]
    for side in entry.sides:
        lines += ["", *_side(side)]
    return [*lines, "", "### Status", "", AWAITING]


def _side(side: Statement) -> list[str]:
    who = f" ({inert(as_heading(one_line(side.who, LINE_MAX)))})" if side.who else ""
    lines = [f"### {side.title}{who}", "", *(_quote(side.position) or ["Not stated."])]
    for label, text in (("Rationale", side.rationale), ("Alternative", side.alternative)):
        if text.strip():
            lines += ["", f"**{label}:**", "", *_quote(text)]
    return lines


def _quote(text: str, limit: int = POSITION_MAX) -> list[str]:
    return [inert(line) for line in quoted(text, limit)]


def _resolved(entry: DisputeEntry) -> list[str]:
    word = "LOGGED" if entry.status == MINOR else "RESOLVED"
    lines = [
        f"## Dispute: {entry.ref} ({word})",
        "",
        _line("Task", f"{entry.task} ({entry.task_ref})"),
        _line("Question", entry.question),
    ]
    if entry.status == MINOR:
        lines += [_line("Created", entry.created)]
    else:
        ruled = (ROWS[Option(entry.option)].word or entry.option) if entry.option else entry.outcome
        lines += [_line("Resolution", f"{ruled.replace('_', ' ').upper()} ({entry.resolved_on})")]
    lines += _item("Ruling", entry.ruling, bullet="")
    lines += _item("Notes", entry.notes, bullet="")
    return [*lines, *([_line("Precedent", entry.citation)] if entry.citation else [])]


# --- decisions.md -----------------------------------------------------------------------------------------


def decisions_record(entries: Iterable[DecisionEntry]) -> str:
    """Return decisions.md: the standing decisions by task and round (DEC-11).

    `decision_files.read_decisions` reads it back.
    """
    lines = ["# Decisions", ""]
    for (task, number), group in groupby(entries, key=lambda entry: (entry.task_ref, entry.round)):
        lines += [f"## Round {number} Conflict Resolutions ({task})", ""]
        for entry in group:
            lines += [*_decision(entry), ""]
    return "\n".join(lines if len(lines) > 2 else [*lines, "None.", ""])


def _decision(entry: DecisionEntry) -> list[str]:
    return [
        f"### {entry.code}: {inert(as_heading(one_line(entry.title, LINE_MAX)))}",
        "",
        _line("Conflict Type", entry.conflict_type),
        _line("Gap Affected", entry.about_in_full),
        _line("Severity", entry.severity.upper()),
        "",
        "**Positions:**",
        f"- Reviewer: {_summary(entry.reviewer)}",
        f"- Engineer: {_summary(entry.coder)}",
        "",
        "**Resolution:**",
        f"- **Chosen Option:** {chosen(entry.option)}",
        *_item("Decision", entry.text),
        *_item("Rationale", entry.rationale),
        *_item("Constraints", entry.constraints or "None"),
        *_item("Precedent", entry.citation),
        "",
        "**Action Required:**",
        f"- For Engineer: {_summary(entry.for_coder)}",
        f"- For Gap: {what_came(entry.action, entry.about)}",
        "",
        _line("Decided By", entry.by),
        _line("Timestamp", entry.at),
        *([_line("State", entry.state)] if entry.state else []),
    ]


def what_came(action: str, task: str) -> str:
    """Return in one sentence what a ruling did to the task."""
    return WHAT_CAME.get(action, WHAT_CAME["wait"]).format(task=task)


def chosen(option: str) -> str:
    """Return `C (Synthesis)`; for a choice without a side, its name."""
    row = ROWS[Option(option)]
    return f"{row.letter} ({row.side})" if row.side else option.replace("_", " ").capitalize()


def _summary(text: str) -> str:
    return inert(one_line(text, LINE_MAX)) or "not stated"


def _item(label: str, text: str, bullet: str = "- ") -> list[str]:
    """Return a labelled text, after its label or, if it has several lines, quoted below."""
    if not text.strip():
        return []
    lines = _quote(text, RULING_MAX)
    if len(lines) == 1:
        return [f"{bullet}**{label}:** {inert(one_line(text, RULING_MAX))}"]
    indent = " " * len(bullet)
    return [f"{bullet}**{label}:**", "", *(f"{indent}{line}" for line in lines), ""]
