"""Where findings begin in sentences: at a place, a number in words, or before a severity (FND-9)."""

import re
from collections.abc import Sequence

from disputes.protocol.reviews.first_lines.places import MAX_PLACE
from disputes.protocol.reviews.first_lines.start import Shape, Start
from disputes.protocol.reviews.inline_severities import IN_PARENTHESES, MAX_READ, first_sentence, severity_in
from disputes.protocol.text.documents import STATED, Line
from disputes.protocol.text.locations import CODED, LINE_NUMBER, is_place
from tasks.text.regex import regex

_PLACE = r"[\w./+-]{0,200}[\w+-]\.\w{1,16}:\d{1,7}(?:[-–:]\d{1,7})?"
# "`src/cache.py:12` Drop the lock", "src/cache.py:57: drop the lock"
LED = regex(
    rf"[*_`]{{0,4}}(?P<place>{_PLACE}|{CODED})[*_`]{{0,4}}"
    r"(?:(?:\s?[:–—]|\s-{1,2})\s+(?=\S)|\s+(?=[A-Z][a-z]+[ ,]))(?P<text>.*)"
)
# A comment on some lines of the file that is named above it: "`12-14`: **Use a context manager.**"
ON_LINES = regex(r"`(?P<place>\d{1,6}(?:-\d{1,6})?)`:\s+\*\*(?P<text>[^*]{3,300})\*\*\s*$")
HAS_PLACE = regex(rf"(?:(?<![\w./+-]){_PLACE}(?!\w)|{CODED})")
ORDINAL = regex(r"(?:First|Second|Third|Fourth|Fifth|Sixth|Finally|Lastly|Next)(?:ly)?(?: of all)?,\s+(?=\S)")
PRAISE = regex(
    r"\W*(?:(?:very|really|so|such|a|an|this|that|i|we|looks?|is|reads|works) )*"
    r"(?:nice|great|good|lovely|excellent|neat|clever|clean|well|love|like|thanks?|lgtm|fine|ok|okay|perfect)"
    r"\b(?!-)",
    re.IGNORECASE,
)
OBJECTION = regex(
    r"\b(?:but|not|no|missing|misses|lacks|should|must|never|however|although|except|wrong)\b|n['’]t\b",
    re.IGNORECASE,
)
# What may follow a severity that ends a clause, and what begins one.
AFTER_CLAUSE = regex(r"\s{0,2}(?:[,;.!:]|[-–—]\s|$|(?:and|but|so|please|which|because|since)\b)")
CLAUSES = regex(
    r"[.!?;:]\s+|\b(?:but|however|except(?: that| for)?|although|though|apart from|besides|yet)\b[\s,]*",
    re.IGNORECASE,
)
# A severity that is a sentence of its own behind another: "The lock leaks here. High."
ALONE = regex(
    r"(?P<said>.*\S[.!])\s+(?:(?:severity|priority)\s?[:=]?\s*)?(?P<word>[A-Za-z0-9]{2,9})[.!]?\s*$",
    re.IGNORECASE,
)
# Words before a severity that say there is nothing of it: "No issues (high)", "None of the findings (high)".
NOTHING = regex(
    r"\b(?:no|none of the|zero|without) (?:\w+ ){0,2}"
    r"(?:blockers?|bugs?|concerns?|defects?|findings?|issues?|points?|problems?)\W{0,2}$|\bnothing\W{0,2}$",
    re.IGNORECASE,
)
# A clause about other times, or about the task itself.
BESIDE = regex(
    r"\bused to\b(?!.{0,200}\bnot\b)|\bwithout (?:this|the) (?:change|fix|patch)\b|^\W*(?:the )?priority\b",
    re.IGNORECASE,
)
DONE = regex(r"\b(?:fixe[sd]|resolved|addressed|gone|closed|done)\b", re.IGNORECASE)
UNDONE = regex(r"\b(?:not|never|still|only|half|partly|partially|nobody|wrong)\b|n['’]t\b", re.IGNORECASE)
# What is asked for behind a point.
DEMAND = regex(r"\b(?:please|fix|must|should|needs?|see|before|change|add|remove)\b", re.IGNORECASE)
MAX_LINES = 6  # of a paragraph, in which its first sentence is looked for
NO_PROSE = frozenset("#|>-+<~")


def with_prose(lines: Sequence[Line], starts: Sequence[Start | None]) -> list[Start | None]:
    """Return the first lines of findings together with those of paragraphs that begin one."""
    found = list(starts)
    for index, line in enumerate(lines):
        if line.mode is not STATED or line.text[:1] in NO_PROSE or not line.text[:1].strip():
            continue
        above = lines[index - 1] if index else line._replace(text="")
        if above.text.strip() and above.mode is STATED and not above.heading:
            continue
        if start := _of_paragraph(lines, starts, index):
            found[index] = start
    return found


