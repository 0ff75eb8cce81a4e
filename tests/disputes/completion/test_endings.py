"""Ending a project: which ends are open, what must be typed, and going on."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.loop import orchestrator
from agents.models import Run
from disputes import alerts, opening
from disputes.completion import endings, exits
from disputes.completion.endings import EndRequest
from disputes.models import Conflict, Dispute, Flag
from disputes.protocol.completion.closing import JUDGED
from disputes.protocol.completion.termination import Exit
from disputes.web.work.ending import EndingPage
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Checkpoint, Dependency, Event, Project, Task
from tests.cases import for_each
from tests.factories import (
    create_agent,
    create_finding,
    create_review,
    create_run,
    create_submission,
    create_task,
)

CRITICAL = "I accept CRITICAL points knowing the result may be unusable"
HIGH = "I acknowledge"
CHECKED = [check.name for check in JUDGED]
PERSON = Actor("person", "Lea Lindt")


def done(project: Project, **kwargs: Any) -> Task:
    return create_task(project, status="completed", finished_by="hand", **kwargs)


def put_off(project: Project, severity: str) -> Task:
    task = create_task(project, severity=severity)
    task.defer(actor=PERSON, note="Not this year.")
    return task


def conflict_on(task: Task, severity: str) -> Conflict:
    return opening.open_conflict(
        task, kind="disagreement", origin="cli", opened_as="coder", question="Whose is it?",
        severity=severity, reviewer_position="Yours.", coder_position="Not mine.",
    )  # fmt: skip


def end(project: Project, kind: str, user: User, **kwargs: Any) -> Project:
    return endings.end_project(project, EndRequest(kind, **kwargs), user=user)


def acknowledged(project: Project) -> dict[str, Any]:
    """All that can be typed."""
    standing = exits.standing_of(project)
    codes = [each.code for each in (*standing.gaps, *standing.conflicts)]
    return {
        "phrases": {"critical": CRITICAL, "high": HIGH}, "rationales": dict.fromkeys(codes, "Known."),
        "confirmed": codes, "checked": CHECKED, "confirm": True,
    }  # fmt: skip


def refusal(project: Project, kind: str, user: User, **kwargs: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        end(project, kind, user, **kwargs)
    project.refresh_from_db()
    assert (project.status, project.exit_type) == ("active", "")
    return refused.value


def open_ends(project: Project) -> set[str]:
    return {offer.exit for offer in exits.offers(project, exits.standing_of(project)) if not offer.why_not}


def at_limit(project: Project) -> None:
    Checkpoint.objects.create(project=project, number=0, opened=3)
    Checkpoint.objects.create(project=project, number=10)


def in_warning(project: Project) -> None:
    alerts.open_alert(project, origin="stall", question="No progress.")


# --- Which ends are open (END-1 to END-7) -----------------------------------------------------------------

WORLDS: dict[str, tuple[Callable[[Project], Any], set[str]]] = {
    "nothing left": (lambda p: done(p), {"complete", "abandoned"}),
    "two medium put off": (
        lambda p: (put_off(p, "medium"), put_off(p, "medium")),
        {"complete", "abandoned"},
    ),
    "two medium and a low put off": (
        lambda p: [put_off(p, severity) for severity in ("medium", "medium", "low")],
        {"good_enough", "abandoned"},
    ),
    "a high one put off": (lambda p: put_off(p, "high"), {"user_approved", "abandoned"}),
    "a medium one pending": (lambda p: create_task(p), {"good_enough", "abandoned"}),
    "a critical one pending": (
        lambda p: create_task(p, severity="critical"),
        {"user_approved", "abandoned"},
    ),
    "a high conflict, else done": (
        lambda p: conflict_on(done(p), "high"),
        {"user_approved", "abandoned"},
    ),
    "a critical conflict": (lambda p: conflict_on(done(p), "critical"), {"abandoned"}),
    "a medium conflict, else done": (lambda p: conflict_on(done(p), "medium"), {"complete", "abandoned"}),
    "at the limit": (lambda p: (create_task(p), at_limit(p)), {"good_enough", "abandoned"}),
    "done at the limit": (lambda p: (done(p), at_limit(p)), {"complete", "abandoned"}),
    "in a warning": (lambda p: (create_task(p), in_warning(p)), {"stall_exit", "abandoned"}),
    "done in a warning": (lambda p: (done(p), in_warning(p)), {"complete", "abandoned"}),
}


@for_each("world", WORLDS)
def test_the_ends_that_are_open(ledger: Project, world: str) -> None:
    make, expected = WORLDS[world]
    make(ledger)
    assert open_ends(ledger) == expected


@for_each("world", WORLDS)
def test_whoever_types_everything_ends_it_as_offered_and_not_otherwise(
    ledger: Project, lea: User, world: str
) -> None:
    WORLDS[world][0](ledger)
    for kind in exits.TITLES:
        if kind not in open_ends(ledger):
            assert refusal(ledger, kind, lea, **acknowledged(ledger)).code == "exit_closed"
    best = next(kind for kind in exits.TITLES if kind in open_ends(ledger))
    ended = end(ledger, best, lea, **acknowledged(ledger))
    assert (ended.status, ended.exit_type) == ("finished", best)


@for_each("world", WORLDS)
def test_each_closed_end_says_why(ledger: Project, world: str) -> None:
    WORLDS[world][0](ledger)
    for offer in exits.offers(ledger, exits.standing_of(ledger)):
        assert (offer.exit in WORLDS[world][1]) != bool(offer.why_not)


# --- What must be typed -----------------------------------------------------------------------------------


def without(project: Project, **changes: Any) -> dict[str, Any]:
    return acknowledged(project) | changes


@for_each("typed", ["i acknowledge", "I ACKNOWLEDGE", "I acknowledge.", ""])
def test_the_phrase_is_exact(ledger: Project, lea: User, typed: str) -> None:
    create_task(ledger, severity="high")
    refused = refusal(ledger, "user_approved", lea, **without(ledger, phrases={"high": typed}))
    assert (refused.code, refused.status) == ("gates", 422)
    assert "type exactly: I acknowledge" in refused.details[0]["reason"]


def test_blanks_around_the_phrase_do_not_matter(ledger: Project, lea: User) -> None:
    create_task(ledger, severity="high")
    assert end(ledger, "user_approved", lea, **without(ledger, phrases={"high": f" {HIGH} "})).exit_type


def test_each_grave_task_needs_a_reason_of_its_own(ledger: Project, lea: User) -> None:
    first, second = create_task(ledger, severity="high"), create_task(ledger, severity="high")
    typed = without(ledger, rationales={first.ref: "Known.", second.ref: " "})
    assert refusal(ledger, "user_approved", lea, **typed).details[0]["codes"] == [second.ref]


def test_both_gates_stand_where_both_are_left(ledger: Project, lea: User) -> None:
    create_task(ledger, severity="high")
    create_task(ledger, severity="critical")
    refused = refusal(ledger, "user_approved", lea, **without(ledger, phrases={}))
    assert [each["gate"] for each in refused.details] == ["critical", "high"]


def test_the_list_of_limitations_is_confirmed_as_it_is_now(ledger: Project, lea: User) -> None:
    create_task(ledger)
    typed = acknowledged(ledger)
    new = create_task(ledger)
    assert refusal(ledger, "good_enough", lea, **typed).details[0]["codes"] == [new.ref]


def test_a_high_conflict_is_acknowledged_like_a_task(ledger: Project, lea: User) -> None:
    conflict = conflict_on(done(ledger), "high")
    refused = refusal(ledger, "user_approved", lea, **without(ledger, rationales={}))
    assert refused.details[0]["codes"] == [conflict.ref]
    ended = end(ledger, "user_approved", lea, **acknowledged(ledger))
    assert [each["code"] for each in ended.exit_summary["limitations"]] == [conflict.ref]


def test_abandoning_is_confirmed(ledger: Project, lea: User) -> None:
    left = create_task(ledger, severity="critical")
    done(ledger)
    assert refusal(ledger, "abandoned", lea).code == "unconfirmed"
    ended = end(ledger, "abandoned", lea, confirm=True)
    assert ended.exit_type == "abandoned"
    limits = [(each["code"], each["kind"]) for each in ended.exit_summary["limitations"]]
    assert limits == [(left.ref, "unfinished")]


@for_each("kind", ["max_rounds", "paused", ""])
def test_what_is_no_end_is_refused(ledger: Project, lea: User, kind: str) -> None:
    assert refusal(ledger, kind, lea).code == "unknown_exit"


@for_each("who", ["tom", "vera", "otto"])
def test_only_a_maintainer_ends_it(ledger: Project, who: str, otto: User) -> None:
    refused = refusal(ledger, "abandoned", User.objects.get(username=who), confirm=True)
    assert (refused.code, refused.status) == ("no_right", 403)


# --- The final review -------------------------------------------------------------------------------------


@for_each("missing", CHECKED)
def test_complete_needs_each_point_of_the_list(ledger: Project, lea: User, missing: str) -> None:
    done(ledger)
    checked = [name for name in CHECKED if name != missing]
    refused = refusal(ledger, "complete", lea, checked=checked)
    assert (refused.code, len(refused.details)) == ("not_ready", 1)


def test_a_flag_that_nobody_answered_is_in_the_way(ledger: Project, lea: User) -> None:
    task = done(ledger)
    finding = create_finding(create_review(create_submission(task)))
    listed = Flag.objects.create(finding=finding, submission=finding.review.submission, level="log")
    assert not exits.final_review(ledger, exits.standing_of(ledger), CHECKED)  # nobody is asked
    listed.conflict = opening.open_conflict(
        task, kind="silence", origin="flagged", opened_as="system", question="Is it done?", finding=finding,
        effect="log",
    )  # fmt: skip
    listed.status = Flag.Status.ASKED
    listed.save()
    Conflict.objects.update(status=Conflict.Status.DECIDED, followed=Conflict.Followed.WAITING)
    refused = refusal(ledger, "complete", lea, checked=CHECKED)
    assert finding.code in refused.details[0]["reason"]


def test_a_circle_of_tasks_is_in_the_way(ledger: Project, lea: User) -> None:
    first, second = done(ledger), done(ledger)
    Dependency.objects.create(task=first, on=second)
    Dependency.objects.create(task=second, on=first)
    assert first.ref in refusal(ledger, "complete", lea, checked=CHECKED).details[0]["reason"]


def test_an_approved_commit_is_not_left_behind(ledger: Project, lea: User) -> None:
    task = create_task(ledger, status="review", round=1)
    task.approve(create_submission(task), actor=PERSON)
    refused = refusal(ledger, "complete", lea, checked=CHECKED)
    assert (refused.code, task.ref in refused.message) == ("not_landed", True)
    assert end(ledger, "abandoned", lea, confirm=True).exit_type == "abandoned"


# --- What an end does -------------------------------------------------------------------------------------


def test_the_summary_tells_how_it_ended(ledger: Project, lea: User) -> None:
    Checkpoint.objects.create(project=ledger, number=0, opened=2)
    Checkpoint.objects.create(project=ledger, number=1, net=1, weighted_net=4, state="CONVERGING")
    done(ledger, severity="high")
    parked = put_off(ledger, "low")
    pending = create_task(ledger, title="Nice colours")
    ended = end(ledger, "good_enough", lea, reason="The money is spent.", **acknowledged(ledger))
    told = ended.exit_summary
    assert (told["exit"], told["rounds"], told["by"]) == ("good_enough", 1, "Lea Lindt")
    assert (told["trigger"], told["reason"]) == ("a person asked to stop", "The money is spent.")
    assert (told["weighted_net"], len(told["history"])) == (4, 1)
    assert told["matrix"]["OPEN"]["medium"] == 1
    limits = {each["code"]: (each["kind"], each["reason"]) for each in told["limitations"]}
    assert limits == {parked.ref: ("deferred", "Known."), pending.ref: ("acknowledged", "Known.")}
    assert ended.exit_at is not None


def test_the_end_is_an_event(ledger: Project, lea: User) -> None:
    done(ledger)
    end(ledger, "complete", lea, checked=CHECKED, reason="Done.")
    event = Event.objects.get(project=ledger, kind="project_ended")
    assert (event.label, event.note, event.data["exit"], event.data["step"]) == (
        "Lea Lindt", "Done.", "complete", "END-3",
    )  # fmt: skip


def test_an_ended_project_starts_nothing(ledger: Project, lea: User) -> None:
    create_agent("coder")
    create_task(ledger)
    end(ledger, "good_enough", lea, **acknowledged(ledger))
    assert orchestrator.tick().started == 0


def test_runs_under_way_end(ledger: Project, lea: User) -> None:
    task = create_task(ledger, status="in_progress", round=1)
    run = create_run(task, status=Run.Status.QUEUED)
    end(ledger, "good_enough", lea, **acknowledged(ledger))
    orchestrator.reap()
    run.refresh_from_db()
    task.refresh_from_db()
    assert (run.status, run.outcome, task.status) == ("ended", "stopped", "in_progress")


def test_the_card_of_the_project_is_closed(ledger: Project, lea: User) -> None:
    create_task(ledger)
    in_warning(ledger)
    ended = end(ledger, "stall_exit", lea, **acknowledged(ledger))
    assert ended.exit_summary["state"] == "DIVERGENCE_WARNING"
    assert not Dispute.objects.live().exists()


def test_cards_of_an_ended_project_wait_for_nobody_until_it_is_taken_up_again(
    client: Client, ledger: Project, lea: User
) -> None:
    """They stay as they are, on the pages of the task and of the project's end."""
    task = create_task(ledger, status="in_progress", round=1)
    conflict = conflict_on(task, "high")
    task.hold(actor=PERSON, note=conflict.question)
    client.force_login(lea)
    card, ref = f"/queue/{conflict.dispute.ref}/", conflict.dispute.ref

    def shown() -> list[bool]:
        pages = ("/queue/", "/queue/team/", "/admin/", PAGE)
        return [card in client.get(page).content.decode() for page in pages]

    end(ledger, "abandoned", lea, confirm=True)
    assert shown() == [False, False, False, True]
    assert "Ledger has ended; nothing is started in it" in client.get(card).content.decode()
    for page in (f"/tasks/{task.ref}/", f"/projects/{ledger.slug}/"):
        said = client.get(page).content.decode()
        assert "Ledger has ended as abandoned; nothing is started in it." in said
        assert f"Open {ref}" not in said
    told = [
        client.post(address, body, content_type="application/json").json()["message"]
        for address, body in (
            ("/api/v1/tasks/", {"project": ledger.slug, "title": "Late"}),
            (f"/api/v1/tasks/{done(ledger).ref}/dispute/", {"reason": "other", "position": "No."}),
        )
    ]
    assert "nothing is started in it" in told[0]
    assert "nobody is asked before Ledger, which has ended, is taken up again" in told[1]

    endings.resume_project(ledger, user=lea, reason="The money is back.")
    assert shown() == [True] * 4
    Project.objects.filter(pk=ledger.pk).update(status="paused")
    assert (
        "Ledger is paused; nothing is started in it."
        in client.get(f"/projects/{ledger.slug}/").content.decode()
    )


