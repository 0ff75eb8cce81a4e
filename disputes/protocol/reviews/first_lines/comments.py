"""Reading a comment on code that begins with a word for its kind: "issue (blocking): …" (FND-1)."""

import re

from disputes.protocol.reviews.first_lines.start import Shape, Start
from disputes.protocol.reviews.inline_severities import MAX_READ, severity_in
from tasks.text.regex import regex

# Comments on code that begin with a word for their kind: "issue (blocking): …", "nitpick: …".
COMMENT = regex(
    r"(?P<kind>issue|problem|suggestion|todo|chore|polish|typo|nit(?:pick)?|(?:non-)?blocking|blocker)\s?(?:\((?P<said>[^()]{1,60})\))?:\s+"
)
# Kinds that are also the label of a part of a finding, unless something in parentheses follows.
LABELS_TOO = frozenset(["issue", "problem", "suggestion", "todo", "chore", "polish", "typo"])
# Kinds that say nothing about how severe a comment is.
OF_ANY_SEVERITY = frozenset(["issue", "problem"])
BLOCKS = {"blocking": "high", "non-blocking": "low"}


def kind_of_comment(text: str) -> re.Match[str] | None:
    """Match the word for its kind at the beginning of a comment on code."""
    match = COMMENT.match(text)
    return match if match and (match["said"] or match["kind"] not in LABELS_TOO) else None


def read_comment(match: re.Match[str], text: str, indent: int = 0) -> Start:
    """Read a comment on code that begins with a word for its kind."""
    kind = match["kind"]
    said = [part.strip().lower() for part in (match["said"] or "").split(",")]
    stated = [BLOCKS.get(part, part) for part in said if part in BLOCKS or severity_in(part)]
    of_kind = BLOCKS.get(kind) or (kind if severity_in(kind) else "nit")
    words = stated[-1:] or ([] if kind in OF_ANY_SEVERITY else [of_kind])
    return Start(Shape.TAG, indent=indent, title=text[match.end() :][:MAX_READ], words=tuple(words), tag=kind)
