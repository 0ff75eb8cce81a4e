"""Reading the severity beside a finding's title: before or after it, in parentheses, between bars (FND-1)."""

import re

from disputes.protocol.reviews.fields import Field, before_comment
from disputes.protocol.reviews.first_lines.signs import CIRCLES
from disputes.protocol.reviews.headings import SCALED, severities_of
from disputes.protocol.reviews.severity import on_scale, read_severity, severity_of
from disputes.protocol.text.locations import is_place
from tasks.states import Severity, severity_rank
from tasks.text.regex import regex

# A severity before a title: "Minor: the name differs", "HIGH - no retry".
PREFIX = regex(
    r"(?P<word>(?:critical|high|medium|low|major|moderate|minor|nit(?:pick)?|P[0-4]|S[0-4]|sev[ -]?[0-4])"
    r"(?: (?:priority|severity|risk|issue|concern))?(?=\s*:|\s+[-–—]\s)"
    r"|(?:must(?:[ -](?:fix|have))?|should(?:[ -]fix)?|could|nice[ -]to[ -]have|(?:non-)?blocking|blocker)"
    r"(?=\s*:\s)"
    r"|(?:kritisch|hoch|mittel|niedrig|gering|cr[ií]tic[oa]|grave|alt[oa]|medio|menor|baj[oa]|leve"
    r"|majeure?|mineure?)(?=\s*:|\s+[-–—]\s))(?:\s*:|\s+[-–—])\s+",
    re.IGNORECASE,
)
# Every word for a severity contains one of these.
SEVERE = regex(
    r"\b(?:crit|high|med|low|maj|mod|min|nit|nice|must|should|import|trivial|cosmetic|block|P[0-4]|could|consider|option|info|suggest|krit|hoch|mittel|niedrig|gering|cr[ií]t|grave|alt[oa]\b|baj[oa]\b|leve\b|[ée]lev|moyen|faible|S[0-4]\b|sev|cvss)",
    re.IGNORECASE,
)
# Words that state a severity only as they are written here.
EXACT = {
    **dict.fromkeys(["BLOCKER", "Blocker", "blocker"], Severity.CRITICAL),
    **dict.fromkeys(["BLOCKING", "Blocking"], Severity.HIGH),
    **dict.fromkeys(["NON-BLOCKING", "Non-blocking"], Severity.LOW),
    "OPTIONAL": Severity.LOW, "INFO": Severity.LOW, "SUGGESTION": Severity.LOW,
}  # fmt: skip
# A count of findings, which is the severity of none: "0 critical, 1 high", "2x P1", "high: 3".
TALLY = regex(r"\W*(?:\d{1,3}(?:\s|\s?[x×]\s?)[A-Za-z]|[A-Za-z]{3,10}\d?\s?[:=]\s?\d)")
SCALE_MIN = 3  # different severities; who names so many explains a scale
# A severity in capitals before a title: "HIGH (security): text", "BLOCKER - text", "HIGH src/a.py:3 text".
LOUD = regex(
    r"(?P<word>CRITICAL|BLOCKER|BLOCKING|HIGH|MAJOR|MEDIUM|MODERATE|LOW|MINOR|NIT|OPTIONAL"
    r"|MUST|SHOULD|COULD|P[0-4]|(?:SEV|Sev)[ -]?[0-4])\b"
    r"(?:(?:\s?\((?P<more>[^()]{1,40})\))?\s?(?::|[-–—|](?=\s))\s+(?=\S)"
    r"|\s+(?=`?[\w./+-]{0,200}[\w+-]\.\w{1,8}:\d))"
)
ITALIC = regex(r"[*_](?P<word>[A-Za-z][A-Za-z0-9 -]{1,20})(?::[*_]|[*_]\s?[:–—-])\s+")  # "*High*: text"
DOTTED = regex(r"\[[A-Z]{0,3}\d{1,2}(?:\.\d{1,2})+\]\s+")
# What may come right after an id: ISSUE-R1-001 [H]
INITIALS = {"C": "critical", "H": "high", "M": "medium", "L": "low"}
INLINE = regex(
    r"(?:[\s–—.,;-]+[*_]{0,2}(?:severity|priority)[*_]{0,2}:[*_]{0,2}|\s?[:,;–—-]\s+(?:severity|priority)\s)\s*",
    re.IGNORECASE,
)
IN_PARENTHESES = regex(r"\(([^()]{2,24})\)")
# The end of a sentence, and what is in parentheses right before it, if anything.
SENTENCE_END = regex(r"\((?P<word>[^()]{2,24})\)(?:[.!]+(?=\s+[A-Z`\"'(]|\s*$)|\s*$)|[.!?](?=\s+[A-Z`\"'(])")
DASHES = (" - ", " – ", " — ", " -- ")
GROUPS = {"(": ")", "[": "]"}
BAR = regex(r"[|·]")
MAX_TITLE = 500
MAX_READ = 4 * MAX_TITLE  # how many characters of a line are read as its title
MAX_END = 60  # the last characters of a title, in which its severity may be