def test_it_ends_once(ledger: Project, lea: User) -> None:
    end(ledger, "abandoned", lea, confirm=True)
    with pytest.raises(Refused) as refused:
        end(ledger, "abandoned", lea, confirm=True)
    assert refused.value.code == "already_ended"


def test_looking_costs_the_same_for_few_and_for_many_tasks(
    ledger: Project, django_assert_max_num_queries: Any
) -> None:
    for severity in ["high", "low"] * 20:
        conflict_on(create_task(ledger, severity=severity), "medium")
    with django_assert_max_num_queries(8):
        exits.offers(ledger, exits.standing_of(ledger))


# --- Going on ---------------------------------------------------------------------------------------------


def test_it_is_taken_up_again_with_a_reason(ledger: Project, lea: User) -> None:
    create_agent("coder")
    task = create_task(ledger)
    end(ledger, "good_enough", lea, **acknowledged(ledger))
    endings.resume_project(ledger, user=lea, reason="The money is back.")
    ledger.refresh_from_db()
    assert (ledger.status, ledger.exit_type, ledger.exit_at) == ("active", "", None)
    assert orchestrator.tick().started == 1
    event = Event.objects.get(project=ledger, kind="project_resumed")
    assert (event.note, event.data["ended"]["exit"]) == ("The money is back.", "good_enough")
    task.refresh_from_db()
    assert task.status == "in_progress"


