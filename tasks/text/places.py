"""Core: the line of a file, as text in which its name ends where it should."""

from tasks.text.regex import regex

PLAIN = regex(r"[\w./+-]*[\w+-]\.\w{1,16}|[\w+-]+/[\w./+-]+")


def location_of(path: str, line: int | str | None) -> str:
    """Return the place as path:line, in backticks if nothing else shows that it is one.

    Only the path if the line is unknown; empty if neither is known.
    """
    place = f"{path}:{line}" if path and line else path
    return place if not line or PLAIN.fullmatch(path) or "`" in path else f"`{place}`"
