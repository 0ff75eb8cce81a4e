"""What the page of one dispute shows: both sides, the code, the options, and what happened before."""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from django.utils.functional import cached_property

from disputes import amendments, precedents, rulings
from disputes.models import NOT_STATED, Amendment, Conflict, Decision, Dispute
from disputes.models.guideline import url_to_add
from disputes.protocol.rulings.options import NOT_FOR_THE_CODER, Option
from disputes.web.dispute import round_strip
from disputes.web.dispute.asking import Asking
from disputes.web.dispute.code import CodeLine, Diff, FileDiff, code_at, coloured, is_prose, parse_diff
from disputes.web.dispute.evidence_card import EvidenceCard
from disputes.web.dispute.prefetch import FLAG, Rows
from disputes.web.dispute.quote import Passage, named, passage_of
from disputes.web.dispute.result import EvidenceResult
from disputes.web.queue import listing
from disputes.web.work.history import EVENTS, newest_events
from tasks.models import SEVERITY_CHOICES, Answer, Event, Finding, Review, Submission, Task
from tasks.states import Severity

DECISIONS = 5
SHORT_DIFF = 80  # lines

STATES = {
    Conflict.Followed.WAITING: ("Waiting for agents", "No prompt has used it yet."),
    Conflict.Followed.APPLIED: (
        "Applied",
        "What was ruled is there, and the review did not raise the point again.",
    ),
    Conflict.Followed.NOT_HONOURED: ("Not honoured", "A newer card says why, and asks again."),
    Conflict.Followed.CANNOT_TELL: ("Could not verify", "Nothing shows whether it was followed."),
    Conflict.Followed.REOPENED: ("Reopened", "It no longer stands; a newer card asks again."),
}


# Cards about build and tests, whose evidence and detail are a result and not what a side says.
ABOUT_RESULTS = {Conflict.Origin.BASE, Conflict.Origin.VERIFYING}


