"""The gate that a document passes before anybody works with it: first form, then content (VAL-1 to VAL-13).

It is for rounds about documents, which require headings, a confidence and gap ids. Everything that is wrong
with a document is collected (VAL-2). A refused hand-in of a code task has its result here, too.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from disputes.protocol.reviews.headings import section_severity
from disputes.protocol.reviews.review import ReadReview, Status, read_review
from disputes.protocol.reviews.verdicts import says_no_issues
from disputes.protocol.rounds import proposals
from disputes.protocol.text.documents import STATED, DocumentError, Line, scan
from tasks.configuration.policy import DEFAULTS, ProjectSettings
from tasks.text.counting import counted
from tasks.text.regex import regex


class Form(StrEnum):
    """What kind of document is due."""

    PROPOSAL = "proposal"  # an engineer's, in a spec round
    REVIEW = "review"  # a reviewer's, in a spec round
    HAND_IN = "hand_in"  # a coder's response in a code task
    REJECTION = "rejection"  # a reviewer's review in a code task, if it does not approve


class FailureType(StrEnum):
    """What may be wrong with a run or its document; of several, the first one here is named first."""

    EXECUTION_ERROR = "EXECUTION_ERROR"
    FILE_MISSING = "FILE_MISSING"
    REFUSED = "REFUSED"
    EMPTY_OUTPUT = "EMPTY_OUTPUT"
    WRONG_FORMAT = "WRONG_FORMAT"
    NO_GAPS_ADDRESSED = "NO_GAPS_ADDRESSED"
    UNCERTAIN = "UNCERTAIN"
    INCONSISTENT_REFS = "INCONSISTENT_REFS"
    THIN_CONTENT = "THIN_CONTENT"
    INCOMPLETE_STRUCTURE = "INCOMPLETE_STRUCTURE"
    PARSER_ALARM = "PARSER_ALARM"


ORDER = list(FailureType)
# With these a document cannot be worked with at all.
MALFORMED = frozenset(ORDER[: ORDER.index(FailureType.NO_GAPS_ADDRESSED)])
WARNINGS = frozenset({FailureType.THIN_CONTENT, FailureType.INCOMPLETE_STRUCTURE, FailureType.PARSER_ALARM})

REVIEW_HEADING = regex(r"\breview(?:er|ed|s)?\b|\bassessment\b", re.IGNORECASE)
# VAL-4: a stated severity, as opposed to a word of ordinary prose.
SEVERITY_WORD = regex(r"\b(?:CRITICAL|HIGH|MEDIUM|LOW|MAJOR|MODERATE|MINOR)\b")
# Words on the same line that deny it: none, already settled, or about something else.
NOTHING = regex(
    r"\b(?:no|none|not|zero|0|n/?a|nothing|without|confidence|resolved|fixed|addressed|closed)\b",
    re.IGNORECASE,
)
APPROVING = frozenset({"APPROVED", "NO_ISSUES_FOUND"})


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that the gate found; `refs` are the ids, headings or findings that it is about."""

    type: FailureType
    message: str
    line: int = 0
    refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of the gate for one document (VAL-5)."""

    success: bool
    failure_type: FailureType | None = None
    message: str = ""
    warnings: tuple[Failure, ...] = ()
    gaps_addressed: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    provider: bool = False  # the provider failed, not the agent (VAL-9)


def verdict_of(found: Iterable[Failure], gaps: Sequence[str] = (), *, provider: bool = False) -> Validation:
    """Return all failures and warnings of one document as one result (VAL-2, VAL-5)."""
    ordered = sorted(found, key=lambda failure: (ORDER.index(failure.type), failure.line))
    failures = tuple(each for each in ordered if each.type not in WARNINGS)
    return Validation(
        success=not failures,
        failure_type=failures[0].type if failures else None,
        message="; ".join(failure.message for failure in failures),
        warnings=tuple(each for each in ordered if each.type in WARNINGS),
        gaps_addressed=tuple(gaps),
        failures=failures,
        provider=provider,
    )


def provider_failed(message: str) -> Validation:
    """Return the result of a run that ended by a rate limit, sign-in, quota or the network (VAL-9)."""
    return verdict_of([Failure(FailureType.EXECUTION_ERROR, message)], provider=True)


def nothing_handed_in() -> Validation:
    """Return the result of a run that ended without a hand-in."""
    return verdict_of([Failure(FailureType.FILE_MISSING, "the run ended without a hand-in")])


# --- Documents of spec rounds -----------------------------------------------------------------------------


def validate_proposal(text: str, known: Collection[str], settings: ProjectSettings = DEFAULTS) -> Validation:
    """Check an engineer's document (VAL-12).

    `known` are the project's gap ids; those that the document itself introduces are added (VAL-1).
    """
    if not text.strip():
        return _blank()
    try:
        proposal = proposals.read_proposal(text)
    except DocumentError as error:
        return verdict_of([_too_large(error)])
    found = [
        *_proposal_form(proposal),
        *_unknown(proposal.mentioned, known, proposal.announced),
        *_proposal_content(proposal, settings.thin_content_chars),
    ]
    return verdict_of(found, _addressed(proposal, known))


def validate_review(text: str, known: Collection[str]) -> Validation:
    """Check a reviewer's document of a spec round (VAL-13)."""
    if not text.strip():
        return _blank()
    try:
        lines, review = scan(text), read_review(text)
    except DocumentError as error:
        return verdict_of([_too_large(error)])
    announced, _ = proposals.announced_gaps(lines)
    found = [*_review_form(lines, review), *_unknown(proposals.mentioned_gaps(lines), known, announced)]
    if why := parser_alarm(lines, review):
        found.append(Failure(FailureType.PARSER_ALARM, why))
    return verdict_of(found, tuple(gap for gap in proposals.mentioned_gaps(lines) if gap in known))


