"""The rows of disputes: what each table refuses, and what a row says of itself."""

from collections.abc import Callable
from datetime import date, time, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, models, transaction
from django.utils import timezone

from disputes.models import (
    Amendment,
    Channel,
    Conflict,
    Decision,
    Delivery,
    Dispute,
    Flag,
    Follow,
    HeuristicScore,
    OnCall,
    Opinion,
    Proposal,
    SavedView,
    Tally,
)
from disputes.protocol.rulings.synthesis import Synthesis
from tasks.models import Project, Rollback
from tasks.models.event import record
from tests.cases import for_each
from tests.factories import (
    create_finding,
    create_project,
    create_review,
    create_submission,
    create_task,
    create_user,
)

pytestmark = pytest.mark.django_db

Make = Callable[[], Any]


def create_dispute(**kwargs: Any) -> Dispute:
    task = kwargs.pop("task", None) or create_task(status="disputed", round=1)
    values = {"project": task.project, "task": task, "severity": "high", "question": "Back off, or not?"}
    return Dispute.objects.create(**(values | kwargs))


def create_conflict(dispute: Dispute | None = None, **kwargs: Any) -> Conflict:
    values = {
        "dispute": dispute or create_dispute(),
        "kind": "disagreement",
        "origin": "disagree",
        "opened_as": "coder",
        "severity": "high",
        "effect": "hold",
        "question": "Back off, or not?",
        "reviewer_position": "Wait longer each time.",
        "coder_position": "The limiter bounds it.",
    } | kwargs
    return Conflict.objects.create(**values)


def create_proposal() -> Proposal:
    return create_conflict().propose(Synthesis("A setting.", "Each a little.", covers_both=True), "limits")


def create_decision(conflict: Conflict | None = None, **kwargs: Any) -> Decision:
    by = "policy_set_by" if kwargs.get("authority") == "policy" else "user"
    kwargs = kwargs if by in kwargs else kwargs | {by: create_user()}
    values = {"option": "uphold_reviewer", "action": "revise", "expects_change": True} | kwargs
    return Decision.objects.create(conflict=conflict or create_conflict(), **values)


def create_amendment(**kwargs: Any) -> Amendment:
    decision = kwargs.pop("decision", None) or create_decision()
    return Amendment.objects.create(
        decision=decision, path="docs/SPEC.md", words="> Wait.", asked_by=decision.user, **kwargs
    )


def finding_of(dispute: Dispute) -> Any:
    return create_finding(create_review(create_submission(dispute.task)))  # type: ignore[arg-type]


def ruling_on(conflict: Conflict, **kwargs: Any) -> Make:
    """Rule on it as it is said, past the makers' defaults."""
    return lambda: create_decision(conflict, **kwargs)


def of(instance: Any, **changes: Any) -> Make:
    """Write these columns into the row, past all Python."""
    return lambda: type(instance)._default_manager.filter(pk=instance.pk).update(**changes)


# --- What the tables refuse -------------------------------------------------------------------------------


def second_live_dispute() -> Make:
    dispute = create_dispute(status="ruled")
    return lambda: create_dispute(task=dispute.task)


def second_amendment() -> Make:
    first = create_amendment()
    return lambda: create_amendment(decision=first.decision)


def second_alert() -> Make:
    project = create_project()
    Dispute.objects.create(project=project, severity="high", question="Do they go round in circles?")
    return lambda: Dispute.objects.create(project=project, severity="low", question="Again?")


def second_open_conflict() -> Make:
    dispute = create_dispute()
    finding = finding_of(dispute)
    create_conflict(dispute, finding=finding)
    return lambda: create_conflict(dispute, finding=finding)


def second_decision() -> Make:
    conflict = create_conflict()
    create_decision(conflict)
    return lambda: create_decision(conflict, option="uphold_coder")


def used_and_revoked() -> Make:
    return of(create_decision(used_at=timezone.now()), revoked_at=timezone.now())


