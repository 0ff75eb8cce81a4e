"""What the pages of a session show; every figure is counted from rows, nothing is stored for the page."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Count, Q
from django.utils.functional import cached_property

from agents.crew import refusals
from agents.models import Run
from disputes.completion import checkpoints
from disputes.models import Conflict
from disputes.protocol.rounds import retries
from disputes.protocol.rounds.gaps import (
    GapChange,
    GapState,
    RoundCount,
    count_round,
    is_worrying,
    open_count,
)
from disputes.protocol.rounds.retries import Attempt, Logged
from disputes.protocol.rounds.validation import Validation, provider_failed
from disputes.protocol.text.documents import DocumentError, scan
from disputes.sessions import gaps, turns
from disputes.web.dispute.code import Diff, coloured, parse_diff
from disputes.web.insights import charts
from tasks.models import Checkpoint, Event, Finding, Project, Review, Rollback, Submission, Task
from tasks.states import Severity
from tasks.text.counting import counted

VERDICTS = ("accepted", "sent_back", "left")
WHOLE_MAX = 18_000  # characters of one part of a document


# --- The gaps -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GapRow:
    """A gap in its place among the others: below the gap it came up in."""

    gap: Task
    state: GapState
    depth: int
    rounds: tuple[int, ...]  # the rounds in which something was proposed for it
    findings: int

    @property
    def words(self) -> str:
        """Its title without the code that is shown next to it."""
        return self.gap.title.removeprefix(self.gap.gap).lstrip(": ") or self.gap.title

    @property
    def word(self) -> str:
        return self.state.replace("_", " ").lower()


def gap_rows(project: Project) -> list[GapRow]:
    """Return all gaps, each below its parent, in a constant number of queries."""
    rows = list(gaps.with_facts(project.tasks.gaps()).order_by("rank"))
    proposed: dict[int, list[int]] = defaultdict(list)
    documents = Submission.objects.standing().filter(task__in=rows, kind=Submission.Kind.DOCUMENT)
    for task, round_ in documents.order_by("round").values_list("task", "round").distinct():
        proposed[task].append(round_)
    raised = Finding.objects.standing().filter(gap__in=rows, is_withdrawn=False, first=None).order_by()
    counts = dict(raised.values_list("gap").annotate(n=Count("pk")))
    children: dict[int | None, list[Task]] = defaultdict(list)
    known = {row.pk for row in rows}
    for row in rows:
        row.project = project
        children[row.parent_id if row.parent_id in known else None].append(row)

    def below(parent: int | None, depth: int) -> Iterator[GapRow]:
        for row in children[parent]:
            found = tuple(dict.fromkeys(proposed[row.pk]))
            yield GapRow(row, gaps.state_of(row), depth, found, counts.get(row.pk, 0))
            yield from below(row.pk, min(depth + 1, 4))

    return list(below(None, 0))


# --- The rounds ---------------------------------------------------------------------------------------------


@dataclass
class RoundRow:
    """One round, either standing or taken back."""

    number: int
    submissions: list[Submission] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    taken_back: Rollback | None = None
    said: dict[str, Any] = field(default_factory=dict)  # data of the event of its documents
    judged: dict[str, list[str]] = field(default_factory=dict)  # what its reviews said, by gaps
    is_final: bool = False
    count: RoundCount | None = None
    log: list[Logged] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)

    @property
    def is_partly_done(self) -> bool:
        """Whether its document leaves out gaps, so that it goes on with what there is (PART-4)."""
        said = self.said
        return bool(said) and (not said["addressed"] or bool(said["missing"] or said["blocked"]))

    @property
    def retries(self) -> int:
        """How many runs of the coder were repeated because of their document."""
        attempts = [line.attempt for line in self.log if line.role == Run.Role.CODER]
        return max([1, *attempts]) - 1

    @property
    def findings(self) -> list[tuple[str, int]]:
        """The number of findings that its reviews raised, for each severity."""
        found = [finding.severity for review in self.reviews for finding in review.findings.all()]
        return [(severity, found.count(severity)) for severity in Severity if severity in found]


class SessionPage:
    """A session of a project as its pages show it, in a constant number of queries."""

    def __init__(self, project: Project, number: int | None = None) -> None:
        """Take the session with that number, or the newest. Raises Task.DoesNotExist."""
        self.project = project
        self.sessions = list(project.tasks.filter(origin=Task.Origin.ROUNDS).order_by("-number"))
        for session in self.sessions:
            session.project = project
        wanted = [each for each in self.sessions if number is None or each.number == number]
        if number is not None and not wanted:
            raise Task.DoesNotExist
        self.session = wanted[0] if wanted else None

    @property
    def others(self) -> list[Task]:
        """The other sessions, newest first."""
        return [each for each in self.sessions if each != self.session]

    @property
    def query(self) -> str:
        """What an address needs to name the session, if it is not the newest."""
        is_newest = self.session is None or self.session == self.sessions[0]
        return "" if is_newest else f"?session={self.session.number}"  # type: ignore[union-attr]

    @cached_property
    def gaps(self) -> list[GapRow]:
        return gap_rows(self.project)

    @property
    def open_count(self) -> float:
        """The number of open gaps; parked ones count in part."""
        return open_count(row.state for row in self.gaps)

    @property
    def by_state(self) -> list[tuple[str, int]]:
        states = [row.state for row in self.gaps]
        return [
            (state.replace("_", " ").lower(), states.count(state)) for state in GapState if state in states
        ]

    @cached_property
    def checkpoints(self) -> list[Checkpoint]:
        return list(self.project.checkpoints.standing().filter(number__gt=0).order_by("number"))

    @property
    def last_checkpoint(self) -> int:
        """The number that counts against the limit; a session counts its own rounds from 1 again."""
        return self.checkpoints[-1].number

    @property
    def rounds_allowed(self) -> int:
        return checkpoints.rounds_allowed(self.project)

    @property
    def chart(self) -> charts.Chart | None:
        """A chart of what was settled and what came up until each checkpoint, by weight; None without any."""
        if not self.checkpoints:
            return None
        settled = [row.resolved_weight for row in self.checkpoints]
        new = [row.opened_weight for row in self.checkpoints]
        first, last = (f"checkpoint {self.checkpoints[at].number}" for at in (0, -1))
        return charts.bars(
            [("is-main", settled), ("is-tail", new)], first=first, last="" if last == first else last
        )

    @cached_property
    def rounds(self) -> list[RoundRow]:
        """The rounds, newest first; one that was taken back comes next to the one that got its number."""
        if self.session is None:
            return []
        rows: dict[tuple[int, int], RoundRow] = {}
        submissions = self.session.submissions.select_related("rolled_back").defer("diff", "specification")
        found = submissions.prefetch_related("reviews__findings").order_by("round", "attempt")
        for submission in found:
            key = (submission.round, submission.rolled_back_id or 0)
            row = rows.setdefault(key, RoundRow(submission.round, taken_back=submission.rolled_back))
            row.submissions.append(submission)
            row.reviews += sorted(submission.reviews.all(), key=lambda review: review.pk)
        self._tell(rows)
        return sorted(rows.values(), key=lambda row: (row.number, not row.taken_back), reverse=True)

    def _tell(self, rows: dict[tuple[int, int], RoundRow]) -> None:
        """Fill in what happened in each round, from its events, runs and cards."""
        assert self.session is not None  # noqa: S101
        by_submission = {row.pk: each for each in rows.values() for row in each.submissions}
        by_review = {row.pk: each for each in rows.values() for row in each.reviews}
        for event in self.session.events.filter(kind__in=turns.TOLD).order_by("pk"):
            of = by_submission if event.kind == "round_proposed" else by_review
            if row := of.get(event.data.get("row")):
                _told(row, event)
        logs = log_by_round(self.session)
        for row in rows.values():
            if row.taken_back is None:
                row.count, row.log = self.counts.get(row.number), logs.get(row.number, [])
                _note_later_acceptance(row, self._gap_events)
        for card in Conflict.objects.of(self.session).on_findings().select_related("submission", "dispute"):
            if card.submission_id in by_submission:
                by_submission[card.submission_id].conflicts.append(card)

    @cached_property
    def counts(self) -> dict[int, RoundCount]:
        """What each round settled and brought up, gap by gap (CNT-1, CNT-2)."""
        changes: dict[int, list[GapChange]] = defaultdict(list)
        for event in self._gap_events:
            changes[_round_of(event)].append(_change(event))
        return {number: count_round(found) for number, found in sorted(changes.items()) if number}

    @cached_property
    def _gap_events(self) -> list[Event]:
        """What happened to the gaps while the session ran, oldest first."""
        events = self.project.events.filter(kind__in=["gap_found", "approve", "cancel", "submit"])
        events = events.filter(self._while_it_ran(), task__in=self.project.tasks.gaps())
        return list(events.select_related("task__parent").order_by("pk"))

    def _while_it_ran(self) -> Q:
        """Select the events from its beginning to that of the next session; each counts its rounds from 1."""
        begun = self.project.events.filter(kind="session_begun", task__in=self.sessions).order_by("pk")
        keys = dict(begun.values_list("task", "pk"))
        mine = keys.get(self.session.pk if self.session else 0, 0)
        after = min((pk for pk in keys.values() if pk > mine), default=None)
        return Q(pk__gt=mine) if after is None else Q(pk__gt=mine, pk__lt=after)

    @property
    def is_worrying(self) -> bool:
        """Whether more comes up than is settled, and not only because a complex gap is split into parts."""
        return is_worrying([*self.counts.values()])

    @property
    def examples(self) -> list[tuple[str, int, int]]:
        """For each source of examples in prompts: how many runs used it, and how many handed in (EX-9)."""
        runs = Run.objects.filter(task=self.session, status=Run.Status.ENDED).exclude(example="").order_by()
        taken = Count("pk", filter=Q(outcome=Run.Outcome.HANDED_IN))
        return list(runs.values_list("example").annotate(uses=Count("pk"), taken=taken).order_by("example"))


def _told(row: RoundRow, event: Event) -> None:
    """Add an event about the round's documents or one of its reviews to the row."""
    if event.kind == "round_proposed":
        row.said = event.data
    elif "accepted" in event.data:
        row.is_final = event.kind == "final_review"
        for verdict in VERDICTS:
            row.judged[verdict] = [*dict.fromkeys([*row.judged.get(verdict, ()), *event.data[verdict]])]
        _drop_settled(row)


