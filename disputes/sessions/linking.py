"""Which gap a finding of a session is about, and the section that it points to (FND-5)."""

from collections.abc import Callable
from dataclasses import dataclass

from disputes.protocol.reviews.review import Found
from disputes.protocol.rounds.linking import Links
from disputes.protocol.rounds.proposals import ReadProposal, read_proposal
from disputes.protocol.text.documents import Line, scan
from disputes.protocol.text.locations import read_place, same_section
from disputes.sessions import gaps
from tasks.models import Review, Task

EXCERPT_LINES = 24
LINE_MAX = 400


@dataclass(frozen=True, slots=True)
class LinkSubject:
    """A finding's gap, and the document's text at its place, with the number of that text's first line."""

    gap: Task | None
    excerpt: str = ""
    start: int | None = None


def subjects_of(review: Review) -> Callable[[Found], LinkSubject]:
    """Return a function from a finding of the review to its subject, by the review and its document."""
    rows = gaps.by_code(review.submission.task.project)
    proposal = read_proposal(review.submission.response)
    links = Links(scan(review.text), proposal.addressed)

    def subject(found: Found) -> LinkSubject:
        code = links.gap_of(scan(found.text), found.line)
        lines = _section(proposal, code, found.location)
        excerpt = "\n".join(line.text[:LINE_MAX] for line in lines)
        return LinkSubject(rows.get(code), excerpt, lines[0].number if lines else None)

    return subject


def _section(proposal: ReadProposal, code: str, location: str) -> list[Line]:
    """Return the part of the gap's section that the location names, or else the section's beginning."""
    section = next((each for each in proposal.sections if each.gap == code), None)
    if section is None:
        return []
    wanted, chosen = read_place(location).section, list(section.lines)
    for index, line in enumerate(section.lines):
        heading = line.heading
        if heading and same_section(read_place(heading[1]).section, wanted):
            below = section.lines[index + 1 :]
            end = next((place for place, each in enumerate(below) if each.heading), len(below))
            chosen = [line, *below[:end]]
            break
    return chosen[:EXCERPT_LINES]
