"""What a task names as its source, read from a commit: a document of the repository, or one section of it."""

import re

from agents.hosts.git.mirror import Mirror
from disputes.protocol.text.documents import MAX_BYTES, scan

SOURCE_MAX = 32 * 1024  # characters that prompts show
SECTION_MAX = MAX_BYTES // 4


def read(mirror: Mirror, sha: str, source: str) -> str:
    """The text behind docs/SPEC.md#login in that commit; empty where there is none."""
    path, _, anchor = source.partition("#")
    text = mirror.read(sha, path, SOURCE_MAX * 4) if path else None
    return section_of(text, anchor) if text and anchor else text or ""


def section_of(text: str, anchor: str) -> str:
    """The part of a Markdown document below the heading that the anchor names; all of it if there is none."""
    lines = scan(text[:SECTION_MAX])
    wanted = _slug(anchor)
    start = level = 0
    for index, line in enumerate(lines):
        if not (heading := line.heading):
            continue
        if level and heading[0] <= level:
            return "\n".join(part.text for part in lines[start:index])
        if not level and _slug(heading[1]) == wanted:
            start, level = index, heading[0]
    return "\n".join(part.text for part in lines[start:]) if level else text


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
