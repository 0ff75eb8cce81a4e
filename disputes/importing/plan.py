"""What a session's documents say, gap by gap, worked out before any row is written. No Django."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from disputes.importing.folder import ENGINEER, Document, SessionFolder, Trouble
from disputes.protocol.responses.response import ReadResponse, read_response
from disputes.protocol.reviews.review import Found, ReadReview, Status, Verdict, read_review
from disputes.protocol.reviews.severity import GRAVE
from disputes.protocol.rounds.linking import Links
from disputes.protocol.rounds.proposals import GapSection, ReadProposal, label_of, read_proposal
from disputes.protocol.rounds.sessions import Left, ResponseTurn, ReviewTurn, walk_session
from disputes.protocol.rounds.sessions import Session as Walked
from disputes.protocol.rulings.decision_files import ReadDecisions, read_decisions
from disputes.protocol.silence.suspicion import Watched
from disputes.protocol.text.documents import scan
from disputes.protocol.text.identifiers import gaps_in
from disputes.protocol.text.quotes import one_line
from tasks.configuration.policy import DEFAULTS, ProjectSettings
from tasks.text.regex import regex

TITLE_MAX = 300
APPROVALS = {Verdict.APPROVED, Verdict.APPROVED_WITH_CONDITIONS, Verdict.NO_ISSUES_FOUND}
DONE = {Status.RESOLVED, Status.WITHDRAWN}
WHOLE = ""  # the gap of whatever is about the session as a whole
_NAMING = regex(r"(?:gap\s+)?(?:resolutions?|revisions?|proposals?)\s*:?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Work:
    """An engineer's document: what it says about each gap that it works on, and what it answers."""

    document: Document
    sections: dict[str, str]
    response: ReadResponse


@dataclass(frozen=True, slots=True)
class ReviewDocument:
    """A reviewer's document: its findings with their gaps, and the gaps it looked at."""

    document: Document
    read: ReadReview
    findings: tuple[tuple[str, Found], ...]
    gaps: tuple[str, ...]

    @property
    def confirmed(self) -> tuple[str, ...]:
        """The codes of earlier findings that the review calls done or takes back (FND-4)."""
        return tuple(each.code for each in self.read.prior if each.status in DONE)

    def verdict_on(self, gap: str) -> Verdict | None:
        """Return the verdict on the gap itself if there is one, else the verdict on the whole document."""
        own = [
            stated.verdict
            for stated in self.read.verdicts
            if stated.verdict and gap and gap in gaps_in(stated.scope)
        ]
        return max(own, key=list(Verdict).index) if own else self.read.verdict

    def approves(self, gap: str) -> bool:
        """Whether the review approves the gap and raises no grave finding on it."""
        grave = [f for on, f in self.findings if on == gap and f.severity in GRAVE and not f.withdrawn]
        return self.verdict_on(gap) in APPROVALS and not grave


@dataclass(slots=True)
class Plan:
    """A session as it will be written: its gaps with titles, its documents in order, and its silences.

    `silence` has a step for each of `steps`; in it, findings are numbered from 1 in the order in which they
    were raised.
    """

    name: str
    titles: dict[str, str] = field(default_factory=dict)
    steps: list[Work | ReviewDocument] = field(default_factory=list)
    decisions: ReadDecisions | None = None
    notes: list[Trouble] = field(default_factory=list)
    silence: Walked | None = None

    @property
    def decided(self) -> set[str]:
        """The codes of findings that people have decided, according to the session's decisions.md."""
        read = self.decisions.decisions if self.decisions else ()
        return {code for each in read for code in each.codes}

    @property
    def never_answered(self) -> list[Left]:
        """The findings that nobody answered or decided by the end of the session, gravest first (SIL-7)."""
        left = self.silence.never_answered if self.silence else ()
        return [each for each in left if each.finding.code not in self.decided]

    def about(self, gap: str) -> list[Work | ReviewDocument]:
        """Return the documents that work on the gap or judge it, in their order."""
        return [s for s in self.steps if gap in (s.sections if isinstance(s, Work) else s.gaps)]

    def is_accepted(self, gap: str) -> bool:
        """Whether the last document on the gap approves it, and nothing about it waits for anybody."""
        last = next(reversed(self.about(gap)), None)
        return (
            gap != WHOLE
            and isinstance(last, ReviewDocument)
            and last.approves(gap)
            and not self._declined(gap)
            and not any(each.finding.gap == gap and each.finding.is_grave for each in self.never_answered)
        )

    def _declined(self, gap: str) -> bool:
        """Whether the engineer declined a finding on the gap that nobody has decided yet."""
        judged = [step for step in self.steps if isinstance(step, ReviewDocument)]
        codes = {found.code.upper() for step in judged for about, found in step.findings if about == gap}
        codes -= {code.upper() for code in self.decided}
        works = [step for step in self.steps if isinstance(step, Work)]
        return any(block.code.upper() in codes for work in works for block in work.response.disagreements)


