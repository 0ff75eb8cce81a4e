"""Which gap a finding of a session is about (FND-5)."""

from collections.abc import Callable

from disputes.protocol.reviews.review import Found
from disputes.protocol.rounds.linking import Links
from disputes.protocol.rounds.proposals import read_proposal
from disputes.protocol.text.documents import scan
from disputes.sessions import gaps
from tasks.models import Review, Task


def gaps_of_findings(review: Review) -> Callable[[Found], Task | None]:
    """For each finding of a review its gap, by the review's words and the document that it is about."""
    rows = gaps.by_code(review.submission.task.project)
    proposed = read_proposal(review.submission.response).addressed
    links = Links(scan(review.text), proposed)
    return lambda found: rows.get(links.gap_of(scan(found.text), found.line))
