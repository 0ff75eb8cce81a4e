"""The code that a dispute is about: reading diffs, the lines around a place, colours. Pure."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import zip_longest
from pathlib import PurePosixPath

from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from disputes.protocol.text.diffs import FileChange, ends_early, read_files
from tasks.text.unseen import visible

CONTEXT = 7
REMOVED_MAX = 12
LINE_MAX = 400
LINK, SUBMODULE = "120000", "160000"
PROSE = frozenset({".adoc", ".asciidoc", ".markdown", ".md", ".org", ".rst", ".tex", ".txt"})
COLOURED_MAX = 1_500  # how many lines of a whole diff get colours
COLOURED_LINE_MAX, COLOURED_SECONDS = 500, 1.0  # characters of a line, and for one piece of code
# An agent chooses a file's name and thereby who reads it. Some of Pygments' readers never end, or take hours
# for one line; these were tried with what is hard for readers, and are quick on lines of that length.
LANGUAGES = frozenset(
    {
        "Bash", "Batchfile", "C", "C#", "C++", "CMake", "CSS", "Clojure", "Dart", "Diff", "Docker",
        "Elixir", "Erlang", "F#", "Go", "GraphQL", "Groovy", "HTML", "Haskell", "INI", "JSON",
        "JSX", "Java", "JavaScript", "Julia", "Kotlin", "LessCss", "Lua", "Makefile", "Markdown",
        "OCaml", "PHP", "Perl", "PowerShell", "Properties", "Protocol Buffer", "Python", "Ruby",
        "Rust", "SCSS", "SQL", "Scala", "Swift", "TOML", "TSX", "Terraform", "Transact-SQL",
        "TypeScript", "Vue", "XML", "YAML", "Zig", "reStructuredText",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CodeLine:
    """One line of code with its sign, and its number in the new file, or in the old one if it was removed."""

    number: int
    sign: str
    text: str
    html: SafeString = SafeString("")
    is_place: bool = False

    @property
    def change(self) -> str:
        """The sign as a word, shown to screen readers and used as a CSS class."""
        return {"+": "added", "-": "removed"}.get(self.sign, "")

    @property
    def shown(self) -> SafeString:
        """The line as HTML: coloured if it was read, else as text with hidden characters spelled out."""
        return self.html or escape(visible(self.text))


@dataclass(frozen=True, slots=True)
class Pair:
    """One row of the side-by-side view: the line before, the line after, or both."""

    old: CodeLine | None
    new: CodeLine | None


@dataclass(frozen=True, slots=True)
class ShownHunk:
    header: str
    old: int  # the number of its first line in the old file
    lines: list[CodeLine] = field(default_factory=list)

    def pairs(self) -> list[Pair]:
        """Pair removed lines with the added ones that follow them; unchanged lines appear on both sides."""
        old = self.old
        rows: list[Pair] = []
        gone: list[CodeLine] = []
        come: list[CodeLine] = []
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


def _beside(gone: list[CodeLine], come: list[CodeLine]) -> list[Pair]:
    return [Pair(old, new) for old, new in zip_longest(gone, come)]


@dataclass(slots=True)
class FileDiff:
    path: str
    note: str = ""
    added: int = 0
    removed: int = 0
    hunks: list[ShownHunk] = field(default_factory=list)

    @property
    def is_prose(self) -> bool:
        return is_prose(self.path)


@dataclass(frozen=True, slots=True)
class Diff:
    files: list[FileDiff]
    is_cut: bool

    def of(self, path: str) -> FileDiff | None:
        return next((file for file in self.files if file.path == path), None)


def is_prose(path: str) -> bool:
    """Whether the lines of the file are sentences, which wrap."""
    return PurePosixPath(path).suffix.lower() in PROSE


def parse_diff(text: str, max_lines: int = 4000) -> Diff:
    """Read at most so many lines of what `git diff` printed. A cut or malformed end is ignored."""
    lines = text.split("\n")
    is_cut = len(lines) > max_lines or ends_early(text)
    files, is_cut = read_files("\n".join(lines[:max_lines]), is_cut=is_cut)
    return Diff([_as_shown(file) for file in files], is_cut)


def _as_shown(file: FileChange) -> FileDiff:
    is_program = [mode.endswith("755") for mode in (file.old_mode, file.mode)]
    words = {
        f"renamed from {file.old_path}": file.old_path not in {"", file.path},
        "new file": file.is_new,
        "deleted": file.is_deleted,
        "binary": file.is_binary,
        "link": LINK in {file.old_mode, file.mode},
        "submodule": SUBMODULE in {file.old_mode, file.mode},
        "executable": is_program == [False, True],
        "no longer executable": is_program == [True, False] and not file.is_deleted,
    }
    return FileDiff(
        file.path,
        ", ".join(word for word, holds in words.items() if holds),
        sum(edit.added for edit in file.edits),
        sum(edit.removed for edit in file.edits),
        [ShownHunk(hunk.header, hunk.old, [CodeLine(*line) for line in hunk.lines]) for hunk in file.hunks],
    )


# --- Rows of a table --------------------------------------------------------------------------------------
# These are no templates, because a page may show thousands of lines.

EMPTY = "<br>"  # without it, whoever copies code gets no empty lines


def rows_of(lines: Iterable[CodeLine], pin: str = "") -> SafeString:
    """Return a row for each line, and below the place of a finding another one with `pin`."""
    rows = []
    for line in lines:
        change, sign = line.change, ""
        if change:
            sign = f'<span aria-hidden="true">{line.sign}</span><span class="for-readers">{change}</span>'
        rows.append(
            f'<tr class="{change}{" is-place" if line.is_place else ""}">'
            f'<td class="code-number">{line.number}</td><td class="code-sign">{sign}</td>'
            f'<td class="code-text"><code>{line.shown or EMPTY}</code></td></tr>'
        )
        if line.is_place and pin:
            rows.append(f'<tr class="code-pin"><td></td><td></td><td>{escape(pin)}</td></tr>')
    return SafeString("\n".join(rows))


def split_rows_of(pairs: Iterable[Pair]) -> SafeString:
    """Return a row for each pair: number and code before, number and code after."""
    return SafeString("\n".join(f"<tr>{_half(pair.old)}{_half(pair.new)}</tr>" for pair in pairs))


def _half(line: CodeLine | None) -> str:
    if line is None:
        return '<td class="code-number"></td><td class="code-text is-none"><code></code></td>'
    change = line.change
    word = f'<span class="for-readers">{change}</span>' if change else ""
    return (
        f'<td class="code-number {change}">{line.number}</td>'
        f'<td class="code-text {change}">{word}<code>{line.shown or EMPTY}</code></td>'
    )


# --- The place --------------------------------------------------------------------------------------------


def code_at(*, path: str, line: int | None, excerpt: str, start: int | None, diff: str) -> list[CodeLine]:
    """Return the lines around a finding's place, with what the submission added and removed there.

    The excerpt is the code as the reviewer saw it. Without one, the lines come from the diff around the
    place.
    """
    file = parse_diff(diff).of(path) if path else None
    lines = [line for hunk in file.hunks for line in hunk.lines] if file else []
    shown = _with_changes(excerpt.split("\n"), start or 1, lines) if excerpt else _around(lines, line)
    marked = [replace(each, is_place=each.sign != "-" and each.number == line) for each in shown]
    return highlighted(marked, path)


def _with_changes(excerpt: list[str], start: int, changed: list[CodeLine]) -> list[CodeLine]:
    """Return the excerpt, marked with the changes of the diff in the same file."""
    added = {line.number: line.text[:LINE_MAX] for line in changed if line.sign == "+"}
    removed: dict[int, list[CodeLine]] = {}  # by the number of the next line in the new file
    waiting: list[CodeLine] = []
    for line in changed:
        if line.sign == "-":
            waiting.append(line)
        elif waiting:
            removed[line.number], waiting = waiting, []
    shown: list[CodeLine] = []
    for number, text in enumerate(excerpt, start):
        shown += removed.get(number, [])[-REMOVED_MAX:]
        shown.append(CodeLine(number, "+" if added.get(number) == text else " ", text))
    return shown


def _around(lines: list[CodeLine], place: int | None) -> list[CodeLine]:
    for index, line in enumerate(lines):
        if line.sign != "-" and line.number == place:
            return lines[max(0, index - CONTEXT) : index + CONTEXT + 1]
    return []


# --- Colours ----------------------------------------------------------------------------------------------


def highlighted(lines: list[CodeLine], path: str) -> list[CodeLine]:
    """Return the lines coloured with Pygments' classes; old and new side are each read as a whole."""
    old, new = (iter(_coloured(_side(lines, sign), path)) for sign in "-+")
    done = []
    for line in lines:
        html = next(old) if line.sign != "+" else next(new)
        if line.sign == " ":
            html = next(new)
        done.append(replace(line, html=html))
    return done


