"""Core: the comments beside an artifact, as `<artifact>.meta.yaml` (ITM-1).

The format is that of the design: comments with the ids c001, c002, and so on, each with author, timestamp,
target or parent, content, status and resolution; above them, what the item says of a dispute between stages.
What is wrong with a file is reported with its line. What it says of a dispute is for people, and only the
comments are read again.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import yaml

from tasks.configuration.yaml_files import Fault, FaultyFile, Lines, read_plain
from tasks.text.regex import regex

SIZE_MAX = 1024 * 1024
COMMENTS_MAX = 2000
DEPTH_MAX = 5
VALUES_MAX = 20 * COMMENTS_MAX
AUTHOR_MAX = 120
LENGTHS = {"content": 20_000, "target": 300}  # of what may be longer than a name
SUFFIX = ".meta.yaml"
STATUSES = ("open", "resolved")
RESOLUTIONS = ("", "accepted", "rejected")
KEYS = ("id", "author", "timestamp", "target", "parent", "content", "status", "resolution")
REQUIRED = ("id", "author", "timestamp", "content")
ITEM_KEYS = ("issue", "dispute_rounds", "dispute_agents", "status", "flag", "comments")
_ID = regex(r"c[0-9]{3,6}\Z")


@dataclass(frozen=True, slots=True)
class MetaComment:
    """One comment of the file."""

    id: str
    author: str
    timestamp: datetime
    content: str
    target: str = ""
    parent: str = ""
    status: str = "open"
    resolution: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """What the file says of one item, and its comments, oldest first."""

    comments: tuple[MetaComment, ...] = ()
    issue: str = ""
    dispute_rounds: int = 0
    dispute_agents: tuple[str, ...] = ()
    status: str = ""
    flag: str = ""


def artifact_of(target: str) -> str:
    """Return the file that a target names, as tests/247.md in `tests/247.md::test_sum`; empty if none."""
    path = re.split(r"::|#", target.strip(), maxsplit=1)[0].strip()
    parts = path.split("/")
    safe = path and not path.startswith(("/", "~", "-")) and ".." not in parts and "" not in parts
    named = bool(safe) and "." in parts[-1] and re.fullmatch(r"[\w./@+ -]{1,200}", path) is not None
    return path if named and "." not in parts else ""


def artifact_in(text: str) -> str:
    """Return the artifact that the first line of an exported file names; empty if it names none."""
    named = re.match(r"# Artifact: ([^\n]{1,200})\n", text)
    return named[1] if named and artifact_of(named[1]) == named[1] else ""


# --- Writing ----------------------------------------------------------------------------------------------


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and everything else in YAML's usual form."""


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    block = "\n" in text and all(line.isprintable() and line == line.rstrip() for line in text.split("\n"))
    style = "|" if block else None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def write_meta(item: Item, artifact: str = "") -> str:
    """Return the text of the file; `read_meta` reads its comments back."""
    head: dict[str, Any] = {key: value for key in ITEM_KEYS if (value := getattr(item, key))}
    head["comments"] = [_row(comment) for comment in item.comments]
    text: str = yaml.dump(head, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    name = artifact.replace("\n", " ")
    return f"# Artifact: {name}\n# Metadata: {name}{SUFFIX}\n\n{text}" if name else text


def _row(comment: MetaComment) -> dict[str, Any]:
    row: dict[str, Any] = {key: value for key in KEYS if (value := getattr(comment, key))}
    return row | {"timestamp": comment.timestamp.astimezone(UTC).replace(tzinfo=None)}


def numbered(comments: Iterable[MetaComment]) -> tuple[MetaComment, ...]:
    """Return the comments with the ids c001, c002, ... in order; the ids of their parents follow."""
    every = list(comments)
    names = {comment.id: f"c{number:03d}" for number, comment in enumerate(every, 1)}
    return tuple(
        replace(comment, id=names[comment.id], parent=names.get(comment.parent, "")) for comment in every
    )


# --- Reading ----------------------------------------------------------------------------------------------


def read_meta(text: str) -> tuple[MetaComment, ...]:
    """Return the comments in a file. Raises FaultyFile if anything is wrong; then nothing may be used."""
    if not text.strip():
        return ()
    found = read_plain(text, size=SIZE_MAX, depth=DEPTH_MAX, values=VALUES_MAX)
    _refuse_unknown(found, ITEM_KEYS, "the file")
    rows = found.get("comments", [])
    if not isinstance(rows, list):
        raise _faulty(found, "comments is a list: `- id: c001` for each.")
    if len(rows) > COMMENTS_MAX:
        raise _faulty(found, f"there are {len(rows)} comments; {COMMENTS_MAX} are the most.")
    comments: dict[str, MetaComment] = {}
    for row in rows:
        if not isinstance(row, Lines):
            raise _faulty(found, "a comment holds keys with values: `key: value`.")
        comment = _comment(row)
        if comment.id in comments:
            raise _faulty(row, f"{comment.id} stands there twice.")
        if comment.parent and comment.parent not in comments:
            raise _faulty(row, f"{comment.id} answers {comment.parent}, which is not above it.")
        comments[comment.id] = comment
    return tuple(comments.values())


def _faulty(at: Lines, message: str) -> FaultyFile:
    return FaultyFile([Fault(at.line, message)])


def _refuse_unknown(found: Lines, known: Sequence[str], what: str) -> None:
    if unknown := next((word for word in found if word not in known), ""):
        raise _faulty(found, f"{what}: {unknown[:40]} is unknown. Known are {', '.join(known)}.")


def _comment(row: Lines) -> MetaComment:
    _refuse_unknown(row, KEYS, "a comment")
    for key, value in row.items():
        most = LENGTHS.get(key, AUTHOR_MAX)
        if not isinstance(value, str):
            raise _faulty(row, f"{key} is a text.")
        if len(value) > most:
            raise _faulty(row, f"{key} has {len(value)} characters; {most} are the most.")
        if key != "content" and "\n" in value:
            raise _faulty(row, f"{key} is one line of text.")
    if missing := next((key for key in REQUIRED if not row.get(key)), ""):
        raise _faulty(row, f"a comment has no {missing}.")
    if not _ID.match(row["id"]):
        raise _faulty(row, f"{row['id'][:20]!r} is no id; c001 is one.")
    for key, known in (("status", STATUSES), ("resolution", RESOLUTIONS)):
        if row.get(key, known[0]) not in known:
            raise _faulty(row, f"{row['id']}: {key} is one of {', '.join(filter(None, known))}.")
    return MetaComment(**{**row, "timestamp": _moment(row)})


def _moment(row: Lines) -> datetime:
    """Return the comment's time in UTC, which is assumed if no zone is named."""
    try:
        at = datetime.fromisoformat(row["timestamp"])
        if 1970 < at.year < 9000:
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except ValueError:
        pass
    raise _faulty(row, "timestamp is a moment such as 2024-01-17T14:30:00.")