def second_flag() -> Make:
    finding = finding_of(create_dispute())
    values = {"finding": finding, "submission": finding.review.submission, "level": "warn"}
    Flag.objects.create(**values)
    return lambda: Flag.objects.create(**values)


def second_score() -> Make:
    values = {"project": create_project(), "heuristic": "H1"}
    HeuristicScore.objects.create(**values)
    return lambda: HeuristicScore.objects.create(**values)


def create_channel(**kwargs: Any) -> Channel:
    return Channel.objects.create(name="Mine", sealed_address="sealed", **({"user": create_user()} | kwargs))


def create_delivery(**kwargs: Any) -> Delivery:
    event = record(create_project(), "trouble")
    return Delivery.objects.create(
        **({"event": event, "channel": create_channel(), "topic": "project"} | kwargs)
    )


def second_delivery() -> Make:
    first = create_delivery()
    return lambda: create_delivery(event=first.event, channel=first.channel)


def second(model: Any, **values: Any) -> Make:
    """The same row twice."""
    model.objects.create(**values)
    return lambda: model.objects.create(**values)


def on_call(**kwargs: Any) -> dict[str, Any]:
    today = timezone.localdate()
    return {
        "project": create_project(),
        "user": create_user(),
        "first_day": today,
        "last_day": today,
    } | kwargs


# By the name of the constraint: rows that are fine, and the write that it refuses.
REFUSED: dict[str, Callable[[], Make]] = {
    "dispute_one_live_per_task": second_live_dispute,
    "dispute_one_live_per_project": second_alert,
    "flag_once": second_flag,
    "heuristic_score_once": second_score,
    "dispute_status_known": lambda: of(create_dispute(), status="asleep"),
    "conflict_one_open_per_finding": second_open_conflict,
    "conflict_has_both_positions": lambda: of(create_conflict(), coder_position=""),
    "conflict_status_known": lambda: of(create_conflict(), status="asleep"),
    "conflict_followed_once_decided": lambda: of(create_conflict(), status="decided"),
    "proposal_says_something": lambda: of(create_proposal(), text=""),
    "proposal_source_known": lambda: of(create_proposal(), source="nobody"),
    "dispute_snoozed_until_something": lambda: of(create_dispute(), snoozed_at=timezone.now()),
    "follow_once": lambda: second(Follow, dispute=create_dispute(), user=create_user()),
    "saved_view_name_once": lambda: second(SavedView, user=create_user(), name="Mine", tab="queue"),
    "on_call_once": lambda: second(OnCall, **on_call()),
    "tally_once": lambda: second(Tally, project=create_project(), day=timezone.localdate(), measure="opened"),
    "tally_of_some_days": lambda: of(
        Tally.objects.create(project=create_project(), day=timezone.localdate(), measure="opened"), span=0
    ),
    "on_call_ends_after_start": lambda: lambda: OnCall.objects.create(**on_call(last_day=date(2026, 1, 1))),
    "decision_one_standing": second_decision,
    "decision_by_a_named_person": lambda: ruling_on(create_conflict(), user=None),
    "decision_policy_is_somebodys": lambda: ruling_on(
        create_conflict(), authority="policy", policy_set_by=None
    ),
    "decision_not_used_and_revoked": used_and_revoked,
    "amendment_one_live_per_ruling": second_amendment,
    "amendment_drafted_has_a_commit": lambda: of(create_amendment(), state="drafted"),
    "amendment_approved_by_somebody": lambda: of(create_amendment(), state="approved", sha="a" * 40),
    "decision_retired_by_somebody": lambda: of(create_decision(), retired_at=timezone.now()),
    "opinion_asked_once": lambda: second(Opinion, conflict=create_conflict(), kind="judge"),
    "opinion_given_says_something": lambda: of(
        Opinion.objects.create(conflict=create_conflict(), kind="judge"), state="given"
    ),
    "channel_reaches_somebody": lambda: of(create_channel(), user=None),
    "channel_quiet_hours_have_two_ends": lambda: of(create_channel(), quiet_from=time(22)),
    "delivery_once": second_delivery,
    "delivery_not_sent_and_failed": lambda: of(
        create_delivery(sent_at=timezone.now()), failed_at=timezone.now()
    ),
}
CONSTRAINTS = {
    constraint.name: constraint
    for model in apps.get_app_config("disputes").get_models()
    for constraint in model._meta.constraints
}