def coloured(diff: Diff) -> Diff:
    """Return the diff with colours, except hunks beyond the limit of lines, or of time."""
    left, until = COLOURED_MAX, time.monotonic() + COLOURED_SECONDS
    for file in diff.files:
        for index, hunk in enumerate(file.hunks):
            if len(hunk.lines) <= left and time.monotonic() < until:
                left -= len(hunk.lines)
                file.hunks[index] = replace(hunk, lines=highlighted(hunk.lines, file.path))
    return diff


def _side(lines: list[CodeLine], side: str) -> tuple[str, ...]:
    return tuple(visible(line.text.removesuffix("\r")) for line in lines if line.sign in (" ", side))


def _lexer(path: str) -> Lexer | None:
    try:
        found = get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return found if found.name in LANGUAGES else None


@lru_cache(maxsize=64)  # both sides of what did not change are the same, and a card is looked at by many
def _coloured(texts: tuple[str, ...], path: str) -> tuple[SafeString, ...]:
    """Return one piece of HTML for each line, without colours if reading them would take too long."""
    bare = tuple(SafeString(escape(text)) for text in texts)
    lexer = _lexer(path)
    if lexer is None or any(len(text) > COLOURED_LINE_MAX for text in texts):
        return bare
    until = time.monotonic() + COLOURED_SECONDS
    rows: list[list[tuple[str, str]]] = [[]]
    for token, value in lexer.get_tokens("\n".join(texts)):
        if time.monotonic() > until:
            return bare
        while token not in STANDARD_TYPES:
            token = token.parent
        first, *others = value.split("\n")
        rows[-1].append((STANDARD_TYPES[token], first))
        rows += [[(STANDARD_TYPES[token], other)] for other in others]
    rows += [[]] * (len(texts) - len(rows))
    return tuple(
        format_html_join("", "{}", ((_span(name, text),) for name, text in row if text)) for row in rows
    )


def _span(name: str, text: str) -> SafeString:
    return format_html('<span class="{}">{}</span>', name, text) if name else SafeString(escape(text))
