"""Which document shows an agent the form that is due, and how often each source helped (EX-1 to EX-8)."""

from collections.abc import Iterator

from disputes.protocol.rounds import retries
from disputes.protocol.rounds.examples import Earlier, Example
from disputes.protocol.rounds.validation import Form
from tasks.models import Review, Submission, Task

EARLIER_MAX = 20  # how many documents are considered


def earlier(session: Task, form: Form) -> list[Earlier]:
    """Return the session's own documents of that form, as candidates for an example (EX-2)."""
    return list(_proposals(session) if form is Form.PROPOSAL else _reviews(session))


def _proposals(session: Task) -> Iterator[Earlier]:
    rows = session.submissions.standing().filter(state=Submission.State.VERIFIED).exclude(response="")
    for row in rows.order_by("-pk")[:EARLIER_MAX]:
        accepted = _led_to_acceptance(session, row)
        yield Earlier(Form.PROPOSAL, row.response, row.pk, row.round, accepted=accepted)


def _led_to_acceptance(session: Task, submission: Submission) -> bool:
    """Whether a gap was accepted in the round of this document."""
    judged = session.events.filter(kind="round_judged", data__round=submission.round)
    return any(event.data.get("accepted") for event in judged)


def _reviews(session: Task) -> Iterator[Earlier]:
    rows = Review.objects.standing().filter(submission__task=session).exclude(text="")
    for row in rows.select_related("submission").order_by("-pk")[:EARLIER_MAX]:
        yield Earlier(Form.REVIEW, row.text, row.pk, row.submission.round)


def first(session: Task, form: Form) -> Example | None:
    """Return the example for a first prompt, or None."""
    return retries.first_example(form, earlier(session, form), session.project.config)