def severity_in(words: str) -> Severity | None:
    """Return the severity in words beside a title, such as `High Risk` or `Implementability Risk: MEDIUM`."""
    if not SEVERE.search(words):
        return severity_of(CIRCLES.get(words.strip(" *_\ufe0f"), ""))
    if TALLY.match(words) or _is_scale(words):
        return None
    plain = before_comment(words.strip(" *_`."))
    if severity := EXACT.get(plain) or read_severity(plain):
        return severity
    before, colon, after = words.strip(" *_`.").partition(":")
    if colon and len(before) < 40:
        plain = before_comment(after)
    return read_severity(plain) or max(severities_of(plain), key=severity_rank, default=None)


def _is_scale(words: str) -> bool:
    """Whether the words name the severities that there are, as in `critical/high/medium/low`."""
    named = {severity_of(word) or on_scale(word) for word in SCALED.findall(words.lower())}
    return len(named - {None}) >= SCALE_MIN


def severe_word(label: str) -> str:
    """Return the word for the severity of a label; of one that only says whether it blocks, its meaning.

    It is empty if the label states none.
    """
    return label if severity_in(label) else next(iter(severities_of(label, blocking=True)), "")


def field_severity(field: Field) -> Severity | None:
    """Return the severity that a labelled line of a finding states: `MEDIUM`, `MUST be settled first`."""
    if field.name not in ("severity", "assessment"):
        return None
    if severity := severity_in(field.text) or on_scale(field.text.strip(" *_`.")):
        return severity
    first = field.text.strip(" *_`").partition(" ")[0].strip(".,:;*_`")
    return read_severity(first) if field.name == "severity" or first.isupper() else None


def take_prefix(title: str, words: list[str]) -> str:
    """Return a title without the severity before it, as in "Minor: the name differs"; add that to `words`."""
    if title[:1] == "(" and (match := IN_PARENTHESES.match(title)) and severity_in(match[1]):
        words.append(match[1])
        return title[match.end() :].lstrip(" :–—-")
    if title[:1] == "[" and (match := DOTTED.match(title)):
        title = title[match.end() :]  # a number, and no title: "[F1.1] HIGH: text"
    if title[:1] in ("*", "_") and (match := ITALIC.match(title)) and severity_in(match["word"]):
        words.append(match["word"])
        return title[match.end() :]
    if match := PREFIX.match(title) or LOUD.match(title):
        words.append(match["word"])
        return title[match.end() :]
    return title


def take_groups(text: str, words: list[str], notes: list[str]) -> str:
    """Return a text without the parentheses and brackets at its beginning.

    Those with a severity are added to `words`, other short ones to `notes`.
    """
    for _ in range(3):
        plain = text.lstrip(" *:")
        close = GROUPS.get(plain[:1])
        end = plain.find(close, 1, MAX_END) if close else -1
        if end < 0 or plain[end + 1 : end + 2] == "(":
            break
        inner = plain[1:end]
        inner = INITIALS.get(inner, inner)
        if severity_in(inner):
            words.append(inner)
        elif inner.isupper() or len(inner) <= 20:
            notes.append(inner)
        else:
            break
        text = plain[end + 1 :]
    return text