def _note_later_acceptance(row: RoundRow, events: Iterable[Event]) -> None:
    """Add the gaps that this round's reviews left open and that were accepted later, after a ruling."""
    left = row.judged.get("left", ())
    later = [
        event.task.gap
        for event in events
        if event.kind == "approve"
        and event.task
        and event.task.gap in left
        and _round_of(event) == row.number
    ]
    if later:
        row.judged["accepted"] = [*row.judged["accepted"], *later]
        _drop_settled(row)


def _drop_settled(row: RoundRow) -> None:
    """Leave among the unsettled gaps only those that no review of the round settled."""
    settled = {*row.judged["accepted"], *row.judged["sent_back"]}
    row.judged["left"] = [code for code in row.judged["left"] if code not in settled]


def _round_of(event: Event) -> int:
    return int(event.data.get("round") or 0)


def _change(event: Event) -> GapChange:
    task = event.task
    assert task is not None  # noqa: S101
    severity, parent = Severity(task.severity), task.parent.gap if task.parent else ""
    match event.kind:
        case "gap_found":
            return GapChange(task.gap, None, GapState.OPEN, severity, parent)
        case "approve":
            return GapChange(task.gap, GapState.PROPOSED, GapState.ACCEPTED, severity, parent)
        case "cancel":
            return GapChange(task.gap, GapState.OPEN, GapState.WONT_FIX, severity, parent)
    return GapChange(task.gap, GapState.IN_PROGRESS, GapState.PROPOSED, severity, parent)


