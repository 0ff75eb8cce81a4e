"""Recognising lines that begin with a finding, or claim that something was done about it (ANS-1)."""

import re
from bisect import bisect_left

from disputes.protocol.responses.answer_kinds import SYMBOLS, AnswerKind, stated_kind
from disputes.protocol.responses.sections import LineContext, Role, role_of
from disputes.protocol.text.mentions import Span
from tasks.text.regex import regex

MARKS = " \t*_`[(\"'“#~"
# The same without copying the text, since a line may need it for each of thousands of ids.
ONLY_MARKS = regex(rf"[{re.escape(MARKS)}]*")
# What may follow an id that leads a line: its title in parentheses, then a colon, a dash or an arrow.
AFTER_ID = regex(
    r"[*_`\]\)\"”~]{0,4}\s{0,3}(?:\([^()]{0,120}\)|\[[^\[\]]{0,60}\])?[*_`]{0,3}\s{0,3}"
    rf"(?:[:：]|=(?=\s)|-{{1,2}}>?|–|—|→|=>|(?=[{''.join(SYMBOLS)}]))"
)
BOLD = regex(r"(?P<mark>\*\*|__)(?P<text>.{1,300}?)(?P=mark)")
LABEL = regex(r"[*_]{0,2}(?P<label>[A-Za-z][A-Za-z0-9' ]{1,60}?)[*_]{0,2}:[*_]{0,2}\s")
# Words before an id that make a sentence an answer to it: Regarding ISSUE-R1-001: …
RESPONDING = regex(
    r"\W*(?:(?P<sure>regarding|concerning|as\s+for|in\s+response\s+to|re"
    r"|(?:a\s+)?(?:note|remark|update)\s+(?:about|on|to))|from|for|on)\s*:?\s+"
    r"(?:the\s+)?(?:issue\s+|finding\s+)?\W*",
    re.IGNORECASE,
)
# Labels before the findings that a passage answers.
NAMING_LABELS = regex(
    r"(?:reviewer )?(?:issues?|findings?|concerns?|comments?)(?: ids?)?"
    r"|(?:revisions?|changes?|fixes|fixed|resolves|resolved|address(?:es|ed|ing)|closes|responds to"
    r"|(?:in )?response to|re|regarding)(?: (?:the )?(?:issues?|findings?))?"
)
# Words right before or right after an id that claim something was done about it.
CLAIM_BEFORE = regex(
    r"(?:\b(?:address(?:es|ed|ing)?|fix(?:es|ed|ing)?|resolv(?:es|ed|ing)|clos(?:es|ed|ing)|implements"
    r"|respon(?:se|ds|ding) to|repl(?:y|ies) to|answers|as (?:requested|suggested|proposed|asked)"
    r" (?:in|by)|per)\s+(?:the\s+)?(?:reviewer(?:'s)?\s+)?(?:issues?\s+|findings?\s+|feedback\s+)?(?:in\s+)?)"
    r"[*_`\[(\"]{0,4}$",
    re.IGNORECASE,
)
CLAIM_AFTER = regex(
    r"[*_`\]]{0,4}\s+(?:fix(?:ed|es)?|clarification|resolution|resolved|addressed|response)\b"
    r"(?!\s+(?:by|in|with|requires|needs))",
    re.IGNORECASE,
)
SUBJECT_CLAIM = regex(
    r"[*_`\])]{0,4}(?:\s*\([^()]{0,80}\))?\s+(?:is|was|are|were|ha(?:s|ve|d) been)\s+(?P<rest>.{1,80})",
    re.IGNORECASE,
)
# Words before several findings of which a sentence speaks: "All of <id> to <id> are done".
ALL_OF = regex(
    rf"[{re.escape(MARKS)}]{{0,8}}(?:(?:all|both)(?: of)?(?: the)?(?: findings?| issues?| points?)?"
    rf"|findings|issues|points)\s+[{re.escape(MARKS)}]{{0,8}}",
    re.IGNORECASE,
)
# Words with which a sentence about several findings leaves some of them out.
RESERVING = regex(
    r"\b(?:but|except\w*|apart|aside|other|besides|excluding|save|only|part(?:ly|ially)|not|never|some|most|mostly"
    r"|almost|nearly|half)\b",
    re.IGNORECASE,
)
SENTENCE_PART = regex(r"[^.;!?]*")
# Words right before a finding that take it out of what is said of the others.
EXCEPTING = regex(
    r"\b(?:except(?:ing)?(?: for)?|apart from|aside from|other than|besides|excluding|save for|but for|not"
    r"|(?:all|everything|anything|every|each|any|none|nothing)(?: \w{1,20}){0,3} but)\s+(?:the\s+)?"
    r"(?:issues?\s+|findings?\s+)?[*_`\[(\"]{0,4}$",
    re.IGNORECASE,
)
EXCEPTION = regex(
    r"\b(?:except(?:ing)?|apart from|aside from|other than|excluding|but (?:for|not|the)|save for|not the)\b",
    re.IGNORECASE,
)
NEAR_EXCEPTION = 40  # how many characters behind such words the finding may stand that they except
UNDONE = regex(
    r"\b(?:not|never|cannot|n't|without|instead of|rather than|to|would|could|should|might|may|will|must|if"
    r"|before|until|when|unless)(?:\s+\w+){0,1}\s*$",
    re.IGNORECASE,
)
AFTER_TITLE = regex(r"[^|:–—→]{1,120}?(?::|–|—|→|=>|\s-{1,2}>?\s)")
# What may come between two findings of one claim: resolves <id> (limits) and <id>.
JOINED = regex(
    r"[*_`\])]{0,4}\s{0,2}(?:\([^()]{0,80}\))?\s{0,2}(?:,\s?(?:and\s)?|and\s|&\s?|\+\s?)\s?[*_`\[(]{0,4}"
)
# A number that may name one of several findings, and what is said of it.
NUMBER = regex(r"(?<![\w.-])(?:(?:ISSUE-)?R\d{1,2}-|#)?(?P<number>\d{3})(?![\w.%]|-\d)", re.IGNORECASE)
OF_NUMBER = regex(
    r"[*_`)\]]{0,4}\s{0,2}[:=–—-]?\s{0,2}(?:(?:is|are|was|were|has been|only|just|still|remains?)\s+){0,3}"
    r"(?P<said>[^,;.()]{1,80})",
    re.IGNORECASE,
)
NOT_DONE = regex(r"\W*not(?: (?:yet|done))?\W*", re.IGNORECASE)
# One of several findings is taken out without being named.
SOME = regex(
    r"\b(?:one|some|(?:the )?(?:first|second|third|last|others?))\b[^.;]{0,40}"
    r"\b(?:only|part|partly|partially|not|deferred|later|open|declined|skipped)\b",
    re.IGNORECASE,
)
QUOTES = frozenset("\"'“”")
CLOSED = regex(r"[^()\[\]]{0,60}[)\]]")
UNRELATED = regex(
    r"\b(?:see|depends|related|blocked|unlike|cf|duplicate|same as|open|remaining)\b", re.IGNORECASE
)


