"""Reading a unified diff: which lines of which files changed, and what they say."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from disputes.protocol.text.locations import same_file
from tasks.text.regex import regex

_HUNK = regex(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_ESCAPE = regex(rb'\\([0-7]{3}|["\\abtnvfr])')
_CONTROL = dict(zip(b"abtnvfr", b"\a\b\t\n\v\f\r", strict=True))
CUT = "\\ The rest is not shown: the change is too large.\n"  # the last line of a diff that a host has cut


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit that replaced `removed` lines from line `old` on by `added` lines from line `new` on.

    `is_blank` says that they differ only in blanks within or behind their words.
    """

    old: int
    removed: int
    new: int
    added: int
    is_blank: bool = False


class HunkLine(NamedTuple):
    """One line with its sign and its number: in the old file if it was removed, else in the new one."""

    number: int
    sign: str
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """The lines below one `@@`, as far as the diff has them; `old` is the number of the first old line."""

    header: str
    old: int
    lines: list[HunkLine] = field(default_factory=list)


@dataclass(slots=True)
class FileChange:
    """The change to one file. If there are no edits, it was renamed, is binary, or only its mode changed.

    The modes are git's, such as 120000 for a link; both are empty if the diff does not say.
    """

    path: str
    old_path: str = ""
    old_mode: str = ""
    mode: str = ""
    is_new: bool = False
    is_deleted: bool = False
    is_binary: bool = False
    edits: list[Edit] = field(default_factory=list)
    hunks: list[Hunk] = field(default_factory=list)

    def edited(self, old: int, new: int, lines: list[HunkLine]) -> None:
        """Add the edit by these lines, if any, which ends just before these lines of the two files."""
        removed = [_words(line.text) for line in lines if line.sign == "-"]
        added = [_words(line.text) for line in lines if line.sign == "+"]
        if lines:
            first = old - len(removed), new - len(added)
            self.edits.append(Edit(first[0], len(removed), first[1], len(added), removed == added))

    def moved(self, first: int, last: int) -> tuple[int, int]:
        """Return the first and last line of the new file that correspond to these lines of the old file.

        For lines that were changed, that is everything that replaced them; for lines that were removed, the
        two lines beside the gap.
        """
        new_first, new_last = first, last
        for edit in self.edits:
            end = edit.old + edit.removed  # the first line of the old file after the edit
            if edit.old > last:
                break
            grown = edit.new + edit.added - end
            new_first = first + grown if end <= first else min(new_first, edit.new)
            new_last = last + grown if end <= last else edit.new + edit.added - 1
        return max(min(new_first, new_last), 1), max(new_last, new_first, 1)

    def touches(self, first: int, last: int, near: int = 0) -> bool:
        """Whether a change or a removal lies within `near` lines of these lines of the new file."""
        return any(_meets(edit.new, edit.added, first, last, near) for edit in self.edits)

    def touched(self, first: int, last: int, near: int = 0) -> bool:
        """Whether these lines of the old file, or lines within `near` of them, were changed or removed."""
        told = (edit for edit in self.edits if not edit.is_blank)
        return any(_meets(edit.old, edit.removed, first, last, near) for edit in told)


def _words(line: str) -> tuple[str, list[str]]:
    """Return how a line is indented, and its words."""
    return line[: len(line) - len(line.lstrip())], line.split()


def _meets(start: int, count: int, first: int, last: int, near: int) -> bool:
    """Whether two ranges are at most `near` lines apart; an empty one is the two lines beside the gap."""
    low, high = (start, start + count - 1) if count else (start - 1, start)
    return low - near <= last and first <= high + near


@dataclass(frozen=True, slots=True)
class Changes:
    """The changed files of a diff, by their new paths.

    If the diff `is_cut`, a file that is missing here may have changed all the same.
    """

    files: dict[str, FileChange]
    is_cut: bool = False

    def of(self, path: str) -> FileChange | None:
        """Return the change to a file, by its new or its old path, or None if it is not in the diff."""
        if path in self.files:
            return self.files[path]
        by_name = (
            file
            for file in self.files.values()
            if same_file(file.path, path) or same_file(file.old_path, path)
        )
        return next(by_name, None)


def ends_early(text: str) -> bool:
    """Whether a host has cut the diff. No changed line looks like its note, since each begins with a sign."""
    return f"\n{text}".endswith(f"\n{CUT}")


def read_diff(text: str, *, is_cut: bool = False) -> Changes:
    """Read the output of `git diff`. If it ends in the middle of a hunk, the result is marked as cut."""
    files, is_cut = read_files(text, is_cut=is_cut)
    return Changes({file.path: file for file in files}, is_cut)


