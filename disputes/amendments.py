"""Putting a ruling into the specification: a person asks, a host drafts, and a person approves or drops it.

This module handles only rows. A host reads the repository and writes the commits
(agents/hosts/branches/amending.py). An approved amendment becomes a task of its own, which is built, tested
and landed like any other work.
"""

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from disputes import rulings
from disputes.models import Amendment, Conflict, Decision
from disputes.protocol.rulings.amendments import WORDS_MAX, About, Ruled, words_of
from tasks.access import RULE, require
from tasks.adding import create_last
from tasks.configuration import stages
from tasks.database.clock import estimated_time
from tasks.database.locking import locked
from tasks.errors import Invalid, Refused
from tasks.events import SYSTEM, Actor
from tasks.models import Project, Submission, Task
from tasks.models.event import record
from tasks.models.task import locked_task
from tasks.states import Severity, Status

State = Amendment.State
WRITTEN_BY = "System"


def may_be_asked(conflict: Conflict, ruling: Decision | None) -> bool:
    """Whether the ruling on this conflict may be put into the project's specification."""
    if ruling is None or not ruling.stands or conflict.followed == Conflict.Followed.REOPENED:
        return False
    is_of_a_task = conflict.kind == Conflict.Kind.DISAGREEMENT and conflict.dispute.task_id
    return bool(is_of_a_task and conflict.dispute.project.config.specification)


def holds(decision: Decision) -> bool:
    """Whether the ruling is still in force: it was neither taken back nor reopened. Reads the database."""
    reopened = Conflict.Followed.REOPENED
    return Decision.objects.standing().filter(pk=decision.pk).exclude(conflict__followed=reopened).exists()


def ask(decision: Decision, *, user: Any) -> Amendment:
    """Ask for an amendment that puts the ruling into the specification, to be drafted by a host.

    Raises Refused: "no_right", "no_specification" if the project names none, "not_a_ruling" if no ruling
    between two sides is in force, or "already_asked".
    """
    conflict = decision.conflict
    project = conflict.dispute.project
    require(user, project, RULE, "amend the specification")
    path = project.config.specification
    if not path:
        raise Invalid(
            "no_specification", f"{project.name} names no specification.",
            "A maintainer sets `specification` to its path in the repository.",
        )  # fmt: skip
    if not may_be_asked(conflict, decision):
        raise Invalid(
            "not_a_ruling", f"No ruling between two sides stands on {conflict.ref}.", "Rule on it first."
        )
    try:
        with transaction.atomic():
            amendment = Amendment.objects.create(
                decision=decision, path=path, words=words_of(_ruled(decision)), asked_by=user
            )
            _tell(amendment, "amendment_asked", Actor.person(user), note=path)
    except IntegrityError:
        raise Refused(
            "already_asked", f"The ruling on {conflict.ref} has an amendment already.", "Look at that one."
        ) from None
    return amendment


def _ruled(decision: Decision) -> Ruled:
    conflict = decision.conflict
    return Ruled(
        ref=f"{conflict.dispute.ref}, {conflict.ref}", question=conflict.question, text=decision.text,
        rationale=decision.rationale, constraints=decision.constraints_text, by=decision.by,
        on=f"{decision.at:%Y-%m-%d}",
    )  # fmt: skip


def about(amendment: Amendment) -> About:
    """Return what the ruling's conflict says about the disputed part of the specification."""
    conflict = amendment.decision.conflict
    finding, subject = conflict.finding, conflict.subject
    texts = [conflict.question, conflict.reviewer_position, conflict.coder_position]
    if finding:
        texts = [finding.title, finding.text, finding.impact, finding.suggestion, *texts]
    return About(
        path=finding.path if finding else "", line=finding.line if finding else None,
        texts=tuple(texts), source=subject.source if subject else "",
    )  # fmt: skip


# --- What a host reports ----------------------------------------------------------------------------------


def drafted(amendment: Amendment, *, base_sha: str, sha: str, diff: str, section: str) -> bool:
    """Record the commit that a host drafted. Return False if the amendment has been changed or dropped."""
    with transaction.atomic():
        values = {"base_sha": base_sha, "sha": sha, "diff": diff, "section": section[:300]}
        if not _move(amendment, State.ASKED, State.DRAFTED, **values):
            return False
        _tell(amendment, "amendment_drafted", SYSTEM, note=f"{amendment.path}, {section}"[:500])
    return True


def failed(amendment: Amendment, problem: str) -> bool:
    """Record why the amendment cannot be drafted; a person may ask again. Return False if it has changed."""
    with transaction.atomic():
        if not _move(amendment, State.ASKED, State.FAILED, problem=problem[:500]):
            return False
        _tell(amendment, "amendment_failed", SYSTEM, note=problem[:500])
    return True


def go_on(amendment: Amendment) -> bool:
    """Have an amendment drafted again because its approved commit did not pass or no longer fits.

    It then has to be approved again. An amendment whose task a person cancelled is dropped. Return False if
    there was nothing to do.
    """
    with transaction.atomic():
        task = locked_task(amendment.task_id)
        if task.status == Status.CANCELLED:
            return _move(amendment, State.APPROVED, State.DROPPED)
        if task.status != Status.IN_PROGRESS:
            return False
        last, landing = task.last_submission(), task.landings.order_by("-pk").first()
        why = (last and last.problem) or (landing and landing.problem) or "It did not pass."
        task.cancel(actor=SYSTEM, note="Its amendment is drafted again.")
        again = {"task": None, "problem": why[:500], "settled_by": None, "settled_at": None}
        if not _move(amendment, State.APPROVED, State.ASKED, **again):
            raise RuntimeError(f"Amendment {amendment.pk} left its task.")
        _tell(amendment, "amendment_sent_back", SYSTEM, note=why[:500])
    return True


