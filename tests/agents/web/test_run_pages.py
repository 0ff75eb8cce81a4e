"""Runs: the list, one run, its log as it grows, and the stop button."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from agents import outputs
from agents.models import Output, Prompt, Run
from agents.web import log
from agents.web.log import plain
from agents.web.runs import PER_PAGE
from tasks.models import Project, Task
from tests.asking import as_user
from tests.cases import for_each
from tests.factories import create_host, create_project, create_run, create_task

NOW = timezone.now()
NBSP = "\N{NO-BREAK SPACE}"
RED = "\x1b[31mred\x1b[0m"


@pytest.fixture
def run(ledger: Project) -> Run:
    task = create_task(ledger, number=7, title="Retry", status="in_progress", round=2)
    return create_run(
        task,
        host=create_host("atlas-1"),
        started_at=timezone.now() - timedelta(days=2, minutes=90),
        last_output_at=timezone.now() + timedelta(hours=1),
    )


def ended(project: Project, **kwargs: Any) -> Run:
    given = {"status": "ended", "outcome": "silent", "reason": "No output.", "ended_at": NOW}
    return create_run(create_task(project), **given | kwargs)


def say(run: Run, *texts: str) -> None:
    begin = run.outputs.count()
    for seq, text in enumerate(texts, begin):
        Output.objects.create(run=run, seq=seq, text=text)


# --- The text of a log ------------------------------------------------------------------------------------


@for_each(
    ("raw", "shown"),
    [
        (RED, "red"),
        ("\x1b]0;a title\x07ready", "ready"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("\x1b(Bplain\x1b=\x1b7\x1bc", "plain"),
        ("10 %\r20 %\r\ndone\r\n", "10 %\n20 %\ndone\n"),
        ("\x1b[38;5;196mx\x1b[2K\x1b[1;1H", "x"),
        ("a\u202eb\u200bc\x00\x08d\ttab", "abcd\ttab"),
        ("\x1b]0;never ended\nthe next line", "\nthe next line"),
    ],
)
def test_what_only_a_terminal_understands_is_left_out(raw: str, shown: str) -> None:
    assert plain(raw) == shown


@pytest.mark.django_db
@for_each("cut", range(1, len(RED)))
def test_an_escape_that_two_pieces_share_is_not_torn(run: Run, cut: int) -> None:
    say(run, f"before {RED[:cut]}", f"{RED[cut:]} after")
    first = log.after(run, -1)
    assert first.text == "before red after"
    one = Output.objects.filter(run=run, seq=1)
    rest = one.get().text
    one.delete()
    first = log.after(run, -1)
    say(run, rest)
    second = log.after(run, first.mark)
    assert first.text + second.text == "before red after"


@given(st.text(alphabet="\x1b[]mK;0\x07\\\r\nab("))
def test_no_text_leaves_an_escape_behind(text: str) -> None:
    assert not {"\x1b", "\r", "\x07"} & set(plain(text))


# --- The log ----------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_log_answers_what_is_new_and_how_the_run_goes(client: Client, run: Run, vera: User) -> None:
    say(run, "one\n", f"two {RED}\n")
    client = as_user(client, vera)
    path = f"/runs/{run.pk}/log/"
    reply = client.get(path).json()
    assert (reply["text"], reply["ended"], reply["more"]) == ("one\ntwo red\n", False, False)
    assert reply["state"].startswith("Running, last output ")
    mark = reply["mark"]
    assert client.get(path, {"after": mark}).json()["text"] == ""
    outputs.add(run, "three\n")
    assert run.outputs.count() == 2
    reply = client.get(path, {"after": mark}).json()
    assert reply["text"] == "three\n"
    Run.objects.update(status="ended", outcome="handed_in", ended_at=timezone.now())
    last = client.get(path, {"after": reply["mark"]}).json()
    assert (last["ended"], last["mark"]) == (True, reply["mark"])
    assert last["state"].startswith("Handed in")


@pytest.mark.django_db
def test_a_long_log_comes_in_parts_and_a_page_begins_with_its_end(
    client: Client, run: Run, vera: User
) -> None:
    say(run, *(f"{number}\n" for number in range(log.PIECES * 2 + 3)))
    Run.objects.update(status="ended", ended_at=NOW)
    client, mark, text, parts = as_user(client, vera), 0, "", 0
    while True:
        reply = client.get(f"/runs/{run.pk}/log/", {"after": mark}).json()
        mark, text, parts = reply["mark"], text + reply["text"], parts + 1
        if reply["ended"]:
            break
        assert reply["more"]
    assert text == "".join(f"{number}\n" for number in range(log.PIECES * 2 + 3))
    assert parts == 3
    end = log.end_of(run)
    assert (end.is_cut, end.mark) == (True, mark)
    assert "Earlier output is left out." in client.get(f"/runs/{run.pk}/").content.decode()


@pytest.mark.django_db
def test_whoever_follows_a_growing_log_reads_every_word_once(run: Run) -> None:
    """An escape is begun at one moment and ended at the next, in one row and across two."""
    said, seen, mark = "", "", -1
    for number in range(700):
        text = f"line {number} \x1b[3" if number % 2 else f"1mred\x1b[0m {'é' * (number % 90)}\n"
        outputs.add(run, text)
        said += text
        if number % 3 == 0:
            part = log.after(run, mark)
            seen, mark = seen + part.text, part.mark
    while (part := log.after(run, mark)).mark != mark:
        seen, mark = seen + part.text, part.mark
    assert seen == plain(said.removesuffix("\x1b[3"))
    assert "".join(row.text for row in run.outputs.all()) == said
    assert run.outputs.count() <= len(said) // outputs.ROW + 2


@pytest.mark.django_db
def test_a_huge_piece_is_shown_by_its_end(run: Run) -> None:
    say(run, "x" * log.FIRST_CHARS, "y" * 10)
    end = log.end_of(run)
    assert (len(end.text), end.text[-10:], end.is_cut) == (log.FIRST_CHARS, "y" * 10, True)


@pytest.mark.django_db
def test_polling_is_cheap(client: Client, run: Run, vera: User, django_assert_max_num_queries: Any) -> None:
    say(run, "one\n")
    client = as_user(client, vera)
    with django_assert_max_num_queries(4):
        client.get(f"/runs/{run.pk}/log/", {"after": "0"})


# --- The pages --------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_list_says_what_runs_where_and_what_ended_how(
    client: Client, ledger: Project, run: Run, vera: User
) -> None:
    ended(ledger)
    create_run(create_task(create_project("atlas"), title="Not yours"))
    silence = timedelta(seconds=settings.DURATIONS["silence"])
    quiet = create_run(create_task(ledger), started_at=NOW - silence / 2, last_output_at=NOW - silence / 2)
    shown = as_user(client, vera).get("/runs/").content.decode()
    wanted = [
        "ledger-7 Retry", "coder-1", "atlas-1", f"d{NBSP}1{NBSP}h",
        "Running, last output", "Went silent", "No output.",
        f'href="/runs/{run.pk}/"', "Silent for", f'href="/runs/{quiet.pk}/"',
    ]  # fmt: skip
    assert [words for words in wanted if words not in shown] == []
    assert "Not yours" not in shown
    assert "/stop/" not in shown


@pytest.mark.django_db
def test_the_list_is_filtered_and_paged(
    client: Client, ledger: Project, run: Run, tom: User, django_assert_max_num_queries: Any
) -> None:
    atlas = create_project("atlas", members={tom: "viewer"})
    ended(atlas, role="reviewer")
    for _ in range(PER_PAGE + 5):
        ended(ledger, outcome="nothing")
    client = as_user(client, tom)
    with django_assert_max_num_queries(10):
        first = client.get("/runs/").context["runs"]
    assert ([row.run for row in first.live], len(first.ended)) == ([run], PER_PAGE)
    assert first.live[0].may_stop
    second = client.get("/runs/", {"before": first.older}).context["runs"]
    assert (len(second.live), len(second.ended), second.older) == (0, 6, None)
    for query, count in (({"project": "atlas"}, 1), ({"role": "reviewer"}, 1), ({"outcome": "silent"}, 1)):
        found = client.get("/runs/", query).context["runs"]
        assert (len(found.live), len(found.ended)) == (0, count)


@pytest.mark.django_db
def test_a_run_shows_its_facts_its_prompt_and_its_log_as_words(client: Client, run: Run, vera: User) -> None:
    Prompt.objects.create(run=run, text="Do it.\n<script>alert(1)</script>\u202e")
    say(run, "<script>alert(2)</script>\n")
    Run.objects.update(reason="<b>so</b>", agent_label="<i>coder</i>", model="Claude Code")
    shown = as_user(client, vera).get(f"/runs/{run.pk}/").content.decode()
    wanted = [
        "Coder run on ledger-7: Retry", "Claude Code", "atlas-1", "&lt;script&gt;alert(1)", "⟨U+202E⟩",
        "&lt;script&gt;alert(2)", "&lt;b&gt;so", "/tasks/ledger-7/",
    ]  # fmt: skip
    assert [words for words in wanted if words not in shown] == []
    assert "<script>alert" not in shown
    assert "/stop/" not in shown


# --- Stopping ---------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_triager_stops_a_run(client: Client, run: Run, tom: User) -> None:
    client = as_user(client, tom)
    reply = client.post(f"/runs/{run.pk}/stop/", {"next": "/runs/?role=coder"})
    assert (reply.status_code, reply.headers["Location"]) == (302, "/runs/?role=coder")
    run.refresh_from_db()
    assert (run.stop_requested, run.status) == (True, "running")
    event = run.task.events.get()
    assert (event.kind, event.label, event.data["run"]) == ("stop_requested", "Tom Tran", run.pk)
    reply = client.post(f"/runs/{run.pk}/stop/", follow=True)
    assert "is being stopped already" in reply.content.decode()
    assert run.task.events.count() == 1


@pytest.mark.django_db
def test_a_run_is_stopped_and_its_task_put_aside(
    client: Client, ledger: Project, run: Run, tom: User, vera: User
) -> None:
    assert as_user(client, vera).post(f"/runs/{run.pk}/stop/", {"defer": "1"}).status_code == 403
    client = as_user(client, tom)
    for said in ("asked to stop", "is being stopped already"):
        reply = client.post(f"/runs/{run.pk}/stop/", {"defer": "1"}, follow=True).content.decode()
        assert said in reply
        assert f"{run.task.ref} is deferred" in reply
    run.refresh_from_db()
    run.task.refresh_from_db()
    assert (run.stop_requested, run.task.status) == (True, "deferred")
    assert [event.kind for event in run.task.events.order_by("pk")] == ["defer", "stop_requested"]
    Task.objects.update(status="cancelled")
    assert (
        "cannot defer" in client.post(f"/runs/{run.pk}/stop/", {"defer": "1"}, follow=True).content.decode()
    )


@pytest.mark.django_db
def test_a_run_that_no_host_holds_ends_at_once_and_an_ended_one_stays_as_it_is(
    client: Client, ledger: Project, run: Run, tom: User
) -> None:
    Run.objects.filter(pk=run.pk).update(status="queued")
    client = as_user(client, tom)
    client.post(f"/runs/{run.pk}/stop/")
    run.refresh_from_db()
    assert (run.status, run.outcome, run.reason) == ("ended", "stopped", "Stopped by Tom Tran.")
    reply = client.post(f"/runs/{run.pk}/stop/", follow=True)
    assert f"Run {run.pk} has ended: stopped." in reply.content.decode()


@pytest.mark.django_db
def test_only_members_see_runs_and_only_those_who_rule_stop_them(
    client: Client, run: Run, vera: User, otto: User
) -> None:
    client = as_user(client, otto)
    for path in ("", "log/"):
        assert client.get(f"/runs/{run.pk}/{path}").status_code == 404
    assert client.post(f"/runs/{run.pk}/stop/").status_code == 404
    assert as_user(client, vera).post(f"/runs/{run.pk}/stop/").status_code == 403
    assert client.get(f"/runs/{run.pk}/stop/").status_code == 405
    run.refresh_from_db()
    assert not run.stop_requested
