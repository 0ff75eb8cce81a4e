"""The code that a dispute is about: reading diffs, the lines around a place, colours. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from disputes.protocol.text.diffs import ends_early, unquoted_path
from disputes.web.plain_text import visible

CONTEXT = 7
REMOVED_MAX = 12
LINE_MAX = 400
COLOURED_MAX = 1_500  # lines of a whole diff that get colours

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of code: its number in the new file (a removed one: in the old) and its sign."""

    number: int
    sign: str
    text: str
    html: SafeString = SafeString("")
    is_place: bool = False

    @property
    def change(self) -> str:
        """The sign as a word, for readers and as a class."""
        return {"+": "added", "-": "removed"}.get(self.sign, "")


@dataclass(frozen=True, slots=True)
class Pair:
    """One row of the view side by side: a line before, the line after, or one of both."""

    old: Line | None
    new: Line | None


@dataclass(frozen=True, slots=True)
class Hunk:
    header: str
    lines: list[Line] = field(default_factory=list)

    def pairs(self) -> list[Pair]:
        """Removed lines beside the added ones that follow them; what did not change on both sides."""
        found = _HUNK.match(self.header)
        old = int(found[1]) if found else 1
        rows: list[Pair] = []
        gone: list[Line] = []
        come: list[Line] = []
        for line in self.lines:
            if line.sign == "+":
                come.append(line)
                continue
            if come or (gone and line.sign == " "):
                rows += _beside(gone, come)
                gone, come = [], []
            if line.sign == "-":
                gone.append(line)
            else:
                rows.append(Pair(replace(line, number=old), line))
            old += 1
        return rows + _beside(gone, come)


def _beside(gone: list[Line], come: list[Line]) -> list[Pair]:
    return [Pair(old, new) for old, new in zip_longest(gone, come)]


@dataclass(slots=True)
class FileDiff:
    path: str
    note: str = ""
    added: int = 0
    removed: int = 0
    hunks: list[Hunk] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Diff:
    files: list[FileDiff]
    is_cut: bool

    def of(self, path: str) -> FileDiff | None:
        return next((file for file in self.files if file.path == path), None)


def parse_diff(text: str, max_lines: int = 4000) -> Diff:
    """Read what `git diff` printed, at most so many lines. A cut or malformed end is passed over."""
    files: list[FileDiff] = []
    lines = text.split("\n")
    old = new = old_left = new_left = 0
    for line in lines[:max_lines]:
        file = files[-1] if files else None
        if file and (old_left > 0 or new_left > 0):
            sign = line[:1] or " "
            if sign == "\\":
                continue
            shown = Line(old if sign == "-" else new, sign if sign in "+-" else " ", line[1:])
            file.hunks[-1].lines.append(shown)
            old, old_left = (old, old_left) if sign == "+" else (old + 1, old_left - 1)
            new, new_left = (new, new_left) if sign == "-" else (new + 1, new_left - 1)
            file.added += sign == "+"
            file.removed += sign == "-"
        elif line.startswith("diff --git "):
            files.append(FileDiff(unquoted_path(line.rsplit(" b/", 1)[-1])))
        elif file and (found := _HUNK.match(line)):
            old, old_left, new, new_left = (int(n) if n else 1 for n in found.groups())
            file.hunks.append(Hunk(line))
        elif file:
            _read_header(file, line)
    return Diff(files, is_cut=len(lines) > max_lines or ends_early(text))


def _read_header(file: FileDiff, line: str) -> None:
    """The lines between `diff --git` and the first hunk."""
    if line.startswith("+++ ") and not line.startswith("+++ /dev/null"):
        file.path = unquoted_path(line[4:]).removeprefix("b/")
    elif line.startswith("--- ") and not line.startswith("--- /dev/null"):
        file.path = unquoted_path(line[4:]).removeprefix("a/")
    elif line.startswith("rename from "):
        file.note = f"renamed from {unquoted_path(line[12:])}"
    elif line.startswith("rename to "):
        file.path = unquoted_path(line[10:])
    elif line.startswith("new file"):
        file.note = "new file"
    elif line.startswith("deleted file"):
        file.note = "deleted"
    elif line.startswith("Binary files"):
        file.note = "binary"