def after_leading_id(text: str, start: int, span: Span) -> int:
    """Return where the words after the id begin, if the id leads the text from `start` on; else 0."""
    if text[start : span.start].strip(MARKS):
        return 0
    match = AFTER_ID.match(text, span.end)
    return match.end() if match else 0


def after_titled_id(text: str, start: int, span: Span, place: LineContext) -> int:
    """Return the same for an id that is followed by a title: `- ISSUE-R1-001 retry prompt: fixed`."""
    if span.weak or text[start : span.start].strip(MARKS):
        return 0
    if text.startswith("**", span.end) or text.startswith("__", span.end):
        return span.end + 2
    late = AFTER_TITLE.match(text, span.end)
    if late and stated_kind(text[late.end() :]):
        return late.end()
    if start and place.role is Role.RESPONSE:
        return span.end
    return 0


def after_bold_id(text: str, start: int, span: Span) -> int:
    """Return where the words begin after bold text that opens the line and names the finding; else 0."""
    match = BOLD.match(text, start)
    if not match or not match.start("text") <= span.start < match.end("text"):
        return 0
    before = match["text"][: span.start - match.start("text")]
    if (span.weak and before.strip(MARKS) and not CLAIM_BEFORE.search(before)) or UNRELATED.search(before):
        return 0
    return match.end() + len(text[match.end() :]) - len(text[match.end() :].lstrip(" :-–—"))


def label_before(text: str, start: int, span: Span) -> tuple[str, AnswerKind | None] | None:
    """Return the label before the id and the answer it gives: `Issue: <id>`, `Deferred: <id>`.

    The answer is None if the label only names findings; the whole is None if no such label is there.
    """
    match = LABEL.match(text, start)
    if not match or match.end() > span.start:
        return None
    label = match["label"].strip().lower()
    before = text[match.end() : span.start]
    if before.strip(MARKS) and not CLAIM_BEFORE.search(before):
        return None
    if NAMING_LABELS.fullmatch(label):
        return label, None
    kind = stated_kind(label)
    if kind is None:
        role, kind = role_of(label)
        if role is not Role.RESPONSE:
            return None
    return label, kind or AnswerKind.ADDRESSED