@for_each(
    ("who", "reason", "code"),
    [("lea", " ", "text_missing"), ("tom", "Go on.", "no_right"), ("vera", "Go on.", "no_right")],
)
def test_it_is_not_taken_up_again_otherwise(
    ledger: Project, lea: User, who: str, reason: str, code: str, otto: User
) -> None:
    end(ledger, "abandoned", lea, confirm=True)
    with pytest.raises(Refused) as refused:
        endings.resume_project(ledger, user=User.objects.get(username=who), reason=reason)
    assert refused.value.code == code


def test_what_has_not_ended_is_not_taken_up(ledger: Project, lea: User) -> None:
    with pytest.raises(Refused) as refused:
        endings.resume_project(ledger, user=lea, reason="Go on.")
    assert refused.value.code == "wrong_status"


def test_at_its_limit_it_is_extended_by_five(ledger: Project, lea: User) -> None:
    create_task(ledger)
    at_limit(ledger)
    assert endings.extend(ledger, user=lea) == 15
    ledger.refresh_from_db()
    assert ledger.config.max_rounds == 15
    assert not exits.standing_of(ledger).rounds >= exits.standing_of(ledger).max_rounds


def test_it_is_not_extended_before_its_limit(ledger: Project, lea: User) -> None:
    with pytest.raises(Refused) as refused:
        endings.extend(ledger, user=lea)
    assert refused.value.code == "not_at_limit"


