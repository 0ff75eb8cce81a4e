"""The dashboard and the sidebar: true rows of the person's projects, empty states in words."""

import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection, connections
from django.http import HttpRequest
from django.template import Context, Template
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from agents.models import Host, Output
from agents.web import dashboard
from disputes.models import Dispute
from steroidsweb.accounts import brake
from steroidsweb.models import SignInTries
from steroidsweb.sidebar import badge_of
from tasks.access import RULE, PreparedForReaders, project_ids
from tasks.database import clock
from tasks.models import Event, Project, Section, Task
from tasks.models.event import record
from tests.asking import as_user, by_index
from tests.cases import for_each
from tests.factories import (
    create_agent,
    create_host,
    create_project,
    create_run,
    create_section,
    create_task,
    create_user,
    sha,
)

pytestmark = pytest.mark.django_db


def visit(client: Client, user: User) -> str:
    client.force_login(user)
    response = client.get("/admin/")
    assert response.status_code == 200
    return response.content.decode()


def create_dispute(task: Task, severity: str = "high", **kwargs: Any) -> Dispute:
    kwargs = {"question": f"What about {task.title}?"} | kwargs
    return Dispute.objects.create(project=task.project, task=task, severity=severity, **kwargs)


def land(task: Task) -> Task:
    Task.objects.filter(pk=task.pk).update(
        status="completed", finished_by="hand", landed_at=timezone.now(), landed_sha=sha(task.pk)
    )
    return task


def fill(project: Project, number: int) -> None:
    for _ in range(number):
        section = create_section(project)
        create_dispute(create_task(section=section))
        land(create_task(section=section))
        run = create_run(
            create_task(section=section), host=create_host(f"h{section.pk}"), started_at=timezone.now()
        )
        Output.objects.create(run=run, seq=0, text="pytest -q\n")
        Event.objects.create(
            project=project, task=run.task, kind="start", actor_kind="system", label="System"
        )


def test_the_page_costs_as_many_queries_for_twelve_rows_as_for_three(
    client: Client, ledger: Project, tom: User
) -> None:
    client.force_login(tom)
    counts = []
    for number in (3, 9):
        fill(ledger, number)
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/admin/").status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert counts[0] <= 12


def test_no_large_table_is_read_through_for_the_page(client: Client, ledger: Project, tom: User) -> None:
    create_agent("coder")
    fill(ledger, 2)
    serving = {
        "run_ended_by_day", "run_live_by_project", "task_to_land", "task_escalated", "task_left_of",
        "task_landed_of", "task_landed",
    }  # fmt: skip
    for user in (tom, create_user("root", is_superuser=True)):
        cache.clear()
        by_index(lambda user=user: visit(client, user), serving)


def test_an_empty_project_says_in_words_that_nothing_waits(
    client: Client, ledger: Project, tom: User
) -> None:
    html = visit(client, tom)
    for words in (
        "Nothing waits for you.", "No agent is at work.", "Nothing has landed yet.",
        "No section has tasks.", "Nothing has happened yet.", "No host has reported yet",
    ):  # fmt: skip
        assert words in html
    assert "Start with the first" not in html


def test_an_outsider_is_told_whom_to_ask_and_sees_no_row(client: Client, ledger: Project, otto: User) -> None:
    fill(ledger, 2)
    html = visit(client, otto)
    assert "You are in no project yet." in html
    assert "Ledger" not in html
    assert "ledger-" not in html


def test_a_superuser_without_projects_is_sent_to_add_one(client: Client, db: Any) -> None:
    html = visit(client, create_user("root", is_superuser=True))
    assert "There is no project yet." in html
    assert "/admin/tasks/project/add/" in html