def take_bars(text: str, words: list[str]) -> str:
    """Return a text without the severities among its parts between bars or dots; add them to `words`."""
    if "|" not in text and "·" not in text:
        return text
    first = BAR.split(text[:MAX_READ], maxsplit=1)[0].strip(" *")
    if first and (len(first) > MAX_END or not severity_in(first)):
        return text
    parts = [part.strip(" *") for part in BAR.split(text[:MAX_READ]) if part.strip(" *")]
    severe = [part for part in parts if len(part) <= MAX_END and severity_in(part)]
    words += severe
    return ": " + " ".join(part for part in parts if part not in severe) if severe else text


def take_end(title: str, words: list[str]) -> tuple[str, bool]:
    """Return a title without the severity at its end, and whether there was one; add that to `words`.

    A place in parentheses may follow the severity, and stays in the title.
    """
    place = last if (last := _last_group(title)) and is_place(last.strip("()[]` ")) else ""
    told = title[: len(title) - len(place)].rstrip()
    end = _labelled_end(told) or _bracketed_end(told) or _dashed_end(told) or first_sentence(told)
    if end is None:
        return title, False
    before, word = end
    words.append(word)
    return f"{before} {place}".rstrip(), True


def first_sentence(text: str) -> tuple[str, str] | None:
    """Return the first sentence of a text and the severity in parentheses at its end, or None.

    "The lock is released too early (high). A second consumer may take the same job." A sentence that names
    several severities is about something else.
    """
    end = SENTENCE_END.search(text) if ")" in text else None
    if not end or not end["word"] or not severity_in(end["word"]):
        return None
    sentence = text[: end.start()].rstrip()
    return None if any(map(severity_in, IN_PARENTHESES.findall(sentence))) else (sentence, end["word"])


def _last_group(title: str) -> str:
    """Return the parentheses or brackets at the end of a title, with what is in them; empty without any."""
    if title[-1:] not in (")", "]"):
        return ""
    begin = title.rfind("(" if title[-1] == ")" else "[")
    return title[begin:] if begin > 0 else ""


def _labelled_end(title: str) -> tuple[str, str] | None:
    """Return a title and the labelled severity at its end, as in `Retry never stops, severity: high`."""
    if "everity" not in title and "riority" not in title:
        return None
    parts = INLINE.split(title, maxsplit=1)
    if len(parts) < 2 or not severity_in(parts[1]):
        return None
    return parts[0].rstrip(" -–—"), parts[1].strip(" *_")


def _bracketed_end(title: str) -> tuple[str, str] | None:
    """Return a title and the severity in brackets at its end, as in `Retry never stops (high)`."""
    if title[-1:] not in (")", "]", "*", "`", "."):
        return None
    plain = title.rstrip(" *`.")
    for opening, closing in GROUPS.items():
        start = plain.rfind(opening, max(len(plain) - MAX_END, 0)) if plain.endswith(closing) else -1
        if start >= 0 and severity_in(plain[start + 1 : -1]):
            return plain[:start].rstrip(" *:-–—"), plain[start + 1 : -1]
    return None


def _dashed_end(title: str) -> tuple[str, str] | None:
    """Return a title and the severity after a dash at its end, as in `Retry never stops - HIGH`."""
    end = title[-MAX_END:]
    if not any(dash in end for dash in (" - ", " -- ", "–", "—")):
        return None
    for dash in DASHES:
        before, found, after = title.rpartition(dash)
        stressed = after[:1] in "*_`"  # lower-case words must be stressed: - **critical**
        after = after.strip(" *_`.")
        if found and (stressed or after[:1].isupper()) and len(after) <= 24 and severity_in(after):
            return before.rstrip(" *"), after
    return None
