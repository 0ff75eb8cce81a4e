"""Reading a folder of rounds: `round_NNN/{engineer,reviewer}.md` and their `_v2` files. No Django."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from disputes.protocol.text.documents import MAX_BYTES
from tasks.text.regex import regex

ENGINEER, REVIEWER = "engineer", "reviewer"
DECISIONS = "decisions.md"
ROUND_MAX, VERSION_MAX = 999, 99
SESSIONS_DEEP = 3  # how many levels below the given folder a session may lie
_ROUND = regex(r"round[_-]?(?P<number>\d{1,4})", re.IGNORECASE)
_FILE = regex(r"(?P<role>engineer|coder|reviewer)(?:_v(?P<version>\d{1,3}))?\.md", re.IGNORECASE)

_PASTED = regex(r"={3,}[ \t]+(?P<path>[\w./-]{1,120})[ \t]*=*[ \t]*")


@dataclass(frozen=True, slots=True)
class Document:
    """One file of a round. `path` is relative to the given folder; `version` is 1 without a `_v`."""

    role: str
    round: int
    version: int
    path: str
    text: str
    sha256: str

    @property
    def place(self) -> tuple[int, int, int]:
        """The document's place in the session: the engineer's comes before its review, and v2 after both."""
        return self.round, self.version, (ENGINEER, REVIEWER).index(self.role)


@dataclass(frozen=True, slots=True)
class Trouble:
    """A file or folder that could not be read or was passed over, and why."""

    path: str
    reason: str


@dataclass(slots=True)
class SessionFolder:
    """The rounds of one folder, in the order in which they were written.

    A session with an `unreadable` file cannot be imported, because later documents depend on earlier ones.
    """

    name: str
    documents: list[Document] = field(default_factory=list)
    decisions: Document | None = None
    unreadable: list[Trouble] = field(default_factory=list)
    passed_over: list[Trouble] = field(default_factory=list)


class FolderError(ValueError):
    """The path is not a folder, or the folder holds no rounds."""


def read_folder(root: Path) -> list[SessionFolder]:
    """Return the sessions in a folder: the folder itself if it holds rounds, else the folders below that do.

    Links are never followed. Raises FolderError if there is nothing to read.
    """
    if not root.is_dir():
        raise FolderError(f"{root} is not a folder.")
    try:
        sessions = [_read_session(root, folder) for folder in _session_folders(root, SESSIONS_DEEP)]
    except OSError as error:
        raise FolderError(f"{error.filename or root} cannot be read: {error.strerror}.") from error
    if not sessions:
        raise FolderError(f"{root} holds no folder round_001, round_002, and so on.")
    return sessions


def session_of_files(name: str, files: Mapping[str, str]) -> SessionFolder:
    """Return the session that consists of these files, given by paths such as round_001/engineer.md.

    Files with other names, and with numbers that no round or version has, are passed over.
    """
    session = SessionFolder(name)
    for path, text in sorted(files.items()):
        folder, _, file = path.rpartition("/")
        numbered, named = _ROUND.fullmatch(folder.rpartition("/")[2]), _FILE.fullmatch(file)
        digest = sha256(text.encode()).hexdigest()
        if file.lower() == DECISIONS and not numbered:
            session.decisions = Document("", 0, 0, path, text, digest)
        elif not (numbered and named):
            session.passed_over.append(Trouble(path, "it is neither engineer.md nor reviewer.md of a round"))
        elif not (1 <= (round_ := int(numbered["number"])) <= ROUND_MAX):
            session.passed_over.append(Trouble(path, f"rounds are numbered from 1 to {ROUND_MAX}"))
        elif not (1 <= (version := int(named["version"] or 1)) <= VERSION_MAX):
            session.passed_over.append(Trouble(path, f"versions go from 1 to {VERSION_MAX}"))
        else:
            role = REVIEWER if named["role"].lower() == REVIEWER else ENGINEER
            session.documents.append(Document(role, round_, version, path, text, digest))
    session.documents.sort(key=lambda document: document.place)
    return session


def session_of_text(name: str, text: str) -> SessionFolder:
    """Return the session whose files were pasted, each below a line such as `=== round_001/engineer.md`."""
    files: dict[str, list[str]] = {}
    twice, before = [], []
    path = ""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if heading := _PASTED.fullmatch(line):
            path = heading["path"]
            if path in files:
                twice.append(Trouble(path, f"it begins twice, again in line {number}"))
            files[path] = []
        elif path:
            files[path].append(line)
        elif line.strip():
            before.append(Trouble(f"line {number}", "it stands before the first line that names a document"))
    session = session_of_files(name, {path: "\n".join(lines) for path, lines in files.items()})
    session.passed_over += before
    session.unreadable += [*twice, *_faults(session)]
    return session


def _faults(session: SessionFolder) -> Iterator[Trouble]:
    """Yield why documents of people are refused: an empty text, or two for the same part of a round."""
    seen: dict[tuple[int, int, int], str] = {}
    for document in session.documents:
        if (first := seen.setdefault(document.place, document.path)) != document.path:
            yield Trouble(document.path, f"{first} stands for the same part of the round")
    for written in filter(None, [*session.documents, session.decisions]):
        if not written.text.strip() or "\0" in written.text:
            yield Trouble(written.path, "it is empty, or no text")


def file_of(role: str, round_: int, version: int) -> str:
    """Return the path of a round's document in the session's folder."""
    return f"round_{round_:03d}/{role}{f'_v{version}' if version > 1 else ''}.md"


def _session_folders(folder: Path, deep: int) -> Iterator[Path]:
    below = [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.is_symlink()]
    if any(_ROUND.fullmatch(path.name) for path in below):
        yield folder
    elif deep:
        for path in below:
            yield from _session_folders(path, deep - 1)


def _read_session(root: Path, folder: Path) -> SessionFolder:
    files: dict[str, str] = {}
    unreadable: list[Trouble] = []
    for path in _files_of(folder):
        place = path.relative_to(root).as_posix()
        is_read = _FILE.fullmatch(path.name) or path.name.lower() == DECISIONS
        try:
            files[place] = _text_of(path) if is_read else ""
        except OSError as error:
            unreadable.append(Trouble(place, f"{error.strerror}"))
        except ValueError as error:
            unreadable.append(Trouble(place, f"{error}"))
    name = folder.name if folder == root else folder.relative_to(root).as_posix()
    session = session_of_files(name, files)
    session.unreadable += [*unreadable, *_faults(session)]
    return session


def _files_of(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        is_round = _ROUND.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
        yield from sorted(path.iterdir()) if is_round else [path]


def _text_of(path: Path) -> str:
    """Return the file's text. Raises OSError and ValueError; links, pipes and devices are never opened."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is no plain file")
    if found.st_size > MAX_BYTES:
        raise ValueError(f"it has {found.st_size} bytes; {MAX_BYTES} are the limit")
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        raw = file.read(MAX_BYTES + 1)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: {error.reason} at byte {error.start}") from error
