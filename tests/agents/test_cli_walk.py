"""The `steroids` command against the server itself, as people use it."""

import os
import re
import subprocess
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import Agent, Host
from disputes.models import Conflict, Opinion
from disputes.protocol.rulings.options import read_choice
from tasks.models import Project, Rollback, Task
from tests.agents.command import command
from tests.disputes.api.test_api import open_conflict
from tests.factories import (
    create_finding,
    create_host,
    create_review,
    create_submission,
    create_task,
    create_token,
    create_user,
)  # fmt: skip

pytestmark = pytest.mark.django_db(transaction=True)

Steroids = Callable[..., str]


@pytest.fixture
def steroids(live_server: Any, tmp_path: Any) -> Callable[..., Any]:
    """Runs the command as this person; its exit code and what it printed."""

    def as_person(user: User) -> Callable[..., tuple[int, str]]:
        file = tmp_path / user.username
        file.write_text(create_token(user, "laptop")[1])
        environment = {
            "PATH": os.environ["PATH"], "STEROIDS_URL": live_server.url, "STEROIDS_TOKEN_FILE": str(file),
        }  # fmt: skip

        def run(*words: str) -> tuple[int, str]:
            done = subprocess.run(
                [*command(), *words],
                env=environment, capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            return done.returncode, done.stdout + done.stderr

        return run

    return as_person


def card(ledger: Project, **about: Any) -> Conflict:
    number = 100 + Task.objects.filter(project=ledger).count()
    task = create_task(ledger, number=number, status="disputed", round=1)
    return open_conflict(task, create_finding(create_review(create_submission(task))), **about)


def test_a_task_is_added_rolled_back_and_ruled_on(
    ledger: Project, lea: User, tom: User, steroids: Any, tmp_path: Any
) -> None:
    lea_says, tom_says = steroids(lea), steroids(tom)
    body = tmp_path / "body.md"
    body.write_text("At most thrice.")
    words = [
        "--project",
        "ledger",
        "--body",
        str(body),
        "--severity",
        "HIGH",
        "--tag",
        "api",
        "--section",
        "Calls",
    ]
    assert lea_says("tasks", "add", "Retry calls", *words) == (0, "ledger-1 is added.\n")
    task = Task.objects.get()
    assert (task.body, task.severity, task.tags, task.section.title) == (
        "At most thrice.",
        "high",
        ["api"],
        "Calls",
    )
    assert lea_says("tasks", "add", "Then this", "--project", "ledger", "--after", "ledger-1")[0] == 0
    assert Task.objects.get(number=2).waits_for == 1
    code, said = tom_says("tasks", "add", "Mine", "--project", "ledger")
    assert (code, "You may not add tasks in any project." in said) == (1, True)

    Task.objects.filter(pk=task.pk).update(round=3, status="review")
    create_submission(task, round=3)
    code, said = lea_says("rollback", "ledger-1", "--to", "1", "--reason", "The second round broke it.")
    assert (code, "ledger-1 begins round 2 again." in said) == (0, True), said
    assert Rollback.objects.get().reason == "The second round broke it."

    judge = Agent.objects.create(name="judge", role="judge", provider="command", settings={"argv": ["true"]})
    judge.projects.set([ledger])
    conflict = card(
        ledger, kind="disagreement", coder_position="It is bounded.", coder_rationale="See line 3."
    )
    code, said = tom_says("dispute", "ask-judge", conflict.ref)
    assert (code, f"The judge is asked about {conflict.ref}." in said) == (0, True), said
    assert Opinion.objects.get().kind == "judge"
    way = ["--text", "Retry twice, then give up.", "--trade-off", "One try less.", "--covers-both"]
    code, said = tom_says("dispute", "synthesis", conflict.ref, *way)
    assert (code, f"Option C of {conflict.ref} is proposed" in said) == (0, True), said
    assert "Retry twice, then give up." in tom_says("dispute", "show", conflict.dispute.ref)[1]


def test_every_card_takes_the_words_that_it_prints(ledger: Project, tom: User, steroids: Any) -> None:
    """Words that mean one choice are tried with one of them."""
    tom_says = steroids(tom)
    cards: list[dict[str, Any]] = [
        {"kind": "disagreement"},
        {"kind": "silence", "origin": "flagged", "evidence": ["Round 1 does not name it."]},
        {"kind": "alert", "origin": "rate", "opened_as": "system"},
        {"kind": "alert", "origin": "stuck", "opened_as": "system"},
        {"kind": "help", "origin": "rejections", "opened_as": "system"},
    ]
    for about in cards:
        first = card(ledger, **about)
        code, shown = tom_says("dispute", "show", first.dispute.ref)
        line = re.search(rf"Rule with `steroids dispute resolve {first.ref} --decision WORD`: (.*)\.", shown)
        assert line, shown
        for pair in line[1].split(", "):
            words = pair.split(" or ")
            [choice] = {read_choice(word, first.choices) for word in words}
            assert choice, (about, words)
            ruling = ("--decision", words[-1], "--notes", "Because.", "--text", "So be it.")
            code, said = tom_says("dispute", "resolve", card(ledger, **about).ref, *ruling)
            assert f"({choice.option})" in said or "Nobody proposed" in said, (about, words, said)
            assert code == 0 or "Nobody proposed" in said, (about, words, said)


def test_hosts_are_stopped_and_started_by_superusers(lea: User, steroids: Any, db: Any) -> None:
    root_says, lea_says = steroids(create_user("root", is_superuser=True)), steroids(lea)
    assert "No host has reported yet" in root_says("runners", "status")[1]
    for name in ("alpha", "beta"):
        create_host(name, seen_at=timezone.now())
    assert lea_says("runners", "status")[0] == 1
    assert root_says("runners", "stop", "alpha") == (
        0, "alpha takes no new runs. It is empty and can be stopped.\n",
    )  # fmt: skip
    listed = root_says("runners", "status")[1]
    assert re.search(r"alpha +draining", listed)
    assert re.search(r"beta +alive", listed)
    Host.objects.update(seen_at=timezone.now() - timedelta(hours=1))
    assert re.search(r"alpha +away", root_says("runners", "status")[1]), "a dead host drains nothing"
    assert root_says("runners", "start", "--all")[1].count("takes new runs again.") == 2
    assert root_says("runners", "stop")[0] == 2
    assert "There is no host gamma." in root_says("runners", "stop", "gamma")[1]