def test_it_is_not_extended_beyond_the_hard_limit(ledger: Project, lea: User) -> None:
    ledger.settings = {"max_rounds": 10, "hard_limit": 12}
    ledger.save()
    at_limit(ledger)
    assert endings.extend(ledger, user=lea) == 12
    Checkpoint.objects.create(project=ledger, number=12)
    with pytest.raises(Refused) as refused:
        endings.extend(ledger, user=lea)
    assert refused.value.code == "hard_limit"


# --- The page ---------------------------------------------------------------------------------------------

PAGE = "/projects/ledger/end/"


def sent(client: Client, user: User, **body: Any) -> Any:
    client.force_login(user)
    return client.post(PAGE, body)


def test_the_page_shows_what_is_left_and_why_ends_are_closed(
    client: Client, ledger: Project, lea: User
) -> None:
    task = create_task(ledger, severity="high", title="Survive a crash")
    conflict = conflict_on(done(ledger), "critical")
    client.force_login(lea)
    page = client.get(PAGE).content.decode()
    for words in ("Survive a crash", task.ref, conflict.ref, "undecided: rule on it first", HIGH, "Resolved"):
        assert words in page


@for_each(
    ("number", "state", "shown"),
    [
        (0, "CONVERGING", ""),
        (1, "FLAT", "Flat"),
        (2, "CONVERGING", "Converging"),
        (3, "DIVERGENCE_WARNING", "Diverging, and its warning was answered"),
    ],
)
def test_the_page_names_the_state_of_the_last_checkpoint(
    ledger: Project, lea: User, number: int, state: str, shown: str
) -> None:
    """It said Converging where nothing had begun, and above a table whose newest row was Diverging."""
    Checkpoint.objects.create(project=ledger, number=number, state=state)

    assert EndingPage(ledger, lea).convergence == shown