def log_by_round(session: Task) -> dict[int, list[Logged]]:
    """Return the gate's log of the standing rounds (VAL-6).

    It has a line for each run that handed in, was refused, or whose provider failed.
    """
    runs: dict[tuple[int, str], list[Run]] = defaultdict(list)
    handed = [Run.Outcome.HANDED_IN, Run.Outcome.NOT_TAKEN, Run.Outcome.NOTHING, Run.Outcome.PROVIDER]
    ended = Run.objects.filter(task=session, role__in=[Run.Role.CODER, Run.Role.REVIEWER], outcome__in=handed)
    backs = list(session.rollbacks.all())
    for run in ended.order_by("pk"):
        if not any(back.to_round < run.round and run.queued_at <= back.at for back in backs):
            runs[run.round, run.role].append(run)
    found: dict[int, list[Logged]] = defaultdict(list)
    for (number, _), rows in sorted(runs.items()):
        lines = retries.log_of(_attempt(run) for run in rows)
        found[number] += [_with_refusals(line, run) for line, run in zip(lines, rows, strict=True)]
    return found


def _with_refusals(line: Logged, run: Run) -> Logged:
    """Add what the run was told before its document was taken."""
    if run.outcome != Run.Outcome.HANDED_IN or not run.refusals:
        return line
    told = refusals.result_of(run).message
    return replace(line, message=f"Taken after {counted(run.refusals, 'refusal')}: {told}")


