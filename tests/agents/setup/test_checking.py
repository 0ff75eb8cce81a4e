"""Trying an agent: one sentence that says what is wrong, from its command under a real shim."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from agents.crew import pauses
from agents.models import Agent
from agents.setup import checking, first_hour
from agents.setup.asking import Asker
from tests.end_to_end.loop import script
from tests.factories import create_agent, create_project

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Any) -> None:
    settings.HOME = tmp_path / "home"


def prints(folder: Path, *events: Any, code: int = 0) -> Path:
    """A command that prints these and ends."""
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return script(folder, "cli", f"import sys\nfor line in {lines!r}: print(line)\nsys.exit({code})\n")


def agent(program: Path | str, **more: Any) -> Agent:
    settings = {"program": str(program), "base_url": "http://127.0.0.1:9/v1"} | more.pop("settings", {})
    made = Agent(name="cx", role="coder", provider="codex", model="gpt-5.5", settings=settings, **more)
    made.full_clean()
    made.save()
    return made


ANSWER = {"type": "item.completed", "item": {"type": "agent_message", "text": "READY"}}
DONE = {"type": "turn.completed", "usage": {"input_tokens": 1500, "output_tokens": 5}}


def failed(message: str) -> dict[str, Any]:
    return {"type": "turn.failed", "error": {"message": message}}


def test_an_agent_that_answers_is_fine_and_its_pause_is_over(tmp_path: Path) -> None:
    tried = agent(prints(tmp_path, ANSWER, DONE))
    pauses.pause("codex", checking.ErrorClass.RATE, "429")
    checked = checking.check(tried)
    assert checked.is_fine
    assert checked.says.startswith("Fine: gpt-5.5 answered in ")
    assert "1500 tokens in and 5 out" in checked.says
    tried.refresh_from_db()
    assert (tried.is_fine, tried.check_says) == (True, checked.says)
    assert tried.checked_at
    assert not pauses.paused()


@pytest.mark.parametrize(
    ("events", "code", "said"),
    [
        ([failed("Quota exceeded. Try again in 1 hour.")], 1, "Its quota is used up: Quota exceeded."),
        ([failed("401 Unauthorized")], 1, "Its sign-in was refused"),
        ([failed("The model `x` does not exist")], 1, "gpt-5.5: The provider does not serve the model"),
        ([failed("stream disconnected")], 1, "The server could not be reached"),
        ([DONE], 0, "It answered nothing, though its command ended with 0"),
        ([], 0, "It ended without its last word, though its command ended with 0: it printed nothing"),
        (["Segmentation fault"], 139, "Its command ended with 139: Segmentation fault"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(events: list[Any], code: int, said: str, tmp_path: Path) -> None:
    checked = checking.check(agent(prints(tmp_path, *events, code=code)))
    assert not checked.is_fine
    assert said in checked.says


def test_a_used_up_quota_pauses_the_account_and_says_until_when(tmp_path: Path) -> None:
    checked = checking.check(agent(prints(tmp_path, failed("Quota exceeded. Try again in 1 hour."), code=1)))
    assert "Paused until " in checked.says
    assert pauses.paused().keys() == {"codex"}


def test_a_command_that_waits_for_ever_is_ended_at_once(tmp_path: Path) -> None:
    body = """
        import json, time
        for _ in range(4):
            print(json.dumps({"type": "error", "message": "Reconnecting... waiting for network"}), flush=True)
        time.sleep(3600)
    """
    checked = checking.check(agent(script(tmp_path, "cli", body)))
    assert "The server could not be reached" in checked.says


def test_a_missing_program_and_a_missing_key_are_named() -> None:
    assert "'no-such' is not on this host" in checking.check(agent("no-such")).says
    Agent.objects.all().delete()
    checked = checking.check(agent("sh", settings={"key": "NO_SUCH_KEY"}))
    assert "the variable NO_SUCH_KEY is not set" in checked.says
    assert pauses.paused().keys() == {"codex"}


def test_nothing_of_a_check_is_left(tmp_path: Path, settings: Any) -> None:
    checking.check(agent(prints(tmp_path, ANSWER, DONE)))
    assert list((settings.HOME / "checks").iterdir()) == []


def test_the_prompt_comes_on_standard_input_in_an_empty_clone(tmp_path: Path) -> None:
    body = """
        import os, sys
        assert sys.stdin.read().startswith("Answer with the one word READY")
        assert os.listdir(".") == [".git"]
    """
    made = Agent.objects.create(
        name="mine", role="coder", provider="command", settings={"argv": [str(script(tmp_path, "cli", body))]}
    )
    assert checking.check(made).says.startswith("Fine: its command ended with 0")


def test_the_command_says_it_with_its_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent(prints(tmp_path, ANSWER, DONE))
    call_command("check_agent", "cx")
    assert "cx: Fine: gpt-5.5 answered" in capsys.readouterr().out
    prints(tmp_path, failed("401 Unauthorized"), code=1)
    with pytest.raises(CommandError, match="cx: Its sign-in was refused") as error:
        call_command("check_agent", "cx")
    assert error.value.returncode == 1


def test_an_agent_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(CommandError, match="There is no agent cx. There are: none yet"):
        call_command("check_agent", "cx")


def test_the_admin_asks_for_a_check_and_does_not_wait(
    admin_client: Client, django_capture_on_commit_callbacks: Any
) -> None:
    made = Agent.objects.create(name="cx", role="coder", provider="codex")
    data = {"action": "check_agents", "_selected_action": [made.pk]}
    with django_capture_on_commit_callbacks(execute=True):
        answer = admin_client.post("/admin/agents/agent/", data, follow=True)
    assert "cx: being checked" in answer.content.decode()
    assert OrmQ.objects.count() == 1
    made.refresh_from_db()
    assert checking.is_asked(made)
    assert checking.last_check(made).startswith("Being checked since")
    Agent.objects.filter(pk=made.pk).update(checked_at=timezone.now() - timedelta(hours=1))
    made.refresh_from_db()
    assert "nothing came of it" in checking.last_check(made)


def test_the_first_hour_takes_an_agent_that_is_known_to_be_fine() -> None:
    for name, is_fine in (("new", None), ("broken", False), ("tried", True)):
        create_agent("coder", name=name, is_fine=is_fine)
    lines: list[str] = []
    asker = Asker({}, lines.append, never=True)
    assert first_hour.crew(asker, create_project(), Agent.Role.CODER, check=True) == ""
    assert lines == ["Coder: tried."]
