"""What must hold of a document however it was made, and what of one whose making is known.

Nothing here asks the scanner or a parser what a line means: the claims come with the document.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from itertools import cycle
from typing import Any

from disputes.protocol.responses.response import ReadResponse, read_response
from disputes.protocol.reviews.review import Found, ReadReview, read_review
from disputes.protocol.rounds.check import as_json, check_round
from disputes.protocol.rounds.proposals import read_proposal
from disputes.protocol.rounds.validation import validate_proposal, validate_review
from disputes.protocol.rulings.decision_files import read_decisions
from disputes.protocol.silence.heuristics import judge_silence
from disputes.protocol.silence.suspicion import Heuristic, Watched
from tasks.states import Severity
from tests.fuzz_lines import CODES, ROUND_OF_EXAMPLES
from tests.fuzzing import LINE_END, Fuzzed, Kind, documents

# No word of an approval does without one of these.
APPROVING = re.compile(r"approv|accept|no[\W_]*issues", re.IGNORECASE)
EXAMPLE = re.compile(rf"R{ROUND_OF_EXAMPLES}-", re.IGNORECASE)
WORD = re.compile(r"[^\W_]+")
CODE = re.compile(r"R(\d+)(?:-V\d+)?[-_ ]0*(\d+)", re.IGNORECASE)
BACKTICKS = re.compile("`+")
RANGE_SIGN = re.compile(r"through|thru|until|to|–|—|\.\.|-", re.IGNORECASE)
# A finding may be declined in other words than DISAGREE.
DECLINING = re.compile("disagree|declin|disput|reject", re.IGNORECASE)
COLUMN_MAX = 500
# One line may name several ranges of findings; each fills in at most this many, and its own ends.
CODES_OF_A_RANGE = 52


def approves(review: ReadReview) -> bool:
    """Whether a review lets a task pass, with conditions or without."""
    return review.verdict is not None and review.verdict.value != "NEEDS_REVISION"


def faults(document: Fuzzed, relation: int | None = None) -> list[str]:
    """What does not hold for a document; `relation` chooses one more thing that it is put to."""
    review, response = read_review(document.text), read_response(document.text)
    found = [
        *unjustified(document, review),
        *_named_examples(document, review, response),
        *_strange_codes(review, response),
        *unbounded(document.text, review, response),
        *misplaced(document.text, review, response),
    ]
    if relation is not None:
        found += RELATIONS[relation % len(RELATIONS)](document.text, review, response)
    return found


def faults_of_series(seed: int, numbers: range) -> list[str]:
    """The faults of the documents of these numbers, each with what is needed to make its document again."""
    found = []
    for made in documents(seed, numbers):
        relation = made.number // EVERY if made.number % EVERY == 0 else None
        try:
            wrong = faults(made, relation)
        except Exception as error:
            error.add_note(f"seed {seed}, document {made.number} ({made.kind}): {made.text!r}")
            raise
        found += [f"seed {seed}, document {made.number} ({made.kind}): {fault}" for fault in wrong]
    return found


# --- No approval out of garbage ---------------------------------------------------------------------------


def unjustified(document: Fuzzed, review: ReadReview) -> Iterator[str]:
    """Approvals of a document that holds none (ARB-2, ID-3), and rejections that were lost."""
    if approves(review) and (
        document.kind in {Kind.DENIED, Kind.PROSE} or not APPROVING.search(document.stated)
    ):
        yield f"approved, by {review.raw_verdict!r}"
    if document.kind is Kind.REJECTING and (review.verdict is None or approves(review)):
        yield f"the rejection is lost to {review.raw_verdict!r}"


def _strange_codes(review: ReadReview, response: ReadResponse) -> Iterator[str]:
    """Ids that a person cannot tell from others: with digits of other scripts, or in small letters (ID-1)."""
    for what in (review.findings, response.answers, response.disagreements):
        for one in what:
            if not one.code.isascii() or one.code != one.code.upper():
                yield f"the code of {one!r:.200}"


def _named_examples(document: Fuzzed, review: ReadReview, response: ReadResponse) -> Iterator[str]:
    """Findings, states, answers and disagreements that only an example names (ID-3).

    What stands outside, right below a quoted finding, may answer it (ANS-6).
    """
    if document.kind is not Kind.SEALED:
        return
    replied = {one.code for one in response.answers if one.place == "quote" and one.text in document.stated}
    for what in (review.findings, review.prior, response.answers, response.disagreements):
        answers = what is response.answers or what is response.disagreements
        for one in what:
            if EXAMPLE.search(one.code) and not (answers and one.code in replied):
                yield f"an example is read as {one!r:.200}"


# --- Bounds -----------------------------------------------------------------------------------------------


def unbounded(text: str, review: ReadReview, response: ReadResponse) -> Iterator[str]:
    """More findings, answers or words than the document can hold."""
    lines = len(LINE_END.split(text))
    most = lines + CODES_OF_A_RANGE * len(CODE.findall(text))
    for name, what in (("findings", review.findings), ("answers", response.answers)):
        if len(what) > most:
            yield f"{len(what)} {name} on {lines} lines"
    longest = max(len(text), 32)
    for found in review.findings:
        texts = (found.title, found.location, found.impact, found.suggestion, found.text, found.code)
        if len(found.title) > COLUMN_MAX or any(len(each) > longest for each in texts):
            yield f"longer than its document: {found!r:.200}"
    for block in response.disagreements:
        texts = (block.position, block.rationale, block.concern, block.alternative)
        if any(len(each) > longest for each in texts):
            yield f"longer than its document: {block!r:.200}"
    if any(len(answer.text) > longest for answer in response.answers):
        yield "an answer is longer than its document"


# --- Places -----------------------------------------------------------------------------------------------


def misplaced(text: str, review: ReadReview, response: ReadResponse) -> Iterator[str]:
    """Findings and answers whose line is not where they stand."""
    lines = LINE_END.split(text)
    for found in review.findings:
        if not 1 <= found.line <= len(lines) or not lines[found.line - 1].strip():
            yield f"line {found.line} has no finding"
        elif lines[found.line - 1].strip() not in found.text:
            yield f"line {found.line} is not of the finding {found.text!r:.200}"
    ordinals = [found.ordinal for found in review.findings]
    if ordinals != list(range(1, len(ordinals) + 1)):
        yield f"ordinals {ordinals}"
    for answer in response.answers:
        if not 1 <= answer.line <= len(lines) or not _names(lines[answer.line - 1], answer.code):
            yield f"line {answer.line} does not name {answer.code}"
    for block in response.disagreements:
        if not 1 <= block.line <= len(lines) or (not block.problems and not DECLINING.search(text)):
            yield f"line {block.line} has no DISAGREE"


def _names(line: str, code: str) -> bool:
    """Whether a line prints a code, short or padded, or a range that may hold it."""
    match = CODE.search(code)
    if not match:
        return code.casefold() in line.casefold()
    printed = {(int(round_), int(number)) for round_, number in CODE.findall(line)}
    return (int(match[1]), int(match[2])) in printed or (
        any(round_ == int(match[1]) for round_, _ in printed) and RANGE_SIGN.search(line) is not None
    )


# --- Variants that must be read the same (ID-3) -------------------------------------------------------------


def _again(text: str, review: ReadReview, response: ReadResponse) -> Iterator[str]:
    """The same document is read the same again."""
    if read_review(text) != review or read_response(text) != response:
        yield "read twice, it is read in two ways"


def _windows(text: str, review: ReadReview, response: ReadResponse) -> Iterator[str]:
    """Line ends of another system say nothing."""
    if "\r" in text:
        return
    windows = text.replace("\n", "\r\n")
    yield from _differences(
        "with CRLF", (replace(read_review(windows), text=text), replace(read_response(windows), text=text)),
        (review, response),
    )  # fmt: skip


def _with_a_copy(text: str, review: ReadReview, response: ReadResponse) -> Iterator[str]:
    """A copy of the document in a fence before it only moves its lines."""
    before = f"{fenced(text, 'markdown')}\n\n"
    moved = len(LINE_END.split(before)) - 1
    yield from _differences(
        "below a copy in a fence",
        (
            _without_lines(read_review(before + text), moved),
            _without_lines(read_response(before + text), moved),
        ),
        (_without_lines(review, 0), _without_lines(response, 0)),
    )


def fenced(text: str, info: str = "") -> str:
    """The text in a fence that nothing in it closes."""
    fence = "`" * (3 + max(map(len, BACKTICKS.findall(text)), default=0))
    return f"{fence}{info}\n{text}\n{fence}"


def _without_lines(read: ReadReview | ReadResponse, moved: int) -> dict[str, Any]:
    """What was read, with its lines counted from `moved` on; without what names whatever is shown."""
    told = asdict(read)
    for name in ("text", "mentions", "warnings"):
        told.pop(name, None)
    for values in told.values():
        for each in values if isinstance(values, tuple) else ():
            each["line"] -= moved
            each.pop("index", None)
    return told


HEADING = re.compile(r"^(?=#{1,6}[ \t])", re.MULTILINE)


def _indented(text: str, review: ReadReview, response: ReadResponse) -> Iterator[str]:
    """Up to three blanks before a heading say nothing."""
    other = HEADING.sub(" " * (1 + len(text) % 3), text)
    if other == text or "\r" in text:
        return
    yield from _differences(
        "with indented headings",
        (_outline(read_review(other)), [replace(each, text="") for each in read_response(other).answers]),
        (_outline(review), [replace(each, text="") for each in response.answers]),
    )


def _outline(review: ReadReview) -> Any:
    """A review without the words in which a heading may stand."""
    plain: list[Found] = [replace(found, text="", suggestion="", impact="") for found in review.findings]
    states = [replace(state, text="") for state in review.prior]
    return review.verdict, review.raw_verdict, states, plain


def _differences(how: str, one: tuple[Any, Any], other: tuple[Any, Any]) -> Iterator[str]:
    for name, left, right in zip(("review", "response"), one, other, strict=True):
        if left != right:
            yield f"{how} the {name} is read in another way:\n{left!r}\nand not\n{right!r}"


def _words(text: str, review: ReadReview, response: ReadResponse) -> Iterator[str]:
    """What is returned was in the document."""
    words = set(WORD.findall(text.casefold())) | {"finding"}
    for found in review.findings:
        # A title that was cut may end within a word.
        title = found.title if len(found.title) < COLUMN_MAX else found.title.rpartition(" ")[0]
        told = " ".join((title, found.location, found.impact, found.suggestion))
        if not found.code and (new := set(WORD.findall(told.casefold())) - words):
            yield f"words that nobody wrote: {new}"


# --- What stands on the parsers: silence, the whole round, other documents ----------------------------------

OWN_CODES = [code for code in CODES if code.isupper() and code != "GAP-FLOW-001"][::3]
WATCHED = tuple(
    Watched(
        code, number, severity, title="The retry count is off by one", location="Section 3",
        impact="The table has a bar", is_due=number % 5 > 0, is_settled=number % 7 == 0,
    )
    for number, (code, severity) in enumerate(zip(OWN_CODES, cycle([*Severity, None])), start=1)
)  # fmt: skip
ANSWERS = "".join(f"| {each.code} | addressed | done |\n" for each in WATCHED)
TABLE = f"## Response to Reviewer Issues\n\n| Issue | Answer | Change |\n|---|---|---|\n{ANSWERS}\n"


def _silence(text: str, review: ReadReview, response: ReadResponse) -> Iterator[str]:
    """Who answers everything is not silent; who answers nothing is, on what is grave, due and not settled."""
    known = [each.code for each in WATCHED]
    read = read_response(text, known)
    judged = judge_silence(WATCHED, read, text, text[len(text) // 3 :])
    answered = {answer.code for answer in read.answers}
    silent = {flag.ordinal for flag in judged.flags if Heuristic.NO_REFERENCE in flag.heuristics}
    wanted = {
        each.ordinal
        for each in WATCHED
        if each.is_grave and each.is_due and not each.is_settled and each.code not in answered
    }
    if silent != wanted:
        yield f"silent are {sorted(silent)}, and not {sorted(wanted)}"
    if len({flag.ordinal for flag in judged.flags}) != len(judged.flags):
        yield "a finding has two flags"
    polite = TABLE + text
    for flag in judge_silence(WATCHED, read_response(polite, known), polite).flags:
        if Heuristic.NO_REFERENCE in flag.heuristics:
            yield f"{flag.code} is answered, and yet {flag.heuristics}"


def _round(text: str, review: ReadReview, response: ReadResponse) -> Iterator[str]:
    """The whole round can be told in JSON, and says no more than the parsers."""
    told = json.loads(json.dumps(as_json(check_round(text, text, text))))
    if told["verdict"] != (review.verdict or "UNKNOWN"):
        yield f"the round says {told['verdict']}, the review {review.verdict}"
    if [each["line"] for each in told["findings"]] != [found.line for found in review.findings]:
        yield "the round has other findings than its review"
    names = {each["code"] or f"#{each['ordinal']}" for each in told["findings"]}
    if strange := [flag for flag in told["flags"] if flag["finding"] not in names]:
        yield f"flags of no finding: {strange}"


def _other_readers(text: str, review: ReadReview, response: ReadResponse) -> Iterator[str]:
    """The readers of other documents crash no more than these."""
    gate = validate_review(text, ())
    if (
        gate.success
        and not gate.warnings
        and review.verdict is None
        and not review.findings
        and "NO_ISSUES" not in text.upper()
    ):
        yield "a review that says nothing passes its gate"
    if len(read_decisions(text).decisions) > len(LINE_END.split(text)):
        yield "more decisions than lines"
    proposal = read_proposal(text)
    if not set(proposal.addressed) <= set(proposal.mentioned):
        yield f"sections of gaps that are not named: {proposal.addressed}"
    validate_proposal(text, ())


Relation = Callable[[str, ReadReview, ReadResponse], Iterator[str]]
RELATIONS: list[Relation] = [
    _again, _windows, _with_a_copy, _indented, _words, _silence, _round, _other_readers
]  # fmt: skip
# Each of them costs as much as both parsers, so that not every document of a series is put to one.
EVERY = 8