def _attempt(run: Run) -> Attempt:
    at = f"{run.ended_at:%Y-%m-%dT%H:%M:%SZ}" if run.ended_at else ""
    if run.outcome == Run.Outcome.HANDED_IN:
        return Attempt(at, run.role, Validation(success=True))
    if run.outcome == Run.Outcome.PROVIDER:
        return Attempt(at, run.role, provider_failed(run.reason))
    return Attempt(at, run.role, refusals.result_of(run))


# --- One round ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Paper:
    """A document of a round, in parts that can be shown as Markdown."""

    title: str
    by: str
    at: Any
    parts: tuple[str, ...]
    review: Review | None = None


def papers_of(row: RoundRow) -> tuple[list[Paper], list[Paper]]:
    """Return the engineer's documents, and the reviewer's."""
    written = [
        Paper(
            "Proposal" if row.submissions[0] is one else "Proposal, again",
            one.by_agent,
            one.at,
            parts_of(one.response),
        )
        for one in row.submissions
        if one.response.strip()
    ]
    judged = [
        Paper("Review", one.by_agent, one.at, parts_of(one.text), one)
        for one in row.reviews
        if one.text.strip()
    ]
    return written, judged


def parts_of(text: str) -> tuple[str, ...]:
    """Split the document before its headings of the first two levels, each part at most WHOLE_MAX long."""
    try:
        lines = scan(text)
    except DocumentError:
        return (text[:WHOLE_MAX],)
    parts: list[list[str]] = [[]]
    for line in lines:
        if (heading := line.heading) and heading[0] <= 2 and parts[-1]:
            parts.append([])
        parts[-1].append(line.text)
    return tuple("\n".join(part)[:WHOLE_MAX] for part in parts if any(map(str.strip, part)))


def change_of(row: RoundRow) -> Diff:
    """Return what the round's last commit changed in the documents since the round before."""
    last = row.submissions[-1]
    told = Submission.objects.values_list("since_last_round", "diff").get(pk=last.pk)
    return coloured(parse_diff(told[0] or told[1]))


def numbers(rows: Iterable[RoundRow]) -> list[int]:
    """Return the numbers of the standing rounds, in order."""
    return sorted({row.number for row in rows if row.taken_back is None})