# --- The place --------------------------------------------------------------------------------------------


def code_at(*, path: str, line: int | None, excerpt: str, start: int | None, diff: str) -> list[Line]:
    """The lines around a finding's place, with what the submission added and removed there.

    The excerpt is the code as the reviewer saw it. Without one, the hunk that covers the place serves.
    """
    file = parse_diff(diff).of(path) if path else None
    lines = [line for hunk in file.hunks for line in hunk.lines] if file else []
    shown = _with_changes(excerpt.split("\n"), start or 1, lines) if excerpt else _around(lines, line)
    marked = [replace(each, is_place=each.sign != "-" and each.number == line) for each in shown]
    return highlighted(marked, path)


def _with_changes(excerpt: list[str], start: int, changed: list[Line]) -> list[Line]:
    """The excerpt, signed by the diff's lines of the same file."""
    added = {line.number: line.text[:LINE_MAX] for line in changed if line.sign == "+"}
    removed: dict[int, list[Line]] = {}  # by the number of the next line of the new file
    waiting: list[Line] = []
    for line in changed:
        if line.sign == "-":
            waiting.append(line)
        elif waiting:
            removed[line.number], waiting = waiting, []
    shown: list[Line] = []
    for number, text in enumerate(excerpt, start):
        shown += removed.get(number, [])[-REMOVED_MAX:]
        shown.append(Line(number, "+" if added.get(number) == text else " ", text))
    return shown


def _around(lines: list[Line], place: int | None) -> list[Line]:
    for index, line in enumerate(lines):
        if line.sign != "-" and line.number == place:
            return lines[max(0, index - CONTEXT) : index + CONTEXT + 1]
    return []


# --- Colours ----------------------------------------------------------------------------------------------


def highlighted(lines: list[Line], path: str) -> list[Line]:
    """The lines with their colours as Pygments' classes, the old and the new side each read as a whole."""
    lexer = _lexer(path)
    old, new = (iter(_coloured(_side(lines, sign), lexer)) for sign in "-+")
    done = []
    for line in lines:
        html = next(old) if line.sign != "+" else next(new)
        if line.sign == " ":
            html = next(new)
        done.append(replace(line, html=html))
    return done


def coloured(diff: Diff, max_lines: int = COLOURED_MAX) -> Diff:
    """The diff with its colours, as far as it is not too long to read anyway."""
    left = max_lines
    for file in diff.files:
        for index, hunk in enumerate(file.hunks):
            if len(hunk.lines) <= left:
                left -= len(hunk.lines)
                file.hunks[index] = replace(hunk, lines=highlighted(hunk.lines, file.path))
    return diff


def _side(lines: list[Line], side: str) -> list[str]:
    return [visible(line.text.removesuffix("\r")) for line in lines if line.sign in (" ", side)]


def _lexer(path: str) -> Lexer | None:
    try:
        return get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _coloured(texts: list[str], lexer: Lexer | None) -> Iterable[SafeString]:
    """One piece of HTML for each line."""
    if lexer is None:
        return [SafeString(escape(text)) for text in texts]
    rows: list[list[tuple[str, str]]] = [[]]
    for token, value in lexer.get_tokens("\n".join(texts)):
        while token not in STANDARD_TYPES:
            token = token.parent
        first, *others = value.split("\n")
        rows[-1].append((STANDARD_TYPES[token], first))
        rows += [[(STANDARD_TYPES[token], other)] for other in others]
    rows += [[]] * (len(texts) - len(rows))
    return [format_html_join("", "{}", ((_span(name, text),) for name, text in row if text)) for row in rows]


def _span(name: str, text: str) -> SafeString:
    return format_html('<span class="{}">{}</span>', name, text) if name else SafeString(escape(text))