def _of_paragraph(lines: Sequence[Line], starts: Sequence[Start | None], index: int) -> Start | None:
    """Return how a paragraph begins a finding, or None; what is read in another way is left alone."""
    text, start = lines[index].text, starts[index]
    if start is not None and (start.shape is not Shape.BOLD or start.coded or start.words or start.field):
        return None
    if LINE_NUMBER.search(text[:MAX_PLACE]) and (led := LED.match(text)):
        words = _only_severity(_paragraph(lines, starts, index))
        return None if _praises(led["text"]) else _start(led["text"], led["place"], *words)
    if text[:1] == "`" and (led := ON_LINES.match(text)):
        return _start(led["text"], led["place"])
    if start is not None:
        return _below_place(lines, starts, index) if start.whole and is_place(start.title) else None
    sentence, word = _severe_clause(_paragraph(lines, starts, index))
    if sentence and not _praises(sentence):
        return _start(sentence, "", word)
    return _loose(text, _only_severity(_paragraph(lines, starts, index)))


def _only_severity(paragraph: str) -> tuple[str, ...]:
    """Return the severity in parentheses that a paragraph states, if it states only one."""
    stated = {words for words in IN_PARENTHESES.findall(paragraph) if severity_in(words)}
    return tuple(stated) if len(stated) == 1 else ()


def _start(title: str, place: str, *words: str) -> Start:
    return Start(Shape.RECORD, title=title[:MAX_READ].strip(), words=words, rest=place, prose=True)


def _loose(text: str, words: tuple[str, ...]) -> Start | None:
    """Return the start of a paragraph that begins a finding only below a request, or None."""
    ordinal = ORDINAL.match(text)
    has_place = LINE_NUMBER.search(text[:MAX_PLACE]) and HAS_PLACE.search(text[:MAX_PLACE])
    if not (ordinal or has_place) or text.rstrip()[-1:] == ":":
        return None
    start = _start(text[ordinal.end() if ordinal else 0 :], "", *words)
    start.loose = True
    return None if _praises(start.title) else start


def _below_place(lines: Sequence[Line], starts: Sequence[Start | None], index: int) -> Start | None:
    """Return the start of a finding whose place stands in bold, alone on its line, above its text."""
    place = lines[index].text.strip("*_` ")
    below = index + 1
    while below < len(lines) and not lines[below].text.strip():
        below += 1
    if not LINE_NUMBER.search(place) or below == len(lines) or starts[below] is not None:
        return None
    text = lines[below].text
    is_text = lines[below].mode is STATED and text[:1] not in NO_PROSE
    return _start(text, place) if is_text and not _praises(text) else None


def _paragraph(lines: Sequence[Line], starts: Sequence[Start | None], index: int) -> str:
    """Return the first lines of a paragraph as one."""
    taken = [lines[index].text.strip()]
    for below in range(index + 1, min(index + MAX_LINES, len(lines))):
        text = lines[below].text.strip()
        if not text or starts[below] is not None or lines[below].mode is not STATED:
            break
        taken.append(text)
    return " ".join(taken)[:MAX_READ]


def _severe_clause(text: str) -> tuple[str, str]:
    """Return the first sentence or the clause that ends with a severity in parentheses, and the severity.

    "LGTM, but the token never expires (high), please fix it." A clause with the only severity counts if it
    objects, stands behind a contrast, or has a demand behind it, unless it tells of what is done.
    """
    if first := first_sentence(text):
        return ("", "") if _is_settled(first[0]) else first
    if (last := ALONE.fullmatch(text)) and severity_in(last["word"]):
        return ("", "") if _is_settled(last["said"]) else (last["said"], last["word"])
    named = [match for match in IN_PARENTHESES.finditer(text) if severity_in(match[1])]
    if len(named) != 1 or not AFTER_CLAUSE.match(text, named[0].end()):
        return "", ""
    before, behind = text[: named[0].start()], text[named[0].end() :]
    *others, clause = CLAUSES.split(before)
    contrast = before[: len(before) - len(clause)].rstrip(" ,")[-1:].isalpha() and bool(others)
    if _is_settled(clause) or not (contrast or OBJECTION.search(clause) or DEMAND.search(behind)):
        return "", ""
    return clause.strip(" \t,:;-–—*_"), named[0][1]


def _is_settled(clause: str) -> bool:
    if NOTHING.search(clause) or BESIDE.search(clause):
        return True
    return DONE.search(clause) is not None and not UNDONE.search(clause)


def _praises(text: str) -> bool:
    return PRAISE.match(text) is not None and OBJECTION.search(text[:MAX_READ]) is None