@dataclass(frozen=True, slots=True)
class Quote:
    """One labelled piece of text, verbatim."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Card:
    """What one side says. Without quotes, it has said nothing."""

    letter: str
    side: str
    who: str
    quotes: list[Quote]
    as_written: str = ""
    why_silent: str = ""


@dataclass
class ConflictPage:
    """A conflict as its page shows it. `around` holds all conflicts of its task or of its dispute."""

    dispute: Dispute
    conflict: Conflict
    around: list[Conflict]
    may_rule: bool
    conflicts: list[Conflict] = field(init=False)
    task: Task | None = field(init=False)

    def __post_init__(self) -> None:
        own = [conflict for conflict in self.around if conflict.dispute_id == self.dispute.pk]
        self.conflicts = listing.in_order(own)
        self.task = self.dispute.task
        self.rows = Rows(self.conflict, self.task)

    @property
    def number(self) -> int:
        return [conflict.pk for conflict in self.conflicts].index(self.conflict.pk) + 1

    @property
    def others(self) -> list[Conflict]:
        return [conflict for conflict in self.conflicts if conflict.pk != self.conflict.pk]

    @property
    def previous(self) -> Conflict | None:
        """The conflict that this one follows, or None."""
        return next((each for each in self.around if each.pk == self.conflict.previous_id), None)

    @property
    def reopened_as(self) -> Conflict | None:
        """The newest conflict that names this one, or None."""
        return next((each for each in reversed(self.around) if each.previous_id == self.conflict.pk), None)

    @property
    def is_open(self) -> bool:
        return self.conflict.is_open

    # --- Both sides ---

    @property
    def finding(self) -> Finding | None:
        """The finding as it was last raised before the conflict was opened, or None."""
        return self.rows.finding

    @property
    def review(self) -> Review | None:
        return self.finding.review if self.finding else None

    @cached_property
    def submission(self) -> Submission | None:
        """The disputed submission, or else the newest one."""
        return self.disputed or self.rows.newest

    @property
    def disputed(self) -> Submission | None:
        return self.rows.submissions.get(self.conflict.submission_id or 0)

    def cards(self) -> list[Card]:
        """Return both sides; for a card that asks for help, what happened and the last submission."""
        if self.conflict.kind == Conflict.Kind.HELP:
            return self._help()
        if self.conflict.origin in ABOUT_RESULTS:
            return []
        if self.conflict.kind == Conflict.Kind.ALERT:
            quotes = [Quote("", line) for line in self.conflict.evidence]
            return [Card("", "What happened", self.conflict.get_origin_display(), quotes)]
        return [self._reviewer(), self._coder()]

    def _reviewer(self) -> Card:
        conflict, finding, review = self.conflict, self.finding, self.review
        model, round_ = (review.by_model, f"round {finding.round}") if finding and review else ("", "")
        who = _joined(conflict.reviewer_label, model, round_)
        if finding is None:
            title = f"{conflict.thread.stage} objects" if conflict.thread else "Reviewer"
            return Card("A", title, who, _quotes(("Position", conflict.reviewer_position)))
        position = conflict.reviewer_position
        quotes = _quotes(
            ("Finding", finding.title),
            ("Impact", finding.impact),
            ("Suggestion", finding.suggestion),
            ("Position", "" if position in {finding.suggestion, finding.title, finding.text} else position),
        )
        said = {finding.title, finding.suggestion, ""}
        return Card("A", "Reviewer", who, quotes, "" if finding.text in said else finding.text)

    def _coder(self) -> Card:
        conflict, submission = self.conflict, self.disputed
        model, round_ = (submission.by_model, f"round {submission.round}") if submission else ("", "")
        position, rationale = conflict.coder_position, conflict.coder_rationale
        quotes = (
            _quotes(
                ("Position", "" if position == rationale else position),
                ("Rationale", rationale),
                ("Alternative", conflict.alternative),
            )
            or self._answer()
        )
        if conflict.thread:
            return Card("B", f"{conflict.stage} replies", conflict.coder_label, quotes)
        coder, why = conflict.dispute.project.coder_word, ""
        if submission is not None and conflict.kind == Conflict.Kind.SILENCE:
            why = f"The hand-in of round {submission.round} does not answer this finding."
        elif conflict.origin == Conflict.Origin.CLI and conflict.opened_as == "reviewer":
            why = f"The reviewer opened this dispute before the {coder} could answer."
        who = _joined(conflict.coder_label, model, round_)
        return Card("B", coder.capitalize(), who, quotes, why_silent=why)

    def _answer(self) -> list[Quote]:
        """Return what the coder answered to the finding, where it took no position in a dispute."""
        kind: str | None = self.conflict.answer_kind  # type: ignore[attr-defined]
        if kind is None:
            return []
        word = Answer.Kind(kind).label.lower()
        text: str = self.conflict.answer_text  # type: ignore[attr-defined]
        return [Quote(f"Answered: {word}", text.strip() or "It says so, and no more.")]

    def _help(self) -> list[Card]:
        conflict, submission = self.conflict, self.submission
        happened = []
        if conflict.origin not in ABOUT_RESULTS:
            quotes = _quotes(("Detail", conflict.coder_position))
            if conflict.origin == Conflict.Origin.REJECTIONS:
                quotes += [Quote("", line) for line in conflict.evidence]
            happened = [Card("", "What happened", conflict.get_origin_display(), quotes)]
        if submission is None:
            return happened
        who = _joined(submission.by_agent, submission.by_model, f"round {submission.round}")
        state = f"{submission.get_state_display()}, commit {submission.sha[:10]}"
        quotes = _quotes(("State", state), ("Problem", submission.problem), ("Response", submission.response))
        return [*happened, Card("", "Last submission", who, quotes)]

    @cached_property
    def result(self) -> EvidenceResult | None:
        """What build and tests reported, on a card about them; None on other cards."""
        conflict = self.conflict
        if conflict.origin not in ABOUT_RESULTS:
            return None
        return EvidenceResult.of(conflict.evidence, conflict.coder_position)

    # --- The code ---

    @cached_property
    def code(self) -> list[CodeLine]:
        """The lines around the finding's place, in the commit that was reviewed."""
        if self.finding is None or self.review is None:
            return []
        return code_at(
            path=self.finding.path,
            line=self.finding.line,
            excerpt=self.finding.excerpt,
            start=self.finding.excerpt_start,
            diff=self.review.submission.diff,
        )

    @cached_property
    def changes(self) -> list[FileDiff]:
        """All that the submission changes, where no place is named and it is short enough to be read here."""
        diff = parse_diff(self.submission.diff, SHORT_DIFF) if self.submission else Diff([], is_cut=False)
        return [] if diff.is_cut or self.needs_opening else coloured(diff).files

    @property
    def is_prose(self) -> bool:
        """Whether the place is a passage: a section of a proposal, or lines of a document."""
        path = self.finding.path if self.finding else ""
        return not path or is_prose(path)

    @cached_property
    def code_mark(self) -> str:
        """A mark of the code shown, by which a form says that it was opened; empty if there is no code."""
        submission = self.review.submission if self.review else self.submission
        if submission is None or not (self.code or submission.diff):
            return ""
        return sha256(f"{submission.pk} {submission.sha}".encode()).hexdigest()[:16]

    @property
    def needs_opening(self) -> bool:
        """Whether the code must be opened before a ruling, as CRITICAL demands."""
        return self.is_open and self.may_rule and self.needs_rationale and bool(self.code_mark)

    @property
    def needs_rationale(self) -> bool:
        return rulings.needs_rationale(self.conflict)

    @property
    def rules_at_once(self) -> bool:
        """Whether one key both chooses and rules, as for LOW, where the ruling can be undone."""
        return self.conflict.severity == Severity.LOW and self.conflict.kind in Conflict.BETWEEN_TWO

    @cached_property
    def passage(self) -> Passage | None:
        """What the specification says there, as it was before the work, or else what the task says."""
        if self.task is None or not self.task.source:
            return None
        finding = self.finding
        about = [self.conflict.question, self.conflict.reviewer_position, self.conflict.coder_position]
        about += [finding.title, finding.impact] if finding else []
        reviewed = self.review.submission if self.review else self.submission
        if reviewed and reviewed.specification:
            return passage_of(named(self.task.source), reviewed.specification, " ".join(about))
        return passage_of("Task", self.task.body, " ".join(about))

    @cached_property
    def evidence(self) -> EvidenceCard | None:
        """The evidence of a silent disagreement, in rows; None if there is none to show."""
        conflict = self.conflict
        told = conflict.kind == Conflict.Kind.ALERT or conflict.origin == Conflict.Origin.REJECTIONS
        if told or self.result or not conflict.evidence:
            return None
        flag = {name: getattr(conflict, f"flag_{name}") for name in FLAG}
        if flag["level"] is None:
            return EvidenceCard.of(conflict.evidence)
        minimum = self.dispute.project.config.semantic_overlap_minimum
        return EvidenceCard.of(conflict.evidence, **flag, minimum=minimum)

    @property
    def files(self) -> list[list[Any]]:
        """Path, lines added and lines removed of each file that the submission changes."""
        return self.submission.diff_stat.get("files", []) if self.submission else []

    # --- The findings behind it ---

    severities = SEVERITY_CHOICES

    @cached_property
    def weighed(self) -> list[Finding]:
        """The findings whose severity may be changed here: the disputed one, or all that were declined."""
        if self.conflict.origin != Conflict.Origin.RATE:
            return [self.finding] if self.finding and self.is_open else []
        if not self.is_open and not (self.ruling and self.ruling.option == Option.CHECK_REVIEW):
            return []
        answered = Answer.objects.filter(submission=self.conflict.submission, kind=Answer.Kind.DECLINED)
        return [answer.finding for answer in answered.select_related("finding")]

    # --- Ruling ---

    @cached_property
    def options(self) -> list[rulings.OptionView]:
        if self.disputed is None:
            return rulings.options_of(self.conflict)
        self.conflict.submission = self.disputed
        return rulings.options_of(self.conflict, {self.disputed.pk: self.rows.blockers(self.around)})

    @property
    def reaches_coder(self) -> bool:
        """Whether any option would put something into the coder's prompt."""
        return any(option.option not in NOT_FOR_THE_CODER for option in self.options)

    @cached_property
    def shown_hash(self) -> str:
        return rulings.shown_hash(self.conflict, self.rows.code_now())

    @cached_property
    def ruling(self) -> Decision | None:
        return next(iter(self.conflict.rulings), None)

    @property
    def ruled_title(self) -> str:
        """The title of the option that was chosen."""
        option = self.ruling.option if self.ruling else ""
        chosen = self.conflict.choice(option)
        return chosen.title if chosen else option.capitalize()

    @property
    def state(self) -> tuple[str, str]:
        """Whether the ruling was followed: a word, and what it means."""
        ruling, followed = self.ruling, self.conflict.followed or Conflict.Followed.WAITING
        if ruling and ruling.option in {Option.DEFER, Option.CANCEL}:
            return "Applied", "The task was moved at once."
        if ruling and ruling.used_at and followed == Conflict.Followed.WAITING:
            return "Waiting for agents", "A prompt has used it; no review has looked yet."
        if ruling and not ruling.expects_change and followed == Conflict.Followed.APPLIED:
            return "Applied", "It asks for no change."
        return STATES[Conflict.Followed(followed)]

    @cached_property
    def taken_back(self) -> bool:
        """Whether the conflict is over because its round was rolled back."""
        if self.conflict.status != Conflict.Status.MOOT:
            return False
        submission = self.disputed
        if submission and submission.rolled_back_id:
            return True
        return self.conflict.decisions.filter(archived_by__isnull=False).exists()

    @cached_property
    def asking(self) -> Asking:
        """What judges and mediators say about the conflict, and who may still be asked."""
        return Asking(self.conflict, self.may_rule)

    # --- Before and beside ---

    def strip(self) -> list[round_strip.StripStep]:
        """Return what became of the finding, round by round."""
        finding = self.conflict.finding
        if finding is None or self.task is None:
            return []
        answered: dict[str, str] = self.conflict.answered or {}  # type: ignore[attr-defined]
        kinds = {int(number): kind for number, kind in answered.items()}
        last = getattr(self.dispute, "last_round", None) or 0
        raised = [one.round for one in self.rows.raised if one.rolled_back_id is None]
        return round_strip.strip(max([last, *kinds]), raised, kinds)

    @cached_property
    def decided_before(self) -> list[Decision]:
        """The rulings in force in the task's earlier disputes, newest first, except the precedents shown."""
        shown = {precedent.decision.pk for precedent in self.precedents}
        earlier = [each for each in self.around if each.dispute_id != self.dispute.pk]
        ruled = [ruling for each in earlier for ruling in each.rulings if ruling.pk not in shown]
        return sorted(ruled, key=lambda ruling: -ruling.pk)[:DECISIONS]

    @property
    def guideline_url(self) -> str:
        """The path of the form for a standing guideline, filled with the ruling's words, or ""."""
        return url_to_add(self.ruling) if self.ruling else ""

    @cached_property
    def amendment(self) -> Amendment | None:
        """The last amendment that was asked for to put the ruling into the specification, or None."""
        return self.ruling.amendments.select_related("task").first() if self.ruling else None

    @property
    def may_amend(self) -> bool:
        """Whether the person may have an amendment drafted at present."""
        is_free = self.amendment is None or self.amendment.state not in Amendment.LIVE
        return self.may_rule and is_free and amendments.may_be_asked(self.conflict, self.ruling)

    @property
    def specification(self) -> str:
        """The path of the document that a ruling here may be drafted into at once; empty if there is none."""
        is_ruling = self.conflict.kind == Conflict.Kind.DISAGREEMENT and self.task is not None
        return self.dispute.project.config.specification if is_ruling else ""

    @cached_property
    def cited_by(self) -> list[Decision]:
        """The newest rulings in force that cite the ruling shown."""
        if self.ruling is None:
            return []
        following = self.ruling.cited_by.standing().select_related("conflict__dispute")
        return list(following.order_by("-pk")[:DECISIONS])

    @cached_property
    def precedents(self) -> list[precedents.Suggestion]:
        """The rulings on similar conflicts of the project."""
        return precedents.for_conflict(self.conflict)

    def events(self) -> list[Event]:
        """Return what happened to the task, newest first; on a project's card, to the project as a whole."""
        if self.task is not None:
            return newest_events(self.task)
        of_project = self.dispute.project.events.filter(task__isnull=True)
        return list(of_project.order_by("-pk")[:EVENTS])


def _joined(*words: str) -> str:
    return " · ".join(word for word in words if word)


def _quotes(*pairs: tuple[str, str]) -> list[Quote]:
    return [Quote(label, text) for label, text in pairs if text.strip() and text.strip() != NOT_STATED]