@for_each("name", REFUSED)
def test_the_database_refuses(name: str) -> None:
    write = REFUSED[name]()
    is_check = isinstance(CONSTRAINTS.get(name), models.CheckConstraint)
    with pytest.raises(IntegrityError, match=name if is_check else None), transaction.atomic():
        write()


def test_every_constraint_of_disputes_is_tried() -> None:
    assert set(REFUSED) == set(CONSTRAINTS)


def test_a_ruling_may_be_made_again_once_its_round_was_rolled_back_and_stays_archived() -> None:
    old = create_decision()
    task = old.conflict.task
    back = Rollback.objects.create(task=task, from_round=2, to_round=1, reason="Astray.", by_label="tom")
    Decision.objects.filter(pk=old.pk).update(archived_by=back)
    new = create_decision(old.conflict)
    assert old.conflict.standing_decision() == new
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Decision.objects.filter(pk=old.pk).update(archived_by=None)


@for_each("side", ["reviewer_position", "coder_position"])
def test_a_disagreement_has_two_sides(side: str) -> None:
    dispute = create_dispute()
    with pytest.raises(IntegrityError, match="conflict_has_both_positions"), transaction.atomic():
        create_conflict(dispute, **{side: ""})


@for_each("kind", ["help", "alert", "silence"])
def test_other_cards_need_not(kind: str) -> None:
    create_conflict(kind=kind, reviewer_position="", coder_position="")


@for_each("status", ["decided", "logged", "moot"])
def test_a_finding_may_be_disputed_again_once_its_conflict_is_over(status: str) -> None:
    dispute = create_dispute()
    finding = finding_of(dispute)
    followed = "applied" if status == "decided" else ""
    old = create_conflict(dispute, finding=finding, status=status, followed=followed)
    assert create_conflict(dispute, finding=finding, previous=old).previous == old


def test_a_task_may_have_several_open_conflicts() -> None:
    dispute = create_dispute()
    create_conflict(dispute)
    create_conflict(dispute)
    create_conflict(dispute, finding=finding_of(dispute))
    assert dispute.conflicts.count() == 3


def test_a_task_may_come_into_dispute_again_once_the_first_is_closed() -> None:
    dispute = create_dispute(status="closed", closed_reason="followed")
    create_dispute(task=dispute.task, status="closed")
    create_dispute(task=dispute.task)


def test_a_revoked_ruling_makes_room_for_another() -> None:
    conflict = create_conflict()
    create_decision(conflict, revoked_at=timezone.now())
    create_decision(conflict, revoked_at=timezone.now())
    standing = create_decision(conflict)
    assert conflict.standing_decision() == standing


@for_each("mark", ["used_at", "revoked_at"])
def test_a_ruling_carries_one_of_the_two_marks(mark: str) -> None:
    decision = create_decision(**{mark: timezone.now()})
    assert not decision.may_be_undone


def test_a_policy_needs_no_person_but_whoever_set_it() -> None:
    lea = create_user("lea")
    decision = create_decision(authority="policy", policy_set_by=lea)
    assert (decision.user, decision.policy_set_by) == (None, lea)


def test_a_policy_and_a_person_do_not_rule_together() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        create_decision(authority="policy", policy_set_by=create_user(), user=create_user())


def test_no_policy_rules_on_a_critical_conflict() -> None:
    conflict = create_conflict(severity="critical")
    with pytest.raises(IntegrityError, match="no policy rules"), transaction.atomic():
        create_decision(conflict, authority="policy")
    assert create_decision(conflict).authority == "person"