def test_the_button_ends_the_project(client: Client, ledger: Project, lea: User) -> None:
    task = create_task(ledger, severity="high")
    body = {"exit": "user_approved", "phrase-high": HIGH, f"rationale-{task.ref}": "Known."}
    reply = sent(client, lea, **body)
    assert (reply.status_code, reply.url) == (302, PAGE)
    ledger.refresh_from_db()
    assert ledger.exit_type == "user_approved"
    page = client.get(PAGE).content.decode()
    assert "Ledger has ended" in page
    assert "Known." in page


def test_complete_is_confirmed_on_the_page(client: Client, ledger: Project, lea: User) -> None:
    done(ledger)
    assert sent(client, lea, exit="complete").status_code == 422
    assert sent(client, lea, exit="complete", check=CHECKED).status_code == 302


def test_the_list_counts_with_its_tick_only(client: Client, ledger: Project, lea: User) -> None:
    task = create_task(ledger)
    assert sent(client, lea, exit="good_enough", listed=[task.ref]).status_code == 422
    assert sent(client, lea, exit="good_enough", listed=[task.ref], confirm_list="on").status_code == 302


def test_a_refusal_keeps_everything_that_was_typed(client: Client, ledger: Project, lea: User) -> None:
    task, low = create_task(ledger, severity="high"), create_task(ledger, severity="low")
    reply = sent(
        client, lea, exit="user_approved", reason="The money is spent.", listed=[low.ref], confirm_list="on",
        check=[CHECKED[0]], confirm="on",
        **{"phrase-high": "i acknowledge", f"rationale-{task.ref}": "Known."},
    )  # fmt: skip
    page = reply.content.decode()
    assert reply.status_code == 422
    for words in ('value="i acknowledge"', "Known.", "The money is spent.", "Type exactly: I acknowledge"):
        assert words in page
    assert page.count(" checked") == 4