# --- What people decide -----------------------------------------------------------------------------------


def reword(amendment: Amendment, words: str, *, seen: int, user: Any) -> None:
    """Replace the amendment's words and have it drafted again.

    Raises Refused: "no_right", "text_missing" if the words are empty, "too_long", or "moved_on" if the
    amendment has changed since version `seen`.
    """
    _require(amendment, user)
    if not words.strip():
        raise Invalid("text_missing", "An amendment has words.", "Drop it if it is to say nothing.")
    if len(words) > WORDS_MAX:
        raise Invalid("too_long", f"It is longer than {WORDS_MAX} characters.", "Say it shorter.")
    changed = {"words": words.replace("\r\n", "\n").strip(), "problem": ""}
    with transaction.atomic():
        _move_seen(amendment, seen, State.ASKED, **changed)
        _tell(amendment, "amendment_reworded", Actor.person(user))


def drop(amendment: Amendment, *, seen: int, user: Any) -> None:
    """Drop the amendment.

    Raises Refused: "no_right", or "moved_on" if the amendment has changed since version `seen`.
    """
    _require(amendment, user)
    settled = {"settled_by": user, "settled_at": estimated_time()}
    with transaction.atomic():
        _move_seen(amendment, seen, State.DROPPED, **settled)
        _tell(amendment, "amendment_dropped", Actor.person(user))


def approve(amendment: Amendment, *, seen: int, user: Any) -> Task:
    """Have exactly the commit that the person looked at verified and landed, as a task of its own.

    Raises Refused: "no_right", "moved_on" if the amendment has changed since version `seen`, or
    "not_a_ruling" if the ruling was taken back or reopened.
    """
    _require(amendment, user)
    decision, actor = amendment.decision, Actor.person(user)
    conflict = decision.conflict
    with transaction.atomic():
        project = locked(Project.objects).get(pk=conflict.dispute.project_id)
        locked_task(conflict.task.pk)  # so that nobody takes the ruling back meanwhile
        if not holds(decision):
            raise Refused(
                "not_a_ruling", f"The ruling on {conflict.ref} was taken back since.", "Drop the amendment."
            )
        if amendment.state != State.DRAFTED:
            raise _moved_on()
        task = _task(amendment, project, user)
        settled = {"settled_by": user, "settled_at": estimated_time(), "task": task, "problem": ""}
        _move_seen(amendment, seen, State.APPROVED, **settled)
        rulings.mark_used([decision], None)  # from here on it can only be reopened
        _tell(amendment, "amendment_approved", actor, note=task.ref, sha=amendment.sha)
    return task


def _task(amendment: Amendment, project: Project, user: Any) -> Task:
    """Create the task that carries the amendment, at the project's last stage, with its commit handed in."""
    conflict, actor = amendment.decision.conflict, Actor.person(user)
    task = create_last(
        project, section=conflict.task.section, severity=Severity.LOW, origin=Task.Origin.AMENDMENT,
        stage=stages.stages_of(project.config)[-1].name, round=1, source=amendment.path,
        title=f"Amend {amendment.path}: {conflict.question}"[:300],
        body=f"What was ruled on {conflict.dispute.ref} ({conflict.ref}) goes into {amendment.path}.",
    )  # fmt: skip
    record(project, "created", actor=actor, task=task, new=task.status, data={"amendment": amendment.pk})
    task.start(actor=actor)
    Submission.objects.create(
        task=task, round=1, attempt=1, sha=amendment.sha, base_sha=amendment.base_sha, by_agent=WRITTEN_BY,
        by_user=user, stage="",
    )  # fmt: skip
    task.submit(actor=actor, note="Written by the program, approved by a person.")
    return task


def _require(amendment: Amendment, user: Any) -> None:
    require(user, amendment.decision.conflict.dispute.project, RULE, "amend the specification")


def _moved_on() -> Refused:
    return Refused(
        "moved_on", "The amendment has changed since you looked at it.", "Look at it again, then decide."
    )


def _move_seen(amendment: Amendment, seen: int, new: str, **values: Any) -> None:
    """Move the amendment. Raises Refused if it is not the version the person saw, or waits for nobody."""
    waits = amendment.version == seen and amendment.state in {State.ASKED, State.DRAFTED}
    if not waits or not _move(amendment, amendment.state, new, **values):
        raise _moved_on()


def _move(amendment: Amendment, old: str, new: str, **values: Any) -> bool:
    """Move the amendment from state `old` by compare-and-set. Return False if somebody else was faster."""
    rows = Amendment.objects.filter(pk=amendment.pk, state=old, version=amendment.version)
    if not rows.update(state=new, version=F("version") + 1, **values):
        return False
    amendment.refresh_from_db()
    return True


def _tell(amendment: Amendment, what: str, actor: Actor, *, note: str = "", **data: Any) -> None:
    about = {"amendment": amendment.pk, **data}
    amendment.decision.conflict.record_event(what, actor=actor, note=note, **about)