def test_disputes_stand_in_the_order_of_the_queue_and_lead_to_it(
    client: Client, ledger: Project, vera: User
) -> None:
    low = create_dispute(create_task(ledger), "low")
    critical = create_dispute(create_task(ledger, round=3), "critical", blocks=4)
    create_dispute(create_task(ledger), "critical", status="closed")
    html = visit(client, vera)
    assert html.index(critical.question) < html.index(low.question)
    assert f'href="/queue/D-{critical.pk}/"' in html
    assert "blocks 4 tasks" in html
    assert "round 3" in html
    assert "All 2" in html


def test_only_the_first_six_disputes_are_shown(client: Client, ledger: Project, tom: User) -> None:
    for _ in range(8):
        create_dispute(create_task(ledger))
    html = visit(client, tom)
    assert html.count('class="need"') == 6
    assert "All 8" in html


def test_a_live_run_shows_who_works_where_and_the_end_of_its_log(
    client: Client, ledger: Project, tom: User
) -> None:
    task = create_task(ledger, round=2)
    run = create_run(
        task, host=create_host("atlas"), tier=3, started_at=timezone.now() - timedelta(minutes=12)
    )
    for seq, text in enumerate(("first\nsecond\nthird\n", "\x1b[32m<b>fourth</b>\x1b[0m\nfifth\n")):
        Output.objects.create(run=run, seq=seq, text=text)
    create_run(create_task(ledger), status="ended", ended_at=timezone.now(), agent_label="gone")
    html = visit(client, tom)
    assert "Ledger · coder-1 on atlas · round 2" in html
    assert "12 m" in html
    assert ">sandboxed<" in html
    assert "second\nthird\n" in html
    assert "&lt;b&gt;fourth&lt;/b&gt;" in html
    assert "first" not in html.split('<pre class="log">')[1].split("</pre>")[0]
    assert "[32m" not in html
    assert "gone" not in html


def test_a_silent_run_says_when_it_will_be_stopped(client: Client, ledger: Project, tom: User) -> None:
    quiet = timezone.now() - timedelta(seconds=settings.DURATIONS["silence"] / 2)
    create_run(create_task(ledger), started_at=quiet, last_output_at=quiet)
    assert "silent for" in visit(client, tom)


def test_what_landed_shows_its_commit_and_what_is_to_land_is_counted(
    client: Client, ledger: Project, tom: User
) -> None:
    from tests.factories import create_submission

    task = land(create_task(ledger, title="Convert amounts"))
    waiting = create_task(ledger)
    waiting.status, waiting.accepted = "completed", create_submission(waiting)
    waiting.save()
    html = visit(client, tom)
    assert f"{task.ref} Convert amounts" in html
    assert f"<code>{sha(task.pk)[:8]}</code>" in html
    assert "1 waits to land" in html


def test_sections_count_what_landed_and_forget_what_was_cancelled(
    client: Client, ledger: Project, tom: User
) -> None:
    section = create_section(ledger, "Payments", is_stopped=True)
    land(create_task(section=section))
    create_task(section=section)
    create_task(section=section, status="cancelled")
    html = visit(client, tom)
    assert "Ledger · Payments" in html
    assert "1 of 2" in html
    assert "stopped" in html
    assert Section.objects.count() == 1


def test_a_section_of_more_tasks_than_are_counted_says_so(
    client: Client, ledger: Project, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboard, "TASKS_MAX", 2)
    monkeypatch.setattr(dashboard, "_shown_sections", PreparedForReaders(dashboard._first_sections))
    section = create_section(ledger)
    for _ in range(3):
        land(create_task(section=section))
    create_task(section=section)
    html = visit(client, tom)
    assert "2+, 1 left" in html
    assert "<progress" not in html


def test_unfinished_sections_stand_before_the_others_in_the_order_of_their_projects(
    client: Client, ledger: Project, tom: User
) -> None:
    atlas = create_project("atlas", members={tom: "viewer"})
    for project, title, done in (
        (ledger, "Doors", False), (ledger, "Walls", True), (atlas, "Maps", True), (atlas, "Roads", False),
    ):  # fmt: skip
        task = create_task(section=create_section(project, title))
        if done:
            land(task)
    create_section(ledger, "Empty")
    html = visit(client, tom)
    found = re.findall(r'id="section-\d+">(.*?)</span>', html)
    assert found == ["Atlas · Roads", "Ledger · Doors", "Atlas · Maps", "Ledger · Walls"]


