"""The documents of a session as its rows hold them, and what they say together."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from disputes.importing.folder import DECISIONS, ENGINEER, REVIEWER, file_of, session_of_files
from disputes.importing.plan import Plan, ReviewDocument, Work, plan_session
from disputes.models import Conflict
from disputes.records import decisions_text
from tasks.models import Review, Submission, Task
from tasks.states import Status

NAME = "session"


def name_of(session: Task) -> str:
    """Return the name of a session's folder: session for the first, session-2 for the second, and so on."""
    before = session.project.tasks.filter(origin=Task.Origin.ROUNDS, number__lt=session.number).count()
    return f"{NAME}-{before + 1}" if before else NAME


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """A document of the session: its row, and its file in the session's folder."""

    row: Submission | Review
    path: str
    text: str


def places_of(session: Task) -> list[DocumentPlace]:
    """Return the documents of the rounds that were not rolled back, in the order in which they were written.

    Several documents of one round are versions: a second reviewer's, a second attempt, the final review. A
    document whose commit has not been checked yet counts if a ruling came before that.
    """
    passed = [Submission.State.VERIFIED]
    if session.status != Status.REVIEW:
        passed.append(Submission.State.KEPT)
    rows = session.submissions.standing().filter(state__in=passed).exclude(response="")
    rows = rows.defer("diff", "specification", "since_last_round").prefetch_related("reviews")
    return list(_numbered(rows.order_by("round", "attempt")))


def _numbered(submissions: Iterator[Submission]) -> Iterator[DocumentPlace]:
    used: dict[int, int] = {}
    for submission in submissions:
        round_ = submission.round
        version = used[round_] = used.get(round_, 0) + 1
        yield DocumentPlace(submission, file_of(ENGINEER, round_, version), submission.response)
        for number, review in enumerate(sorted(submission.reviews.all(), key=lambda row: row.pk)):
            used[round_] = version + number
            yield DocumentPlace(review, file_of(REVIEWER, round_, version + number), review.text)


class Folder:
    """A session's folder, derived from its rows and read as an import would read it (RND-1)."""

    def __init__(self, session: Task) -> None:
        self.session = session
        self.places = places_of(session)

    @cached_property
    def files(self) -> dict[str, str]:
        """The text of each file, by its path in the session's folder."""
        files = {place.path: place.text for place in self.places if place.text.strip()}
        ruled = Conflict.objects.of(self.session).filter(status=Conflict.Status.DECIDED)
        return files | ({DECISIONS: decisions_text(self.session.project)} if ruled.exists() else {})

    @cached_property
    def plan(self) -> Plan:
        """What the documents say, gap by gap. Raises DocumentError if one is too large."""
        found = session_of_files(name_of(self.session), self.files)
        return plan_session(found, self.session.project.config)

    @cached_property
    def rows(self) -> dict[str, Submission | Review]:
        return {place.path: place.row for place in self.places}

    def works(self) -> list[tuple[Submission, Work]]:
        """Return the engineer's documents with what they say about each gap."""
        found = [(self.rows[step.document.path], step) for step in self.plan.steps if isinstance(step, Work)]
        return [(row, step) for row, step in found if isinstance(row, Submission)]

    def judged(self) -> list[tuple[Review, ReviewDocument]]:
        """Return the reviews with their findings and the gaps that they looked at."""
        found = [
            (self.rows[step.document.path], step)
            for step in self.plan.steps
            if isinstance(step, ReviewDocument)
        ]
        return [(row, step) for row, step in found if isinstance(row, Review)]