def test_without_a_choice_nothing_ends(client: Client, ledger: Project, lea: User) -> None:
    assert sent(client, lea, reason="Done.").status_code == 422
    assert "Done." in sent(client, lea, reason="Done.").content.decode()


@for_each(("who", "status"), [("tom", 403), ("vera", 403), ("otto", 404)])
def test_others_cannot_end_it(client: Client, ledger: Project, who: str, status: int, otto: User) -> None:
    user = User.objects.get(username=who)
    assert sent(client, user, exit="abandoned", confirm="on").status_code == status
    ledger.refresh_from_db()
    assert ledger.exit_type == ""


@for_each(("who", "status"), [("tom", 200), ("vera", 200), ("otto", 404)])
def test_members_may_look(client: Client, ledger: Project, who: str, status: int, otto: User) -> None:
    client.force_login(User.objects.get(username=who))
    reply = client.get(PAGE)
    assert reply.status_code == status
    assert "End the project" not in reply.content.decode()


def test_the_page_extends_and_resumes(client: Client, ledger: Project, lea: User) -> None:
    create_task(ledger)
    at_limit(ledger)
    client.force_login(lea)
    assert "Extend by 5" in client.get(PAGE).content.decode()
    assert client.post("/projects/ledger/extend/").url == PAGE
    end(ledger, "abandoned", lea, confirm=True)
    assert client.post("/projects/ledger/resume/", {"resume_reason": " "}).status_code == 422
    assert client.post("/projects/ledger/resume/", {"resume_reason": "Go on."}).url == PAGE
    ledger.refresh_from_db()
    assert ledger.status == "active"


def test_the_admin_leads_there(client: Client, ledger: Project, lea: User) -> None:
    client.force_login(lea)
    assert client.get(f"/admin/tasks/project/{ledger.pk}/end/").url == PAGE


def status_field(client: Client, project: Project) -> str:
    page = client.get(f"/admin/tasks/project/{project.pk}/change/").content.decode()
    return page.partition('name="status"')[2].partition("</select>")[0]


def test_the_admins_form_does_not_end_a_project(client: Client, ledger: Project, lea: User) -> None:
    client.force_login(lea)
    assert 'value="paused"' in status_field(client, ledger)
    assert 'value="finished"' not in status_field(client, ledger)
    end(ledger, "abandoned", lea, confirm=True)
    assert status_field(client, ledger) == ""


def test_every_exit_has_a_title_and_says_what_it_needs() -> None:
    assert set(exits.TITLES) == set(exits.NEEDS) == set(Exit) - {Exit.MAX_ROUNDS}
