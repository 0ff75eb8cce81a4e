"""The gate of documents: what each must have before anybody works on it (VAL-1 to VAL-5).

It takes the place of build and tests, and answers at once, so that the agent can fix the form in the same
run. A run that ends without a document that passed is tried again with instructions about what to fix
(VAL-8).
"""

from collections.abc import Iterable
from typing import Any

from disputes.protocol.responses.response import ReadResponse, read_response
from disputes.protocol.reviews.review import read_review
from disputes.protocol.reviews.verdicts import says_no_issues
from disputes.protocol.rounds.partial import Cause, Delivered, delivery, read_no_issues
from disputes.protocol.rounds.validation import (
    Failure,
    FailureType,
    Validation,
    validate_proposal,
    validate_review,
    verdict_of,
)
from disputes.protocol.text.documents import scan
from disputes.sessions import findings, gaps
from tasks.errors import Invalid, Refused
from tasks.models import Task

FORM = "malformed_document"


def read_document(session: Task, document: Any) -> ReadResponse:
    """Read an engineer's document for the session's round (RND-2).

    It answers findings by their codes or by the codes that reviewers printed; other codes are ignored. Raises
    Refused("malformed_document").
    """
    text = document if isinstance(document, str) else ""
    made, validation = delivered(session, text)
    read = read_response(text, list(findings.by_printed_code(session))) if text.strip() else None
    found = [*_failures(made, validation), *(_of_blocks(read) if read else ())]
    if found:
        raise _refusal(session, "proposal", found, validation)
    assert read is not None  # noqa: S101  (an empty document has been refused)
    known = findings.by_printed_code(session)
    return ReadResponse(
        tuple(answer for answer in read.answers if answer.code in known),
        tuple(block for block in read.disagreements if block.code in known),
        read.text, read.mentions, read.warnings, read.elsewhere,
    )  # fmt: skip


def delivered(session: Task, text: str) -> tuple[Delivered, Validation]:
    """Return what a document delivers for the round's gaps, and the result of the gate."""
    known = list(gaps.by_code(session.project))
    validation = validate_proposal(text, known, session.project.config)
    assigned = [gap.gap for gap in gaps.assigned(session)]
    return delivery(text, assigned, known, validation), validation


def _failures(made: Delivered, validation: Validation) -> list[Failure]:
    """Return what must be fixed. A document that only says which input is missing needs no other form."""
    if made.cause is Cause.EXPLICIT_BLOCK:
        return [each for each in validation.failures if each.type is FailureType.INCONSISTENT_REFS]
    if made.cause is Cause.DOMAIN_GAP:
        return [Failure(FailureType.UNCERTAIN, f"nothing is proposed: {made.uncertain}", refs=made.missing)]
    if made.cause is Cause.UNCLEAR_ASSIGNMENT and not validation.failures:
        reason = f"it proposes nothing for {', '.join(made.missing)}"
        return [Failure(FailureType.NO_GAPS_ADDRESSED, reason, refs=made.missing)]
    return list(validation.failures)


def _of_blocks(read: ReadResponse) -> Iterable[Failure]:
    """Yield a failure for each disagreement that a person could not rule on (DIS-2)."""
    for block in read.disagreements:
        if block.is_draft:
            reason = f"`## DISAGREE: {block.code or '?'}`: {', '.join(block.problems)}"
            yield Failure(FailureType.WRONG_FORMAT, reason, block.line, (f"## DISAGREE: {block.code}",))


def check_review(session: Task, document: Any) -> None:
    """Let a reviewer's document pass, or raise Refused("malformed_document").

    A review that found nothing lists the gaps that it looked at, and its checklist (PART-1).
    """
    text = document if isinstance(document, str) else ""
    known = list(gaps.by_code(session.project))
    validation = validate_review(text, known)
    found = list(validation.failures)
    if not found and says_no_issues(scan(text)) and not read_review(text).findings:
        found = [
            Failure(FailureType.WRONG_FORMAT, f"NO_ISSUES_FOUND: {problem}", refs=("NO_ISSUES_FOUND",))
            for problem in read_no_issues(text, known).problems
        ]
    if found:
        raise _refusal(session, "review", found, validation)


def _refusal(session: Task, what: str, found: list[Failure], validation: Validation) -> Refused:
    ordered = verdict_of(found).failures
    return Invalid(
        FORM, f"The {what} of {session.ref} does not have the form that a round needs.",
        "Mend every point of the list, and hand in the whole document again. Nothing of it was taken.",
        details=[
            {"line": each.line, "reason": each.message, "type": str(each.type), "refs": list(each.refs)}
            for each in [*ordered, *validation.warnings]
        ],
    )  # fmt: skip
