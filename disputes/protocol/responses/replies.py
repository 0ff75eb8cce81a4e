"""Finding the reply below a quoted finding, as people answer in threads and mails (ANS-6)."""

import re
from typing import NamedTuple

from disputes.protocol.responses import leading_ids
from disputes.protocol.responses.answer_kinds import DEEDS, AnswerKind
from disputes.protocol.responses.arguments import answer_kind
from disputes.protocol.text.documents import QUOTED, STATED, Line
from disputes.protocol.text.mentions import Names, Span
from tasks.text.regex import regex

QUOTE_MARKS = " \t>"
# "Added one.", "Moved it below the update."
DONE_FIRST = regex(
    rf"\W*(?:i\s+|we\s+)?(?:{'|'.join(sorted(DEEDS))}|moved|renamed|removed|replaced|rewrote)\b(?!\s+my\b)",
    re.IGNORECASE,
)
# A part of a finding or of a form, which is no sentence: "Fix: …", "**Status:** …".
LABEL = regex(r"[*_]{0,3}(?:fix|status|resolution|response|verdict)[*_]{0,3}:", re.IGNORECASE)


class Reply(NamedTuple):
    """What the text below a quote says became of the finding that the quote begins with."""

    span: Span
    kind: AnswerKind
    text: str


def reply_below(lines: list[Line], index: int, names: Names) -> Reply | None:
    """Return the reply to the finding with which a quote begins at this line, or None.

    The quote is about this finding alone, and the text right below it begins with what became of the finding.
    """
    if not _is_quote(lines[index]) or (index and _is_quote(lines[index - 1])):
        return None
    span = _leading(lines[index].text, names)
    if span is None or len(span.codes) > 1:
        return None
    text = _text_below(lines, index, names)
    if not text or names.spans(text) or LABEL.match(text):
        return None
    kind = answer_kind(text) or (AnswerKind.ADDRESSED if DONE_FIRST.match(text) else None)
    return Reply(span, kind, text) if kind else None


def _text_below(lines: list[Line], index: int, names: Names) -> str:
    """Return the first line of the text below a quote; empty if there is none, or the quote names others."""
    below = index + 1
    while below < len(lines) and _is_quote(lines[below]):
        if _leading(lines[below].text, names):
            return ""
        below += 1
    told = next((lines[at] for at in range(below, len(lines)) if lines[at].text.strip()), None)
    return told.text.strip() if told and told.mode is STATED and not told.heading else ""


def _is_quote(line: Line) -> bool:
    return line.mode is QUOTED and line.text.lstrip()[:1] == ">"


def _leading(text: str, names: Names) -> Span | None:
    """Return the finding with which the text of a quoted line begins, or None."""
    plain = text.lstrip(QUOTE_MARKS)
    spans = names.spans(plain)
    if not spans or plain[: spans[0].start].strip(leading_ids.MARKS):
        return None
    led = not spans[0].weak or leading_ids.after_leading_id(plain, 0, spans[0])
    return spans[0] if led else None