def _blank() -> Validation:
    return verdict_of([Failure(FailureType.EMPTY_OUTPUT, "the document is blank")])


def _too_large(error: DocumentError) -> Failure:
    return Failure(FailureType.WRONG_FORMAT, str(error), error.problems[0].line)


def _proposal_form(proposal: proposals.ReadProposal) -> Iterator[Failure]:
    if not proposal.has_resolution:
        heading = "## Gap Resolution:"
        yield Failure(FailureType.WRONG_FORMAT, f"no heading `{heading}`", refs=(heading,))
    if proposal.confidence is None:
        label = "**Confidence:**"
        yield Failure(FailureType.WRONG_FORMAT, f"no line `{label}`", refs=(label,))


def _proposal_content(proposal: proposals.ReadProposal, least: int) -> Iterator[Failure]:
    if not proposal.mentioned:
        yield Failure(FailureType.NO_GAPS_ADDRESSED, "no gap id is mentioned")
    for section in proposal.sections:
        size = len(section.text.strip())
        if size < least:
            message = f"the section of {section.gap} has {counted(size, 'character')}; {least} are the least"
            yield Failure(FailureType.THIN_CONTENT, message, section.line, (section.gap,))
    if not proposal.has_trade_offs:
        heading = "### Trade-offs"
        yield Failure(FailureType.INCOMPLETE_STRUCTURE, f"no heading `{heading}`", refs=(heading,))


def _unknown(
    mentioned: dict[str, int], known: Collection[str], announced: Collection[str]
) -> Iterator[Failure]:
    bad = {gap: line for gap, line in mentioned.items() if gap not in known and gap not in announced}
    if bad:
        message = f"unknown gap ids: {', '.join(bad)}"
        yield Failure(FailureType.INCONSISTENT_REFS, message, min(bad.values()), tuple(bad))


def _addressed(proposal: proposals.ReadProposal, known: Collection[str]) -> tuple[str, ...]:
    """Return the gaps with a section; without any sections, the known gaps that the document mentions."""
    return proposal.addressed or tuple(
        gap for gap in proposal.mentioned if gap in known and gap not in proposal.announced
    )


def _review_form(lines: Sequence[Line], review: ReadReview) -> Iterator[Failure]:
    headings = [heading[1] for line in lines if (heading := line.heading)]
    if not any(REVIEW_HEADING.search(words) for words in headings):
        due = "## Review:"
        yield Failure(FailureType.WRONG_FORMAT, f"no heading `{due}`", refs=(due,))
    sections = any(section_severity(words)[0] for words in headings)
    # VAL-3: a stated verdict is enough. If it asks for changes without a finding, that raises an alarm below.
    if not (sections or review.findings or review.verdict or says_no_issues(lines)):
        message = "neither a severity heading nor NO_ISSUES_FOUND"
        yield Failure(FailureType.WRONG_FORMAT, message, refs=("### High Priority", "NO_ISSUES_FOUND"))


def parser_alarm(lines: Sequence[Line], review: ReadReview) -> str:
    """Return why findings were probably missed in a review that seems to have none; empty if not (VAL-4)."""
    if review.findings or any(each.status in (Status.UNRESOLVED, Status.PARTIAL) for each in review.prior):
        return ""
    if review.verdict is not None and review.verdict.value not in APPROVING:
        return f"the verdict is {review.verdict.value}, and no finding could be read"
    if line := _line_with_severity(lines):
        return f"line {line} states a severity, and no finding could be read"
    if review.verdict is None and not says_no_issues(lines):
        return "neither a verdict nor a finding could be read"
    return ""


def _line_with_severity(lines: Sequence[Line]) -> int:
    """Return the number of the first line that states a severity for something, or 0."""
    told = [line for line in lines if line.text.strip()]
    for line, following in zip(told, [*told[1:], None], strict=False):
        if line.mode is not STATED:
            continue
        if heading := line.heading:
            named, _ = section_severity(heading[1])
            if named and following and not following.heading and not NOTHING.search(following.text[:200]):
                return line.number
        elif SEVERITY_WORD.search(line.text) and not NOTHING.search(line.text):
            return line.number
    return 0


# --- Hand-ins of code tasks -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason why a hand-in was not accepted; `line` is 0 if it is about no particular line."""

    reason: str
    line: int = 0

    @property
    def text(self) -> str:
        return f"line {self.line}: {self.reason}" if self.line else self.reason


def refused(refusals: Sequence[Refusal]) -> Validation:
    """Return the result of a run whose hand-ins were all refused, based on the last refusal (VAL-11)."""
    told = refusals or (Refusal("it could not be read"),)
    return verdict_of(Failure(FailureType.REFUSED, each.text, each.line, refs=(each.text,)) for each in told)
