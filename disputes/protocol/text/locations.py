"""Reading where a finding points (a file, its lines, a section), and comparing two such places (ID-6)."""

import re
from dataclasses import dataclass

from tasks.text.places import location_of
from tasks.text.regex import regex

LOCATION_MAX = 500  # characters; a location is one line, and more text says no more about the place
TEXT_MAX = 4_000
PATHS_MAX = 50  # the most paths that are taken from one text
NEAR = 10  # how many lines a place may move between rounds, because code above it grew or shrank
_NAMED = (
    r"(?<![\w./@+-])(?P<path>(?:\.?/)?[\w.@+-]+(?:/[\w.@+-]+)+"
    r"|[\w@+-]+(?:\.[\w@+-]+)*\.[A-Za-z]\w{1,15}(?!\w)|[\w@+-]{2,}\.[A-Za-z]\b)"
)
_PATH = regex(_NAMED)
_LINES = regex(
    r"(?:(?<=[\w)])[:#]L?|\b(?:lines?|ll?\.?)\s*)(?P<first>[0-9]{1,7})"
    r"(?:\s*(?:-|–|—|to|through|\.\.)\s*L?(?P<last>[0-9]{1,7}))?",
    re.IGNORECASE,
)
# A file with its line in backticks, whose name may then hold anything; and the same as all that a text says.
CODED = r"`(?=[^`\n]{0,299}[./])[^`\s:](?:[^`\n]{0,298}?[^`\s])??:\d{1,7}(?:[-–:]\d{1,7})?`"
_CODED = regex(CODED)
_LINE = r"[:#]L?(?P<first>[0-9]{1,7})(?:(?:-|–)L?(?P<last>[0-9]{1,7})|:[0-9]{1,7})?"
_IN_CODE = regex(rf"`(?P<path>[^`\s:](?:[^`\n]{{0,298}}?[^`\s])??)(?:{_LINE})?`")
_ALONE = regex(rf"{_NAMED}(?:{_LINE})?")
# A file and its line in a sentence: "src/a.py:12", "`src/a.py`, line 12", "src/a.py (lines 12-14)".
_AT_LINE = regex(
    rf"{_NAMED}`?(?:[:#]L?|[ ,(]{{1,2}}(?:at |around |on )?(?:lines? |L))(?P<first>[0-9]{{1,7}})(?!\w)"
)
LINE_OF_FILE = regex(r"\.\w{1,16}:[0-9]")
NUMBER = regex(r"[0-9]")
LINE_NUMBER = regex(r":[0-9]")  # contained in nearly every place that names a line
_WHOLE = regex(rf"(?P<path>[^`\s:]\S{{0,299}}?)(?:{_LINE})?")
_SUFFIXED = regex(r"(?:.*/)?\.[\w.-]+|.*\.[A-Za-z]\w{0,7}")
_ANCHOR = regex(r"#(?=[A-Za-z])(?!L\d)")
_WORD = regex(r"\d+(?:\.\d+)+|[^\W_]+")
# Words that say what kind of place it is, not which one.
_KINDS = frozenset(
    {
        "a", "an", "and", "at", "file", "function", "heading", "in", "line", "lines", "method", "of", "on",
        "paragraph", "section", "sections", "see", "step", "the", "to",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """What a location names: a path (or empty), lines (or None) and words.

    `section` holds the words that name a heading, a function or a similar part.
    """

    path: str = ""
    first: int | None = None
    last: int | None = None
    section: frozenset[str] = frozenset()


def read_place(location: str) -> Place:
    """Return the place that a location names: `src/a.py:10-20`, `docs/spec.md, Section 3.2`, `§4.1`."""
    text = location[:LOCATION_MAX].replace("`", "").replace("*", " ").replace("\\", "/")
    path = ""
    if odd := oddly_named(location[:LOCATION_MAX]):
        first = int(odd["first"]) if odd["first"] else None
        last = max(first, int(odd["last"] or first)) if first else None
        return Place(odd["path"].removeprefix("./"), first, last, read_place(odd.string[odd.end() :]).section)
    if found := _PATH.search(text):
        path = found["path"].rstrip(".").removeprefix("./")
        text = (
            f"{text[: found.start()]} {'_' if text[found.end() :][:1] in ':#' else ''}{text[found.end() :]}"
        )
    first = last = None
    if lines := _LINES.search(text):
        first = int(lines["first"])
        last = max(first, int(lines["last"] or first))
        text = f"{text[: lines.start()]} {text[lines.end() :]}"
    words = _WORD.findall(_ANCHOR.sub(" ", text).lower())
    return Place(path, first, last, frozenset(words) - _KINDS)


def place(location: str) -> tuple[str, int | None]:
    """Return the path and the line that a location names; empty and None if it names no file."""
    read = read_place(location)
    return read.path[:300], read.first if read.path else None


def is_place(words: str) -> bool:
    """Whether the words are a file, perhaps with its line, and nothing else."""
    plain = words.replace("`", "").strip()
    return _ALONE.fullmatch(plain) is not None or _CODED.fullmatch(words.strip()) is not None


def line_named(words: str) -> str:
    """Return the first line of a file that some words name; empty if they name none."""
    if (coded := _CODED.search(words)) and oddly_named(coded[0]):
        return coded[0]
    found = _AT_LINE.search(words) if NUMBER.search(words) else None
    return location_of(found["path"].removeprefix("./"), found["first"]) if found else ""


def line_alone(text: str) -> str:
    """Return the line of a file if a text names nothing else: `**src/a.py:12**`, `### src/a.py (line 12)`."""
    found = _AT_LINE.match(plain := text[:LOCATION_MAX].strip(" \t*_`#"))
    return line_named(plain) if found and not plain[found.end() :].strip(" \t-–0123456789)*_`:") else ""


def only_line_named(text: str) -> str:
    """Return the one line of a file that a text names; of several in one file only the file; else nothing."""
    text = text[:TEXT_MAX]
    named = {(found["path"].removeprefix("./"), found["first"]) for found in _AT_LINE.finditer(text)}
    paths = {path for path, _ in named}
    if len(paths) != 1:
        return ""
    return location_of(*named.pop()) if len(named) == 1 else paths.pop()


def oddly_named(location: str) -> re.Match[str] | None:
    """Return the file that begins a location and whose name only the marks around it tell from words.

    It has blanks, brackets or no suffix. Without the number of a line it needs a folder and a suffix.
    """
    text = location.replace("\\", "/").strip(" *")
    found = _IN_CODE.match(text) or _WHOLE.fullmatch(text)
    if found is None or "://" in found["path"] or _PATH.fullmatch(found["path"].removeprefix("./")):
        return None
    has_folder, is_in_code = "/" in found["path"], found[0].startswith("`")
    if _SUFFIXED.fullmatch(found["path"]):
        return found if has_folder or found["first"] else None
    return found if found["first"] and (has_folder or is_in_code) else None


def same_file(one: str, other: str) -> bool:
    """Whether two paths can mean the same file: they are equal, or one is the end of the other."""
    one, other = one.removeprefix("./"), other.removeprefix("./")
    return bool(one and other) and (one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}"))


def same_section(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two section names can mean the same: the longer one contains all words of the shorter one."""
    return bool(one and other) and (one <= other or other <= one)


def same_place(one: Place, other: Place) -> bool | None:
    """Whether two places are the same, with lines at most NEAR apart; None if too little is known."""
    if one.path and other.path and not same_file(one.path, other.path):
        return False
    if bool(one.path) != bool(other.path):
        return None
    if same_section(one.section, other.section):
        return True
    if one.first and other.first:
        ends = one.last or one.first, other.last or other.first
        return one.first - NEAR <= ends[1] and other.first - NEAR <= ends[0]
    return False if one.section and other.section else None


def paths_in(text: str) -> list[str]:
    """Return the files that the first TEXT_MAX characters of a text name, each once, in order."""
    found = (match["path"].rstrip(".").removeprefix("./") for match in _PATH.finditer(text[:TEXT_MAX]))
    return list(dict.fromkeys(found))[:PATHS_MAX]