def test_an_event_says_what_became_of_what(client: Client, ledger: Project, tom: User) -> None:
    task = create_task(ledger)
    Event.objects.create(
        project=ledger, task=task, kind="rule_revise", from_status="disputed", to_status="in_progress",
        actor_kind="person", label="Lea Lindt",
    )  # fmt: skip
    html = visit(client, tom)
    assert f"{task.ref} sent it back by a ruling" in html
    assert "Lea Lindt · disputed → in progress" in html


def test_rows_of_other_projects_stay_hidden(client: Client, ledger: Project, tom: User) -> None:
    fill(create_project("secret"), 2)
    html = visit(client, tom)
    assert "Secret" not in html
    assert "secret-" not in html
    assert "Nothing waits for you." in html


def test_the_health_line_tells_hosts_and_the_last_tick(client: Client, ledger: Project, tom: User) -> None:
    create_host("atlas", seen_at=timezone.now(), tier=1, why_open="bubblewrap is <not> installed.")
    create_host("boreas", seen_at=timezone.now() - timedelta(hours=2), is_draining=True)
    Host.objects.filter(name="boreas").update(ticked_at=timezone.now())
    html = visit(client, tom)
    assert "1 of 2 hosts alive" in html
    assert "check_circle" in html
    assert "The loop turned" in html
    assert "2h00m</time>ago,draining" in _squeezed(html)
    why = '<strong title="bubblewrap is &lt;not&gt; installed.">not sandboxed</strong>'
    assert html.split("atlas seen")[1].split("boreas seen")[0].count(why) == 1
    assert "not sandboxed" not in html.split("boreas seen")[1]
    long_ago = timezone.now() - timedelta(seconds=2 * settings.DURATIONS["watchdog"])
    Host.objects.filter(name="boreas").update(ticked_at=long_ago)
    assert "check_circle" not in visit(client, tom)


def test_what_is_wrong_stands_first_with_what_to_do(client: Client, ledger: Project, tom: User) -> None:
    """Also once something has landed and the checklist is gone."""
    now = timezone.now()
    atlas = create_host("atlas", seen_at=now, ticked_at=now, disk_free=1_000_000_000)
    land(create_task(ledger))
    wanted = {
        "no room left on its disk": lambda: Host.objects.filter(pk=atlas.pk).update(disk_free=3_000_000),
        "manage.py host remove boreas": lambda: create_host("boreas", seen_at=now - timedelta(hours=2)),
        "main is red: 2 failed: test_a, test_b": lambda: Project.objects.update(
            base_state="red", base_problem="2 failed: test_a, test_b"
        ),
        "Waits for the repository: No route.": lambda: Project.objects.update(trouble="No route."),
    }
    assert "warning</span>" not in visit(client, tom)
    for words, happens in wanted.items():
        assert words not in visit(client, tom)
        happens()
        before_the_queue = visit(client, tom).split('id="needs-you"')[0]
        assert words in before_the_queue
        assert before_the_queue.count("The loop turned") == 1
    Project.objects.update(status="paused")
    assert "No route." not in visit(client, tom)
    Host.objects.filter(name="boreas").update(boot_id="")  # it was stopped, so nothing is amiss
    Host.objects.filter(name="atlas").update(disk_free=None)
    assert "warning</span>" not in visit(client, tom)


