"""A session played in rows: what agents would hand in is taken as the API takes it, without processes."""

from typing import Any

from django.db import transaction

from disputes import intake, opening
from disputes.models import Conflict, Flag
from disputes.protocol.reviews.review import read_review
from disputes.sessions import gaps, handing_in, turns
from tasks.database.locking import locked
from tasks.events import Actor
from tasks.models import Project, Submission, Task
from tests.factories import create_project, create_task, sha

ENGINEER, REVIEWER = Actor("run", "engineer"), Actor("run", "reviewer")


def document_project(slug: str = "spec", **more: Any) -> Project:
    """A project of documents without a gap."""
    settings = {"undo_seconds": 0} | more.pop("settings", {})
    return create_project(slug, kind=Project.Kind.DOCUMENTS, settings=settings, **more)


def gap_in(project: Project, code: str, severity: str = "medium", **more: Any) -> Task:
    more.setdefault("title", f"{code}: what holds at the edge?")
    return create_task(project, gap=code, severity=severity, **more)


@transaction.atomic
def tick(project: Project) -> Task:
    """What a tick does for the session; the session."""
    turns.advance(locked(Project.objects).get(pk=project.pk))
    session = gaps.session_of(project)
    assert session is not None
    return session


def propose(session: Task, text: str) -> Task:
    """Hand in an engineer's document, as verified as its commit will be. Raises Refused."""
    response = handing_in.read_document(session, text)
    number = session.submissions.count() + 1
    submission = Submission(task=session, sha=sha(number), base_sha=sha(0), by_agent=ENGINEER.label)
    intake.take_submission(submission, response, intake.check_response(session, response), actor=ENGINEER)
    Submission.objects.filter(pk=submission.pk).update(state=Submission.State.VERIFIED)
    return tick(session.project)


def review(session: Task, text: str, *, by: Actor = REVIEWER, waiting_for: tuple[str, ...] = ()) -> Task:
    """Hand in a reviewer's document; its verdict says whether it approves. Raises Refused."""
    handing_in.check_review(session, text)
    read = read_review(text)
    last = session.last_submission()
    assert last is not None
    approves = read.verdict is not None and "APPROVED" in read.verdict.name
    intake.take_review(last, read, approves=approves, actor=by, waiting_for=waiting_for)
    return tick(session.project)


def section(gap: str, words: str = "") -> str:
    """One gap's part of a proposal that passes the gate."""
    return f"""\
## Gap Resolution: {gap}

**Confidence:** HIGH

### Proposed Solution

The limit of {gap} is 30 seconds, and 12 hours at most. A request beyond it gets status 401 with the code
session_ended, and the page keeps what was typed until its user sends it again. {words}

### Examples

**Example 1: it goes on.** At 10:00 and at 10:29 it is alive.

**Example 2: the edge.** At 10:31 it gets 401.

### Trade-offs

- Pro: one rule.
- Con: some type again.
"""


def proposal(*codes: str, answers: tuple[str, ...] = (), more: str = "", new: str = "None") -> str:
    rows = "".join(f"| {code} | addressed | It says so now, with a value. |\n" for code in answers)
    table = f"## Response\n\n| Finding | Answer | What was done |\n|---|---|---|\n{rows}\n" if rows else ""
    return table + "\n".join(map(section, codes)) + f"\n### New Gaps Introduced\n\n{new}\n\n{more}\n"


def verdict(word: str, rows: dict[str, str], *found: tuple[str, str, str]) -> str:
    """A review: verdicts by gap, and findings as code, gap and title."""
    points = "".join(
        f"- **{code}**: {title}\n  - **Gap:** {gap}\n  - **Location:** Proposed Solution\n"
        "  - **Impact:** It stops in the night.\n  - **Suggestion:** Name the hour.\n"
        for code, gap, title in found
    )
    table = "".join(f"| {gap} | {said} |\n" for gap, said in rows.items())
    return f"""\
## Review: {", ".join(rows)}

### High Priority

{points or "None."}

## The gaps

| Gap | Verdict |
|---|---|
{table}
## Verdict: {word}
"""


def flagged(project: Project, code: str) -> tuple[Task, Conflict]:
    """The session of a gap whose finding was answered, though a card asks whether that was enough.

    The review of that answer comes next.
    """
    back = "NEEDS_REVISION"
    gap_in(project, code, "critical")
    session = propose(tick(project), proposal(code))
    session = review(session, verdict(back, {code: back}, ("ISSUE-R1-001", code, "Midnight is open")))
    session = propose(session, proposal(code, answers=("ISSUE-R1-001",)))
    card = opening.open_conflict(
        session, kind="silence", origin="flagged", opened_as="system", question="Midnight is open",
        effect="log", finding=session.findings.get(), submission=session.last_submission(),
    )  # fmt: skip
    Flag.objects.update(conflict=card)
    return session, card