def after_responding(text: str, start: int, span: Span) -> int:
    """Return where the words begin behind "Regarding <id>:"; else 0."""
    match, led = RESPONDING.fullmatch(text, start, span.start), AFTER_ID.match(text, span.end)
    if match and led:
        return led.end()
    return span.end if match and match["sure"] and text[span.end :].lstrip("*_`)] ")[:1] == "," else 0


def claimed_kind(text: str, start: int, span: Span) -> AnswerKind | None:
    """Return what a sentence claims about a finding: `Fixes <id>`, `(<id> fix)`, `<id> was deferred`."""
    before = text[max(start, span.start - 80) : span.start]
    if match := CLAIM_BEFORE.search(before):
        undone = UNDONE.search(before[: match.start()])
        if not undone or (undone[0].lower().strip() == "to" and not before[: undone.start()].strip(MARKS)):
            return AnswerKind.ADDRESSED
    if CLAIM_AFTER.match(text, span.end) and not UNDONE.search(before):
        return AnswerKind.ADDRESSED
    return _subject_kind(text, start, span)


def _subject_kind(text: str, start: int, span: Span) -> AnswerKind | None:
    """Return what a sentence that begins with findings says of them: `<id> was deferred`."""
    leads = ONLY_MARKS.fullmatch(text, start, span.start) is not None
    if len(span.codes) > 1:
        return _of_all(text, span) if leads or ALL_OF.fullmatch(text, start, span.start) else None
    if leads and not span.weak and (match := SUBJECT_CLAIM.match(text, span.end)):
        return stated_kind(match["rest"])
    return None


def _of_all(text: str, span: Span) -> AnswerKind | None:
    """Return what a sentence says of all of several findings; None if it may leave one out (ANS-5)."""
    match = SUBJECT_CLAIM.match(text, span.end)
    said = SENTENCE_PART.match(match["rest"]) if match else None
    return stated_kind(said[0]) if said and not RESERVING.search(said[0]) else None


def excepted_codes(text: str, spans: list[Span]) -> frozenset[str]:
    """Return the findings that a line takes out of what it says of others (ANS-5).

    If it makes an exception without naming it by an id, that may be any of several findings before it.
    """
    found: set[str] = set()
    begins: list[int] = []  # where the findings begin that an exception names
    before: Span | None = None
    for span in spans:
        is_next = before is not None and JOINED.fullmatch(text, before.end, span.start) is not None
        before = None
        if is_next or EXCEPTING.search(text[max(0, span.start - 80) : span.start]):
            found.update(span.codes)
            begins.append(span.start)
            before = span
    unnamed = [
        match.start()
        for match in EXCEPTION.finditer(text)
        if not _any_between(begins, match.end(), match.end() + NEAR_EXCEPTION)
    ]
    for span in spans:
        if len(span.codes) > 1 and unnamed and span.end <= unnamed[-1]:
            found.update(span.codes)
    return frozenset(found)


def kinds_apart(text: str, span: Span) -> dict[str, AnswerKind | None]:
    """Return what an answer to several findings says of single ones: "fixed (002 only in part)" (ANS-5).

    If it says something else of one without naming it, it answers none of them: each is None.
    """
    if len(span.codes) == 1:
        return {}
    numbers = {code.rpartition("-")[2]: code for code in span.codes}
    found: dict[str, AnswerKind | None] = {}
    for match in NUMBER.finditer(text):
        if (code := numbers.get(match["number"])) and (said := OF_NUMBER.match(text, match.end())):
            kind = stated_kind(said["said"])
            if kind or NOT_DONE.fullmatch(said["said"]):
                found[code] = kind or AnswerKind.DISCARDED
    return found if found or not SOME.search(text) else dict.fromkeys(span.codes)


def _any_between(places: list[int], first: int, last: int) -> bool:
    """Whether one of these places, which ascend, lies between two others."""
    at = bisect_left(places, first)
    return at < len(places) and places[at] <= last


def closes(text: str, start: int, span: Span) -> bool:
    """Whether an entry in a list of changes names the finding in parentheses: `- Added limits (<id>)`.

    An entry that is only a quotation does not count.
    """
    words = text[start : span.start].strip(" *_`([")
    quotes = words[:1] in QUOTES and words[-1:] in QUOTES
    return not span.weak and CLOSED.match(text, span.end) is not None and not quotes