def plan_session(session: SessionFolder, settings: ProjectSettings = DEFAULTS) -> Plan:
    """Return the plan of a readable session. Whatever a parser could not make out is among its notes."""
    plan = Plan(session.name)
    codes: dict[str, None] = {}
    proposed: tuple[str, ...] = ()
    for document in session.documents:
        if document.role == ENGINEER:
            work = _work(plan, document, list(codes))
            proposed = tuple(work.sections)
            plan.steps.append(work)
        else:
            judged = _judged(plan, document, proposed)
            codes |= dict.fromkeys(found.code for _, found in judged.findings if found.code)
            plan.steps.append(judged)
    if session.decisions:
        plan.decisions = read_decisions(session.decisions.text)
        _note(plan, session.decisions, plan.decisions.warnings)
    plan.silence = walk_session(_turns(plan), settings=settings)
    return plan


def _turns(plan: Plan) -> Iterator[ReviewTurn | ResponseTurn]:
    """Yield the session's turns in the form in which silence is judged (SIL-6, SIL-7)."""
    raised, proposed, decided = 0, (), tuple(plan.decided)
    for step in plan.steps:
        document = step.document
        if isinstance(step, Work):
            proposed = tuple(gap for gap in step.sections if gap)
            yield ResponseTurn(document.round, document.text, name=document.path)
            continue
        watched = [
            Watched(
                code=found.code, ordinal=raised + number, severity=found.severity, title=found.title,
                location=found.location, impact=found.impact, text=found.text, gap=gap,
                is_settled=found.code in decided,
            )
            for number, (gap, found) in enumerate(step.findings, start=1)
            if not found.withdrawn
        ]  # fmt: skip
        raised += len(step.findings)
        yield ReviewTurn(
            document.round, tuple(watched), proposed,
            closed=tuple(gap for gap in step.gaps if gap and step.approves(gap)),
            confirmed=step.confirmed, settled=decided, name=document.path,
        )  # fmt: skip


def _note(plan: Plan, document: Document, problems: Iterable) -> None:
    plan.notes += [
        Trouble(f"{document.path}:{problem.line}" if problem.line else document.path, problem.reason)
        for problem in problems
    ]


def _work(plan: Plan, document: Document, codes: list[str]) -> Work:
    proposal = read_proposal(document.text)
    response = read_response(document.text, codes)
    _note(plan, document, response.warnings)
    if not proposal.sections:
        reason = "no section proposes a gap; it counts for the session as a whole"
        plan.notes.append(Trouble(document.path, reason))
    for section in proposal.sections:
        plan.titles.setdefault(section.gap, _title(section))
    return Work(document, _texts(plan, document, proposal), response)


def _texts(plan: Plan, document: Document, proposal: ReadProposal) -> dict[str, str]:
    """Return what the document says about each gap; with one gap or none, that is the whole document."""
    if len(proposal.sections) == 1:
        return {proposal.sections[0].gap: document.text}
    if not proposal.sections:
        plan.titles.setdefault(WHOLE, _whole(plan))
        return {WHOLE: document.text}
    return {section.gap: f"## {section.heading}\n\n{section.text}" for section in proposal.sections}


def _title(section: GapSection) -> str:
    """Return a title such as `GAP-FLOW-006: No conflict resolution`, from the **Gap:** label or heading."""
    told = (label_of(line) for line in section.lines[:20])
    said = next((text for each in told if each and each[0] == "gap" for text in each[1:]), "")
    words = (said or _NAMING.sub("", section.heading, count=1)).replace(section.gap, " ").strip(" -:()*—–")
    return one_line(f"{section.gap}: {words}" if words else section.gap, TITLE_MAX - 40)


def _whole(plan: Plan) -> str:
    return one_line(f"{plan.name}: the session as a whole", TITLE_MAX - 40)


def _judged(plan: Plan, document: Document, proposed: tuple[str, ...]) -> ReviewDocument:
    read = read_review(document.text)
    _note(plan, document, read.warnings)
    if read.verdict is None:
        plan.notes.append(Trouble(document.path, "no verdict could be read; it counts as no approval"))
    links = Links(scan(document.text), [gap for gap in proposed if gap])
    findings = [(links.gap_of(scan(found.text), found.line), found) for found in read.findings]
    plan.titles |= {gap: plan.titles.get(gap, gap) for gap, _ in findings if gap}
    loose = [found.code or f"line {found.line}" for gap, found in findings if not gap]
    if loose:
        plan.titles.setdefault(WHOLE, _whole(plan))
    if loose and WHOLE not in proposed:
        reason = f"nothing tells which gap these are about: {', '.join(loose)}"
        plan.notes.append(Trouble(document.path, reason))
    scopes = [gap for stated in read.verdicts for gap in gaps_in(stated.scope)]
    gaps = dict.fromkeys([*proposed, *(gap for gap, _ in findings), *(g for g in scopes if g in plan.titles)])
    if not gaps:
        plan.titles.setdefault(WHOLE, _whole(plan))
    return ReviewDocument(document, read, tuple(findings), tuple(gaps) or (WHOLE,))
