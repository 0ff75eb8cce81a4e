"""Reading a line that begins with a severity in brackets or on a badge: "[HIGH] text" (ARB-1)."""

import re

from disputes.protocol.reviews.first_lines.comments import BLOCKS
from disputes.protocol.reviews.first_lines.ids import CODES, SEPARATORS, codes_in_order
from disputes.protocol.reviews.first_lines.start import Shape, Start
from disputes.protocol.reviews.inline_severities import MAX_READ, severity_in
from disputes.protocol.reviews.severity import on_scale, read_severity
from tasks.text.regex import regex

# ARB-1: severities and priorities in capitals. Those in title case count only in a list or a heading.
TAG = regex(
    r"\[(?P<word>[A-Z][A-Z0-9-]{1,15}|Must|Should|Critical|High|Medium|Low|Major|Moderate|Minor|Nit)\](?!\()"
)
# Several tags in a row, of which one states a severity: "[security][high] text".
TAGS = regex(r"(?:\[[A-Za-z0-9 _/-]{1,30}\]){2,4}(?!\()")
# A tag with several words, of which one states a severity: "[BLOCKING:design]", "[severity: high]".
WORDY = regex(r"\[(?P<words>[A-Za-z][^\[\]\n]{2,40})\](?!\()")
BETWEEN = regex(r"\s?[:/,|–—]\s?| - ")
# A tag in small letters, in any language, which counts only in a list: "[minor] text".
BRACKETED = regex(r"\[(?P<word>[a-z]{3,12})\](?!\()[\s:–—-]*(?=\S)")
# The badge of a priority in bold before a title: **![P1 Badge](https://…) Title**
BADGED = regex(
    r"\*\*(?:<sub>){0,2}!\[(?P<word>[^\[\]]{1,40}?)(?: badge)?\]\([^()\s]{1,300}\)(?:</sub>){0,2}"
    r"[ \t]*(?P<title>[^*\s][^*]{0,400})\*\*\s*$",
    re.IGNORECASE,
)


def read_badged(text: str, indent: int) -> Start | None:
    """Read a title in bold behind the badge of its priority."""
    match = BADGED.match(text) if "![" in text[:16] else None
    if not match or not severity_in(match["word"]):
        return None
    return Start(Shape.TAG, indent, title=match["title"], words=(match["word"],), tag=match["word"])


def leading_tag(text: str, shape: Shape) -> tuple[str, int] | None:
    """Return the tag at the beginning of a text that states a severity, and where the tags end (ARB-1)."""
    if (match := TAG.match(text)) and (severity_in(match["word"]) or on_scale(match["word"])):
        if match["word"].isupper() or shape not in (Shape.PLAIN, Shape.BOLD):
            return match["word"], match.end()
    elif match := TAGS.match(text):
        severe = [tag for tag in match[0].strip("[]").split("][") if severity_in(tag)]
        return (severe[-1], match.end()) if severe else None
    elif shape is Shape.ITEM and (match := BRACKETED.match(text)) and read_severity(match["word"]):
        return match["word"], match.end()
    elif match := WORDY.match(text):
        words = _severe_part(match["words"])
        return (words, match.end()) if words else None
    return None


def _severe_part(words: str) -> str:
    """Return the severity among the words of a tag: one in capitals, or behind `severity:`; else nothing."""
    first, *others = BETWEEN.split(words)
    is_labelled = first.lower() in ("severity", "priority")
    parts = others if is_labelled else [first, *others] if others else []
    told = [BLOCKS.get(part.lower(), part if is_labelled or part.isupper() else "") for part in parts]
    severe = [word for word in told if severity_in(word)]
    return severe[0] if len(severe) == 1 else ""


def read_tagged(start: Start, word: str, head: str, rest: str) -> Start:
    """Read a line that begins with a tag (ARB-1); `head` follows the tag, within the bold words if any."""
    title = f"{head} {rest}".strip().lstrip(":*").strip().strip("*").strip()
    if match := CODES.match(title.lstrip("*`[")):
        start.codes = codes_in_order(match["codes"])
        title = title.lstrip("*`[")[match.end() :].lstrip(SEPARATORS)
    if start.shape is not Shape.HEADING:
        start.shape = Shape.TAG
    start.tag, start.words, start.title = word, (on_scale(word) or word,), title[:MAX_READ]
    start.coded = bool(start.codes)
    return start