def test_a_web_server_whose_clock_is_wrong_goes_by_the_database(
    client: Client, ledger: Project, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a clock some minutes ahead, every host had stopped reporting, and another server let nobody in."""
    for wrong in (timedelta(minutes=7), -timedelta(minutes=7)):
        right = timezone.now() - wrong
        monkeypatch.setattr(clock, "database_time", lambda of: right)  # noqa: B023
        asked = SimpleNamespace(vendor="postgresql")
        clock.compare_clocks(asked)
        assert abs(asked.clock_ahead + wrong) < timedelta(seconds=5)
        for name in ("clock_ahead", "booted_at"):
            monkeypatch.setattr(connections["default"], name, getattr(asked, name), raising=False)
        Host.objects.all().delete()
        create_host("atlas", seen_at=right, ticked_at=right)
        html = _squeezed(visit(client, tom))
        assert "1of1hostalive" in html
        assert "warning</span>" not in html
        assert abs(record(ledger, "edited").at - right) < timedelta(seconds=30)
        tries = brake.counters("tom", "192.0.2.1")
        assert brake.begin_try(tries) == timedelta()
        assert abs(SignInTries.objects.latest("forget_at").free_at - right) < timedelta(seconds=30)
        with monkeypatch.context() as set_later:
            set_later.setattr(connections["default"], "vendor", "postgresql")
            set_later.setattr(clock.timezone, "now", lambda: datetime.now(UTC) + timedelta(hours=3))
            assert abs(clock.estimated_time() - right) < timedelta(seconds=30)
    clock.compare_clocks(asked := SimpleNamespace(vendor="sqlite"))
    assert asked.clock_ahead == timedelta()


def test_setting_up_stands_above_the_queue_until_somebody_is_waited_for(
    client: Client, ledger: Project, lea: User
) -> None:
    def order() -> list[str]:
        return re.findall(r'id="(checklist|needs-you)"', visit(client, lea))

    assert order() == ["checklist", "needs-you"]
    create_dispute(create_task(ledger))
    assert order() == ["needs-you", "checklist"]


# --- The sidebar --------------------------------------------------------------------------------------------


def sidebar_of(html: str) -> str:
    return html.split('id="nav-sidebar-apps"')[1].split("</nav>")[0]


def test_the_queue_carries_the_number_of_disputes_that_the_person_may_rule_on(
    client: Client, ledger: Project, tom: User, vera: User, otto: User
) -> None:
    for _ in range(3):
        create_dispute(create_task(ledger))
    assert ">3<" in _squeezed(sidebar_of(visit(client, tom)))
    assert ">3<" not in _squeezed(sidebar_of(visit(client, vera)))
    assert "badge" not in sidebar_of(visit(client, otto))
    assert ">3<" not in _squeezed(sidebar_of(visit(client, otto)))
    with timezone.override("Asia/Kolkata"):
        assert "Times are in Asia/Kolkata." in sidebar_of(visit(client, tom))


def test_the_number_is_capped_and_kept_for_a_moment(client: Client, ledger: Project, tom: User) -> None:
    disputes = [
        Dispute(
            project=ledger,
            task=create_task(ledger),
            severity="low",
            question=f"No. {number}?",
        )
        for number in range(101)
    ]
    Dispute.objects.bulk_create(disputes)
    assert ">99+<" in _squeezed(sidebar_of(visit(client, tom)))
    Dispute.objects.update(status="closed")
    assert ">99+<" in _squeezed(sidebar_of(client.get("/sessions/").content.decode()))
    assert ">99+<" not in _squeezed(visit(client, tom))  # which counts for itself, and for those after it
    assert ">99+<" not in _squeezed(sidebar_of(client.get("/sessions/").content.decode()))


def test_every_number_of_the_sidebar_is_counted_in_one_query(
    client: Client, ledger: Project, tom: User, django_assert_num_queries: Any
) -> None:
    fill(ledger, 1)
    request = HttpRequest()
    request.user = tom
    assert project_ids(request, RULE) == {ledger.pk}
    with django_assert_num_queries(1):
        assert [badge_of(request, counts) for counts in ("queue", "runs")] == ["1", "1"]


def _squeezed(html: str) -> str:
    return "".join(html.split())


def test_the_sidebar_offers_what_the_person_may_open(
    client: Client, ledger: Project, vera: User, otto: User
) -> None:
    for user, seen, hidden in (
        (
            create_user("root", is_superuser=True),
            ["Hosts", "Users", "Agents", "Background jobs", "Tasks"],
            [],
        ),
        (vera, ["Tasks", "Events", "Tokens"], ["Hosts", "Users", "Agents", "Background jobs"]),
        (otto, ["Queue", "Tokens", "REST API"], ["Tasks", "Events", "Hosts"]),
    ):
        html = sidebar_of(visit(client, user))
        assert [title for title in seen if f"<span>{title}</span>" not in html] == []
        assert [title for title in hidden if f"<span>{title}</span>" in html] == []


def test_the_sidebar_marks_the_entry_of_the_page_and_of_the_pages_below(
    client: Client, ledger: Project, tom: User
) -> None:
    dispute = create_dispute(create_task(ledger))
    for path, title in (
        ("/admin/", "Dashboard"), ("/queue/", "Queue"), ("/queue/settled/", "Queue"), ("/runs/", "Runs"),
        (f"/admin/disputes/dispute/{dispute.pk}/change/", "Disputes"),
    ):  # fmt: skip
        entries = sidebar_of(as_user(client, tom).get(path).content.decode()).split("<li>")[1:]
        marked = [entry for entry in entries if re.search(r'class="[^"]* active"', entry)]
        assert len(marked) == 1, path
        assert f"<span>{title}</span>" in marked[0], path


def test_the_page_loads_nothing_from_outside(client: Client, ledger: Project, tom: User) -> None:
    fill(ledger, 1)
    html = visit(client, tom)
    assert "steroids/steroids.css" in html
    assert "steroids/dashboard.css" in html
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert "https://" not in html


# --- The components -----------------------------------------------------------------------------------------


def rendered(source: str, **context: Any) -> str:
    return Template("{% load steroids %}" + source).render(Context(context))


@for_each(
    ("seconds", "words"),
    [(8, "8 s"), (12 * 60, "12 m"), (65 * 60, "1 h 05 m"), (49 * 3600, "2 d 1 h"), (-3, "0 s"), (None, "")],
)
def test_a_duration_has_two_units_at_most(seconds: int | None, words: str) -> None:
    assert rendered("{{ seconds|duration }}", seconds=seconds) == words


def test_a_text_is_cut_between_words_and_only_markup_of_ours_stays_markup() -> None:
    texts = {
        "just ten!!": "just ten!!",
        "more than ten": "more than…",
        None: "None",
        12345678901: "123456789…",
        "<b>&amp;</b>": "&lt;b&gt;&amp;amp;&lt;…",
        SafeString("<i>x</i>"): "<i>x</i>",
    }
    for text, shown in texts.items():
        assert rendered("{{ text|truncatechars:10 }}", text=text) == shown


def test_a_remembered_path_is_the_one_of_its_own_row() -> None:
    for _ in range(2):
        for ref in ("ledger-1", "ledger-2"):
            assert rendered('{% path_to "task" ref %}', ref=ref) == reverse("task", args=[ref])


def test_an_age_carries_the_full_date() -> None:
    moment = timezone.now() - timedelta(hours=2, minutes=11, seconds=5)
    html = rendered("{% age moment %}", moment=moment)
    assert "2 h 11 m" in html
    assert f'datetime="{moment:%Y-%m-%dT%H:%M:%S}' in html
    assert "never" in rendered("{% age moment %}", moment=None)


def test_chips_say_the_word_and_hide_the_picture_from_readers() -> None:
    assert "Critical" in rendered('{% severity_chip "critical" %}')
    assert rendered('{% severity_chip "low" %}').count('class="off"') == 2
    words = {"disagreement": "Disagreement", "silence": "Silence", "alert": "Alert", "help": "Needs a person"}
    for kind, word in words.items():
        html = rendered("{% kind_chip kind %}", kind=kind)
        assert word in html
        assert 'aria-hidden="true"' in html
    html = rendered('{% status_box "in_progress" %}')
    assert "[-]" in html
    assert "In progress" in html
