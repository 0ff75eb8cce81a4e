"""A whole session of rounds: which finding is due when, what was answered, what was left (SIL-6, SIL-7)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from disputes.protocol.responses.response import ReadResponse, read_response
from disputes.protocol.rounds.subjects import Subject, gap_texts, subject_of
from disputes.protocol.silence.heuristics import judge_silence
from disputes.protocol.silence.matching import Concern, same_concern
from disputes.protocol.silence.suspicion import Judgement, Watched
from tasks.configuration.policy import DEFAULTS, ProjectSettings
from tasks.states import severity_rank


@dataclass(frozen=True, slots=True)
class ReviewTurn:
    """A review in a session. `proposed` are the gaps of the document that it reviews.

    `closed` are the gaps that it lets enter ACCEPTED or RESOLVED (SIL-7), `confirmed` the codes of earlier
    findings that it calls done. `settled` are codes that a person has decided, waived or deferred by then.
    """

    round: int
    findings: tuple[Watched, ...]
    proposed: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class ResponseTurn:
    """An engineer's document in a session. `assigned` are gaps besides those that it shows itself."""

    round: int
    document: str
    assigned: tuple[str, ...] = ()
    name: str = ""


Turn = ReviewTurn | ResponseTurn


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What one turn did to the findings of the session; the numbers are indexes into `Session.findings`."""

    name: str
    round: int
    raised: tuple[int, ...] = ()
    due: tuple[int, ...] = ()
    answered: tuple[int, ...] = ()
    pending: tuple[int, ...] = ()
    judgement: Judgement | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """A finding that nobody answered before the session ended; `was_due` are the rounds in which it was."""

    finding: Watched
    review: str
    round: int
    was_due: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """A whole session: its findings, its steps, and the findings that were never answered."""

    findings: tuple[Watched, ...]
    steps: tuple[TurnResult, ...]
    never_answered: tuple[Left, ...]


@dataclass(slots=True)
class _Open:
    """One finding and what has become of it."""

    finding: Watched
    index: int
    turn: ReviewTurn
    document: str  # the document that it was raised against
    silent: list[int] = field(default_factory=list)  # rounds in which it was due and got no answer
    earlier: tuple[int, ...] = ()  # the same for earlier findings with this concern
    is_answered: bool = False
    is_settled: bool = False

    @property
    def is_open(self) -> bool:
        return not (self.is_answered or self.is_settled)


def walk_session(turns: Iterable[Turn], *, settings: ProjectSettings = DEFAULTS) -> Session:
    """Walk through a session in the order of its turns; the last turn ends it (SIL-7).

    An answer with an id is meant for the newest finding with that id (ID-2). Raises DocumentError if a
    document is too large.
    """
    walk = _Walk(settings)
    for turn in turns:
        if isinstance(turn, ReviewTurn):
            walk.review(turn)
        else:
            walk.respond(turn)
    return Session(
        findings=tuple(each.finding for each in walk.all),
        steps=tuple(walk.steps),
        never_answered=tuple(_left(walk.all)),
    )


def _left(findings: Iterable[_Open]) -> list[Left]:
    """Return the findings that were never answered, the gravest first, then the oldest."""
    left = [
        Left(each.finding, each.turn.name, each.turn.round, tuple(each.silent))
        for each in findings
        if each.is_open
    ]
    return sorted(left, key=lambda one: (-severity_rank(one.finding.severity or "medium"), one.round))


class _Walk:
    def __init__(self, settings: ProjectSettings) -> None:
        self.settings = settings
        self.all: list[_Open] = []
        self.steps: list[TurnResult] = []
        self._by_code: dict[str, _Open] = {}
        self._document = ""  # the latest document, which the next review is about
        self._last: ReviewTurn | None = None

    def review(self, turn: ReviewTurn) -> None:
        """Raise, confirm and settle findings; those on a gap that closes become due."""
        self._last = turn
        for code in turn.confirmed:
            if (found := self._by_code.get(code)) is not None:
                found.is_answered = True
        for code in turn.settled:
            if (found := self._by_code.get(code)) is not None:
                found.is_settled = True
        closing = frozenset(turn.closed)
        due = [each for each in self.all if each.is_open and each.finding.gap in closing]
        nothing = ReadResponse((), (), "")
        judgement = self._judge(due, nothing, "", Subject(closing), turn.round) if due else None
        self._note_silence(due, turn.round)
        raised = []
        for finding in turn.findings:
            opened = _Open(
                finding, len(self.all), turn, self._document,
                earlier=self._earlier(finding, turn), is_settled=finding.is_settled,
            )  # fmt: skip
            self.all.append(opened)
            raised.append(opened)
        for opened in raised:
            if opened.finding.code:
                self._by_code[opened.finding.code] = opened
        self.steps.append(
            TurnResult(turn.name, turn.round, raised=_indexes(raised), due=_indexes(due), judgement=judgement)
        )

    def respond(self, turn: ResponseTurn) -> None:
        """Note which findings a document answers, and which it passes over but should treat (SIL-6)."""
        response = read_response(turn.document, self._by_code.keys())
        said = subject_of(turn.document)
        subject = Subject(said.gaps | set(turn.assigned), said.resolved)
        named = {answer.code for answer in response.answers}
        answered = [each for code, each in self._by_code.items() if code in named and not each.is_settled]
        places = {each.index for each in answered}
        waiting = [each for each in self.all if each.is_open and each.index not in places]
        treated = {id(each.turn) for each in answered}
        if not subject.gaps:  # it continues with what was reviewed last
            treated.add(id(self._last))
        due = [
            each
            for each in waiting
            if subject.expects(each.finding.gap, each.turn.proposed, answers=id(each.turn) in treated)
        ]
        due_places = {each.index for each in due}
        judged = sorted([*answered, *due], key=lambda each: each.index)
        judgement = self._judge(judged, response, turn.document, subject, turn.round)
        for each in answered:
            each.is_answered = True
        self._note_silence(due, turn.round)
        self._document = turn.document
        pending = [each for each in waiting if each.index not in due_places]
        self.steps.append(
            TurnResult(
                turn.name,
                turn.round,
                due=_indexes(due),
                answered=_indexes(answered),
                pending=_indexes(pending),
                judgement=judgement,
            )
        )

    def _judge(
        self,
        findings: Sequence[_Open],
        response: ReadResponse,
        document: str,
        subject: Subject,
        round_: int,
    ) -> Judgement:
        solutions = gap_texts(document) if document and subject.resolved else {}
        watched = [
            replace(
                each.finding,
                is_due=True,
                is_settled=each.is_settled,
                is_claimed_resolved=each.finding.gap in subject.resolved,
                solution=solutions.get(each.finding.gap, ""),
                silent_rounds=tuple(sorted({*each.earlier, *each.silent} - {round_})),
                reviewed=each.document if document else "",
            )
            for each in findings
        ]
        return judge_silence(watched, response, document, settings=self.settings)

    def _note_silence(self, due: Iterable[_Open], round_: int) -> None:
        for each in due:
            if round_ not in each.silent:
                each.silent.append(round_)

    def _earlier(self, finding: Watched, turn: ReviewTurn) -> tuple[int, ...]:
        """Return the rounds in which the same concern got no answer before (SIL-9)."""
        new = Concern(finding.code, finding.title, finding.gap)
        rounds: set[int] = set()
        for each in self.all:
            if each.silent and each.turn is not turn:
                old = Concern(each.finding.code, each.finding.title, each.finding.gap)
                if same_concern(new, old, minimum=self.settings.soft_match_overlap):
                    rounds.update(each.earlier, each.silent)
        return tuple(sorted(rounds))


def _indexes(findings: Iterable[_Open]) -> tuple[int, ...]:
    return tuple(each.index for each in findings)
