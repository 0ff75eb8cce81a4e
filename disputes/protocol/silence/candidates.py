"""The findings of a review as the silence check watches them, each with the gap that it is about (FND-5)."""

from collections.abc import Sequence

from disputes.protocol.reviews.review import ReadReview
from disputes.protocol.rounds.linking import Links
from disputes.protocol.rounds.subjects import subject_of
from disputes.protocol.silence.suspicion import Watched
from disputes.protocol.text.documents import scan


def watched_findings(review: ReadReview, proposed: Sequence[str] = ()) -> tuple[Watched, ...]:
    """Return the findings of a review, each with its gap if anything tells which one it is.

    `proposed` are the gaps of the document that was reviewed; if empty, the review says itself what it is
    about. A withdrawn finding counts as settled. Raises DocumentError if the review is too large.
    """
    lines = scan(review.text)
    links = Links(lines, proposed or sorted(subject_of(review.text).gaps))
    watched = []
    for found in review.findings:
        start = max(found.line - 1, 0)
        block = lines[start : start + found.text.count("\n") + 1] if found.line else scan(found.text)
        watched.append(
            Watched(
                code=found.code,
                ordinal=found.ordinal,
                severity=found.severity,
                title=found.title,
                location=found.location,
                impact=found.impact,
                text=found.text,
                gap=links.gap_of(block, found.line),
                is_settled=found.withdrawn,
            )
        )
    return tuple(watched)
