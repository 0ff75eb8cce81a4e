"""Reading a review that stands in one fence, or on one line, as if its lines stood apart (FND-1, FND-9)."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from disputes.protocol.reviews.inline_severities import severity_in
from disputes.protocol.text.documents import FENCED, STATED, Line, list_item, scan
from tasks.text.regex import regex

# Points that are counted within a line: "(1) the lock leaks, (2) nothing is tested".
MARKERS = regex(r"(?:^|(?<=[\s,;:.]))(?P<open>\()?(?P<number>[1-9])(?P<close>[.)]|/(?=\s))\s+(?=\S)")
# Points that begin with a tag for their severity: "[HIGH] the lock leaks; [LOW] a typo".
TAGS = regex(r"(?:^|(?<=[\s,;.]))\[(?P<word>[A-Za-z][A-Za-z0-9-]{1,15})\](?!\()\s+(?=\S)")
FENCES = frozenset(["markdown", "md"])  # a fence without a word is an example
LINES_MAX = 3  # of a review that is but a few sentences
AROUND = " \t,;"


def unfolded(text: str, lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines of a review: what is in its only fence if nothing is outside, and each point apart.

    Lines keep their numbers, so that several may have the same one.
    """
    told = [line for line in lines if line.text.strip()]
    if len(told) > 2 and all(line.mode is FENCED for line in told):
        first, last = told[0], told[-1]
        if first.text.strip("`~ \t").lower() in FENCES and not last.text.strip("`~ \t"):
            bare = ["" if line in (first, last) else line.text for line in lines]
            return scan("\n".join(bare))
    if len(told) > LINES_MAX or any(line.heading or line.text.lstrip()[:1] == "|" for line in told):
        return lines
    return [each for line in lines for each in _points(line)]


def _points(line: Line) -> Iterator[Line]:
    begins = _begins(line.text) if line.mode is STATED else []
    if len(begins) < 2:  # noqa: PLR2004
        yield line
        return
    if line.text[: begins[0]].strip(AROUND):
        yield line._replace(text=line.text[: begins[0]].rstrip())
    for number, (begin, end) in enumerate(pairwise([*begins, len(line.text)]), start=1):
        said = line.text[begin:end].strip(AROUND)
        if match := MARKERS.match(said):
            said = said[match.end() :]
        yield line._replace(text=said if list_item(said) else f"{number}. {said}")


def _begins(text: str) -> list[int]:
    """Return where the points of a line begin: they count from one in one way, or begin with a severity."""
    counted: dict[tuple[str | None, str], list[int]] = {}
    for match in MARKERS.finditer(text):
        places = counted.setdefault((match["open"], match["close"]), [])
        if int(match["number"]) == len(places) + 1:
            places.append(match.start())
    longest = max(counted.values(), key=len, default=[])
    tags = [match.start() for match in TAGS.finditer(text) if severity_in(match["word"])]
    return longest if len(longest) > 1 else tags