@for_each("change", [{"authority": "person"}, {"policy_set_by": None}])
def test_whose_policy_ruled_is_never_rewritten(change: dict[str, Any]) -> None:
    decision = create_decision(authority="policy")
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Decision.objects.filter(pk=decision.pk).update(**change)


@for_each(
    "change",
    [
        {"text": "Something else"},
        {"option": "uphold_coder"},
        {"expects_change": False},
        {"used_at": None},
        {"revoked_at": None},
    ],
    ids=str,
)
def test_nobody_changes_a_ruling_afterwards(change: dict[str, Any]) -> None:
    marks = {name: timezone.now() for name in change if name.endswith("_at")}
    write = of(create_decision(**marks), **change)
    with pytest.raises(DatabaseError), transaction.atomic():
        write()


def test_a_person_who_ruled_cannot_be_deleted() -> None:
    user = create_user()
    create_decision(user=user)
    with pytest.raises(models.ProtectedError):
        user.delete()


def test_nothing_of_a_case_is_deleted_with_it() -> None:
    decision = create_decision()
    conflict = decision.conflict
    for instance in (conflict, conflict.dispute, conflict.dispute.task):
        with pytest.raises(models.ProtectedError):
            instance.delete()  # type: ignore[union-attr]


# --- What a row says of itself ----------------------------------------------------------------------------


@for_each(("severity", "rank"), [("critical", 3), ("high", 2), ("medium", 1), ("low", 0)])
def test_a_dispute_keeps_the_rank_of_its_severity(severity: str, rank: int) -> None:
    dispute = create_dispute()
    Dispute.objects.filter(pk=dispute.pk).update(severity=severity)
    assert Dispute.objects.get().severity_rank == rank


def test_the_queue_goes_by_severity_then_blocked_tasks_then_age() -> None:
    project = create_project()
    now = timezone.now()
    wanted = [("critical", 0, 1), ("high", 3, 1), ("high", 0, 9), ("high", 0, 1), ("low", 9, 9)]
    made = [
        create_dispute(
            task=create_task(project), severity=severity, blocks=blocks,
            opened_at=now - timedelta(hours=hours),
        )
        for severity, blocks, hours in reversed(wanted)
    ]  # fmt: skip
    assert list(Dispute.objects.in_order()) == made[::-1]


def test_live_is_what_is_not_closed_and_open_what_waits_for_a_human() -> None:
    found = {status: create_dispute(status=status) for status in ("open", "ruled", "closed")}
    assert set(Dispute.objects.live()) == {found["open"], found["ruled"]}
    assert list(Dispute.objects.open()) == [found["open"]]


def test_cases_have_names_that_people_use() -> None:
    conflict = create_conflict()
    assert (conflict.dispute.ref, conflict.ref) == (f"D-{conflict.dispute_id}", f"C-{conflict.pk}")


def test_a_conflict_is_called_by_its_finding_or_by_its_task() -> None:
    dispute = create_dispute(task=create_task(create_project("ledger"), number=7))
    finding = finding_of(dispute)
    assert create_conflict(dispute, finding=finding).name == "ISSUE-R1-001"
    assert create_conflict(dispute).name == "Task ledger-7"


def test_a_card_of_a_project_has_no_task() -> None:
    project: Project = create_project()
    alert = Dispute.objects.create(project=project, severity="high", question="Do they go round in circles?")
    conflict = create_conflict(alert, kind="alert")
    with pytest.raises(ValueError, match="belongs to a project"):
        _ = conflict.task


@for_each(
    ("option", "letter"),
    [("uphold_reviewer", "A"), ("uphold_coder", "B"), ("compromise", "C"), ("other", "D"), ("retry", "1")],
)
def test_a_ruling_has_the_letter_of_its_button(option: str, letter: str) -> None:
    assert create_decision(option=option).letter == letter


def test_a_standing_unused_ruling_may_be_undone(lea: User) -> None:
    decision = create_decision(user=lea)
    assert decision.may_be_undone
    assert list(Decision.objects.standing()) == list(Decision.objects.unused()) == [decision]