def read_files(text: str, *, is_cut: bool = False) -> tuple[list[FileChange], bool]:
    """Return the changed files in the order of the diff, and whether its end is missing.

    A path may occur twice, for example once as the link that was removed and once as the new file.
    """
    reader = _Reader()
    is_cut |= ends_early(text)
    lines = (text.removesuffix(CUT) if is_cut else text).split("\n")
    index = 0
    while index < len(lines):
        match = _HUNK.match(lines[index]) if reader.file else None
        if match and reader.file:
            index, complete = _hunk(reader.file, match, lines, index + 1)
            is_cut |= not complete
        else:
            reader.header(lines[index])
            index += 1
    return reader.files, is_cut


def _hunk(file: FileChange, match: re.Match[str], lines: list[str], index: int) -> tuple[int, bool]:
    """Read one hunk into the file; return the index of the line after it, and whether it is complete."""
    old, old_left, new, new_left = (int(number) if number else 1 for number in match.groups())
    # If one side has no lines, git gives the number of the line before the gap.
    old, new = old + (not old_left), new + (not new_left)
    hunk = Hunk(match.string, old)
    file.hunks.append(hunk)
    changed: list[HunkLine] = []
    while (old_left > 0 or new_left > 0) and index < len(lines):
        sign = lines[index][:1] or " "
        if sign not in {"-", "+", " ", "\\"}:
            break
        if sign != "\\":
            hunk.lines.append(HunkLine(old if sign == "-" else new, sign, lines[index][1:]))
        if sign in {"-", "+"}:
            changed.append(hunk.lines[-1])
        elif sign == " ":
            file.edited(old, new, changed)
            changed = []
        if sign in {"-", " "}:
            old, old_left = old + 1, old_left - 1
        if sign in {"+", " "}:
            new, new_left = new + 1, new_left - 1
        index += 1
    file.edited(old, new, changed)
    return index, old_left <= 0 and new_left <= 0


class _Reader:
    """A reader of the lines between the hunks, which say what file comes next."""

    def __init__(self) -> None:
        self.files: list[FileChange] = []
        self.file: FileChange | None = None

    def _begin(self, path: str) -> FileChange:
        self.file = FileChange(path)
        self.files.append(self.file)
        return self.file

    def header(self, line: str) -> None:
        if line.startswith("diff --git "):
            self._begin(_path_of_both(line[11:]))
        elif line.startswith("--- ") and (self.file is None or self.file.edits):
            self._begin("").old_path = _side(line[4:], "a/")
        elif self.file is None:
            return
        elif line.startswith("--- "):
            self.file.old_path = _side(line[4:], "a/")
        elif line.startswith("+++ "):
            self.file.path = _side(line[4:], "b/") or self.file.old_path
        elif line.startswith("rename from "):
            self.file.old_path = unquoted_path(line[12:])
        elif line.startswith("rename to "):
            self.file.path = unquoted_path(line[10:])
        elif line.startswith(("Binary files ", "GIT binary patch")):
            self.file.is_binary = True
        else:
            self.mode(self.file, line)

    def mode(self, file: FileChange, line: str) -> None:
        """Note what a line says about the file's mode."""
        if line.startswith("new file mode "):
            file.is_new, file.mode = True, line[14:]
        elif line.startswith("deleted file mode "):
            file.is_deleted, file.old_mode = True, line[18:]
        elif line.startswith("old mode "):
            file.old_mode = line[9:]
        elif line.startswith("new mode "):
            file.mode = line[9:]
        elif line.startswith("index ") and line.count(" ") == 2:
            file.old_mode = file.mode = line.rpartition(" ")[2]


def _path_of_both(words: str) -> str:
    """Return the path that stands twice behind `diff --git`; of two paths, the second if that can be told."""
    middle = len(words) // 2
    path = _side(words[:middle], "a/")
    if words[middle : middle + 1] == " " and path == _side(words[middle + 1 :], "b/"):
        return path
    return unquoted_path(words.rsplit(" b/", 1)[-1])


def _side(words: str, prefix: str) -> str:
    path = unquoted_path(words)
    return "" if path == "/dev/null" else path.removeprefix(prefix)


def unquoted_path(words: str) -> str:
    """Return a path that git printed, without the quotes and octal bytes around unusual characters."""
    words = words.split("\t")[0].removesuffix("\r")
    if not words.startswith('"'):
        return words.removesuffix('"')

    def byte(found: re.Match[bytes]) -> bytes:
        code = found[1]
        return bytes([int(code, 8) & 255]) if len(code) == 3 else bytes([_CONTROL.get(code[0], code[0])])

    return _ESCAPE.sub(byte, words.strip('"').encode("utf-8", "replace")).decode("utf-8", "replace")
