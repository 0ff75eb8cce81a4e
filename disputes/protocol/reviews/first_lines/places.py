"""Reading a line that begins with a file, its line, and a severity (FND-1)."""

from disputes.protocol.reviews.first_lines.start import Shape, Start
from disputes.protocol.reviews.inline_severities import MAX_READ, severe_word
from disputes.protocol.text.locations import CODED, LINE_NUMBER
from tasks.text.regex import regex

# A finding that begins with a file and its severity: "`io.rs:14` - **high** - text", "io.go:14: [high] text".
# Without marks it is a checker's word: "io.go:14: warning: text". Below a file's name: "L14 [high] text".
OF_FILE = regex(
    rf"(?:{CODED}|`?(?:[\w./+-]{{0,200}}[\w+-]\.\w{{1,16}}:|L)\d{{1,7}}(?:[-–:]L?\d{{1,7}})?`?)"
    r"[ \t]*(?:[-–—:|][ \t]*){0,2}"
    r"(?:(?:\*\*|[(\[*_]){1,2}(?P<word>[A-Za-z0-9-]{2,16})(?:\*\*|[)\]*_]){1,2}[ \t]*(?:[-–—:|][ \t]*){0,2}"
    r"|(?P<level>[Ee]rror|[Ww]arning):[ \t]+)(?=\S)"
)
# A linter's words for its results, which count if a place follows.
LEVELS = {"error": "high", "warning": "medium", "notice": "low", "note": "low", "info": "low"}
MAX_PLACE = 240  # characters at the beginning of a line in which the place may be


def read_place(text: str, indent: int) -> Start | None:
    """Read a line that begins with a place in a file and a severity; return None for any other line."""
    if not (text[:1] == "L" or LINE_NUMBER.search(text[:MAX_PLACE])) or not (match := OF_FILE.match(text)):
        return None
    if not (word := severe_word(match["word"] or LEVELS[match["level"].lower()])):
        return None
    title = text[match.end() :][:MAX_READ]
    return Start(Shape.TAG, indent, title=title, words=(word,), tag=word, rest=match[0])
