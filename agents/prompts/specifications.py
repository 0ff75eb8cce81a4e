"""Reads the document, or the section of one, that a task names as its source."""

from agents.hosts.git.mirror import Mirror
from disputes.protocol.text import chapters
from disputes.protocol.text.documents import MAX_BYTES, scan

SOURCE_MAX = 32 * 1024  # characters that prompts show
SECTION_MAX = MAX_BYTES // 4


def read(mirror: Mirror, sha: str, source: str) -> str:
    """Return the text of a source such as docs/SPEC.md#login in that commit; empty if there is none."""
    path, _, anchor = source.partition("#")
    text = mirror.read(sha, path, SOURCE_MAX * 4) if path else None
    return section_of(text, anchor) if text and anchor else text or ""


def section_of(text: str, anchor: str) -> str:
    """Return the part of a Markdown document below the heading that the anchor names, or else all of it."""
    lines = scan(text[:SECTION_MAX])
    found = chapters.named(chapters.chapters(lines), anchor)
    return "\n".join(line.text for line in lines[found.start : found.end]) if found else text
