"""The overview of a project, the list of what a new installation needs, and tasks that are pasted."""

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.html import escape

from disputes import alerts
from tasks.models import Event, Landing, Membership, Project, Task
from tests.factories import (
    create_agent,
    create_host,
    create_project,
    create_run,
    create_submission,
    create_task,
    create_user,
    sha,
)
from tests.steroidsweb.setting_inputs import setting_inputs

pytestmark = pytest.mark.django_db

PAGE = "/projects/ledger/"
TODO = "## Documents\n\n- [ ] Say <b>what</b> it does\n  severity: high\n"


def html(client: Client, path: str = PAGE) -> str:
    cache.clear()
    reply = client.get(path)
    assert reply.status_code == 200
    return reply.content.decode()


def landed(project: Project) -> Task:
    task = create_task(project, status="completed", finished_by="hand")
    Task.objects.filter(pk=task.pk).update(landed_at=timezone.now(), landed_sha=sha(task.pk))
    return task


def steps(client: Client) -> dict[str, tuple[str, str]]:
    """What the dashboard's list says: state and words of each step; empty where there is no list."""
    cache.clear()
    told = client.get("/admin/").context["checklist"]
    return {step.title: (step.state, step.line) for step in told.steps} if told else {}


# --- The overview -----------------------------------------------------------------------------------------


def test_the_overview_says_how_far_it_is_and_who_is_there(
    client: Client, ledger: Project, vera: User
) -> None:
    done, under_way = landed(ledger), create_task(ledger, title="Round <i>half</i> up", status="in_progress")
    create_run(under_way)
    create_agent("coder", name="coder-7", is_fine=True)
    create_agent("coder", name="elsewhere").projects.set([create_project("other")])
    alerts.ask_about_base(ledger, "main of Ledger is red: 3 failed")
    Project.objects.filter(pk=ledger.pk).update(base_state="red", base_problem="3 failed")
    client.force_login(vera)
    shown = html(client)
    wanted = [
        "1 of 2 landed", "Round &lt;i&gt;half&lt;/i&gt; up", done.ref, "main of Ledger is red: 3 failed",
        "coder-7", ">Red</a>", f"{PAGE}setup/", "vera", "viewer", "maintainer",
        f"/admin/tasks/project/{ledger.pk}/change/",
    ]  # fmt: skip
    assert [words for words in wanted if words not in shown] == []
    assert "elsewhere" not in shown
    assert f"{PAGE}end/" not in shown, "who only reads is not offered the end"
    assert "Paste a TODO.md" not in shown
    counted = re.findall(r'<a href="([^"]+status__in=\w+)">.*?</span>\s+(\d+)</a>', shown, re.DOTALL)
    assert [number for _, number in counted] == ["1", "1"]
    for path, number in counted:
        assert client.get(path.replace("&amp;", "&")).context["cl"].result_count == int(number), path


def test_the_overview_says_that_the_remote_does_not_take_what_is_approved(
    client: Client, ledger: Project, vera: User
) -> None:
    """The dashboard said so in part and led to this page, which said nothing about it."""
    task = create_task(ledger, status="review")
    words = "git push: remote: <b>frozen</b>: ask release@example.org"
    Landing.objects.create(
        project=ledger,
        task=task,
        submission=create_submission(task),
        sha=sha(1),
        target="main",
        problem=words,
    )
    client.force_login(vera)
    assert "cannot be pushed (tried again now): " + escape(words) in html(client)
    Landing.objects.update(problem="")
    assert "cannot be pushed" not in html(client)


def test_the_overview_costs_the_same_however_much_there_is(
    client: Client, ledger: Project, lea: User
) -> None:
    client.force_login(lea)
    counts = []
    for number in (2, 6):
        for _ in range(number):
            landed(ledger)
            create_run(create_task(ledger, status="in_progress"), host=create_host())
            create_agent("coder")
            ledger.memberships.create(user=create_user(), role="viewer")
        html(client)
        with CaptureQueriesContext(connection) as queries:
            html(client)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_the_admin_leads_to_the_overview_and_offers_the_end_to_maintainers(
    client: Client, ledger: Project, lea: User, vera: User
) -> None:
    form = f"/admin/tasks/project/{ledger.pk}/change/"
    client.force_login(vera)
    assert f'href="{PAGE}"' in html(client, "/admin/tasks/project/")
    assert "End the project" not in html(client, form)
    client.force_login(lea)
    assert "End the project" in html(client, form)
    assert f'href="{PAGE}"' in html(client, f"{PAGE}board/")


def test_whoever_makes_a_project_leads_it_and_sees_what_is_found(client: Client, db: Any) -> None:
    root = create_user("root", is_superuser=True)
    client.force_login(root)
    form = {
        "name": "Till", "slug": "till", "status": "active", "repo_url": "/nowhere/till.git",
        "target_branch": "main", "max_parallel": 2, "kind": "code",
    }  # fmt: skip
    reply = client.post("/admin/tasks/project/add/", form)
    assert reply.url == "/projects/till/setup/"
    till = Project.objects.get(slug="till")
    member = till.memberships.get()
    assert (member.user, member.role, member.is_lead) == (root, Membership.Role.MAINTAINER, True)

    Project.objects.filter(pk=till.pk).update(base_state="green", trouble="It cannot be reached.")
    changed = {**form, **setting_inputs(till), "repo_url": "/there/till.git"}
    changed |= {"memberships-TOTAL_FORMS": 0, "memberships-INITIAL_FORMS": 0}
    assert client.post(f"/admin/tasks/project/{till.pk}/change/", changed).status_code == 302
    till.refresh_from_db()
    assert (till.repo_url, till.base_state, till.trouble) == ("/there/till.git", "unknown", "")


# --- What a new installation needs ------------------------------------------------------------------------


def test_the_list_goes_through_its_steps_until_something_has_landed(client: Client, db: Any) -> None:
    root = create_user("root", is_superuser=True)
    client.force_login(root)
    told = steps(client)
    assert list(told) == ["Repository", "Target branch", "Coder", "Reviewer", "Tasks", "People", "Start"]
    assert {state for state, _ in told.values()} == {"open"}
    assert "run_orchestrator --demo" in html(client, "/admin/")

    landed(create_project("demo"))
    project = create_project("till", base_state="unknown", trouble="till.git cannot be reached: no such host")
    assert steps(client)["Repository"] == ("wrong", "till.git cannot be reached: no such host")
    Project.objects.filter(pk=project.pk).update(
        trouble="", base_sha="a" * 40, base_state="red", base_problem="3 failed"
    )
    told = steps(client)
    assert told["Repository"][0] == "done"
    assert told["Target branch"] == ("wrong", "main is red: 3 failed")

    create_agent("coder", name="writer", is_fine=False, check_says="claude: not found")
    create_agent("reviewer", name="reader", is_fine=True, check_says="It answers.")
    create_agent("judge", name="judge")
    create_host(seen_at=timezone.now())
    create_task(project)
    project.memberships.create(user=root, role="maintainer")
    Project.objects.filter(pk=project.pk).update(base_state="green")
    told = steps(client)
    assert told["Coder"] == ("wrong", "writer: claude: not found")
    assert {title for title, (state, _) in told.items() if state != "done"} == {"Coder"}

    able = create_agent("coder", name="able")
    assert steps(client)["Coder"][0] == "open", "nobody looked whether it answers"
    run = create_run(
        create_task(project, number=9), agent=able, status="ended", outcome="handed_in",
        ended_at=timezone.now(),
    )  # fmt: skip
    assert steps(client)["Coder"] == ("done", "able has handed work in.")
    run.delete()
    able.delete()

    landed(project)
    assert steps(client) == {}


def test_agents_of_another_project_are_none_for_a_new_one(client: Client, admin_user: User) -> None:
    demo = create_project("demo")
    for role in ("coder", "reviewer"):
        agent = create_agent(role, is_fine=True, check_says="READY")
        agent.projects.add(demo)
    client.force_login(admin_user)
    assert [steps(client)[title][0] for title in ("Coder", "Reviewer")] == ["open", "open"]
    create_agent("coder", is_fine=True, check_says="READY")
    assert steps(client)["Coder"][0] == "done", "it works everywhere"


def test_the_list_leads_to_the_project_that_waits_for_a_person(
    client: Client, ledger: Project, lea: User
) -> None:
    newer = create_project("till")
    newer.memberships.create(user=lea, role="maintainer")
    client.force_login(lea)
    title = '<h2 id="checklist">Set up {}</h2>'
    assert title.format(newer.name) in html(client, "/admin/")
    for values in ({"base_state": "red"}, {"base_state": "broken"}, {"trouble": "It cannot be reached."}):
        Project.objects.filter(pk=ledger.pk).update(**({"base_state": "green", "trouble": ""} | values))
        shown = html(client, "/admin/")
        assert title.format(ledger.name) in shown, values
        assert f'<a class="text-link" href="/projects/till/">{newer.name}</a>.' in shown


def test_the_list_is_for_those_who_set_something_up(
    client: Client, ledger: Project, lea: User, tom: User, otto: User
) -> None:
    for user, has_list in ((lea, True), (tom, False), (otto, False)):
        client.force_login(user)
        assert bool(steps(client)) == has_list, user
    client.force_login(lea)
    assert "/admin/agents/agent/add/" not in html(client, "/admin/"), "a superuser adds agents"
    create_agent("coder", name="smith")
    assert steps(client)["Coder"] == ("open", "smith is not checked yet. A superuser checks it.")
    assert "Next: tasks." in html(client), "what is next is what she can do"


# --- Tasks that are pasted --------------------------------------------------------------------------------


def shown_in(html: str) -> str:
    """What names the reading that a page shows."""
    found = re.search(r'name="shown" value="(\w{64})"', html)
    assert found, html
    return found[1]


ROUNDS = """\
Seen last week.
=== round_001/engineer.md
# Proposal

## GAP-FLOW-001: Retries

We wait between tries.
=== round_001/reviewer.md
# Review

### ISSUE-R1-001: The wait has <b>no</b> limit

- **Severity:** HIGH
- **Location:** Section 2
- **Impact:** A queue stands still.

### ISSUE-R1-002: A word is missing
"""


def test_rounds_are_pasted_and_exactly_what_was_shown_is_imported(
    client: Client, ledger: Project, lea: User, tom: User, tmp_path: Path
) -> None:
    path = f"{PAGE}rounds/import/"
    client.force_login(tom)
    assert client.post(path, {"text": ROUNDS, "name": "s"}).status_code == 403
    client.force_login(lea)
    for text, name in ((" ", "s"), (ROUNDS, " "), (f"{ROUNDS}=== round_001/reviewer.md\nAgain", "s")):
        answer = client.post(path, {"text": text, "name": name, "import": ""})
        assert (answer.status_code, "Import what is shown" in answer.content.decode()) == (422, False)

    given = {"text": ROUNDS, "name": "s"}
    look = client.post(path, given).content.decode()
    for words in (
        "line 1: passed over", "The wait has &lt;b&gt;no&lt;/b&gt; limit",
        "ISSUE-R1-001, high, Section 2, line 3",
        "no verdict", "Not understood",
    ):  # fmt: skip
        assert words in look, words
    shown = {"import": "", "shown": shown_in(look)}
    assert client.post(path, given | {"import": ""}).status_code == 409
    assert client.post(path, given | shown | {"text": ROUNDS.replace("HIGH", "LOW")}).status_code == 409
    assert ledger.tasks.count() == 0

    folder = tmp_path / "s" / "round_001"
    folder.mkdir(parents=True)
    for name in ("engineer", "reviewer"):
        text = ROUNDS.partition(f"{name}.md\n")[2].partition("===")[0]
        (folder / f"{name}.md").write_text(text)
    out = StringIO()
    call_command("import_rounds", str(folder.parent), project=ledger.slug, dry_run=True, stdout=out)
    assert "1. ISSUE-R1-001, high at Section 2 (line 3): The wait has <b>no</b> limit" in out.getvalue()
    (tmp_path / "TODO.md").write_text(TODO)
    call_command("import_todo", str(tmp_path / "TODO.md"), project=ledger.slug, dry_run=True, stdout=out)
    assert "1. New: Say <b>what</b> it does" in out.getvalue()
    assert ledger.tasks.count() == 0

    assert client.post(path, given | shown).url == f"{PAGE}board/"
    found = ledger.tasks.filter(findings__severity="high").get()
    assert found.title == "GAP-FLOW-001: Retries"
    assert Event.objects.filter(kind="rounds_imported", user=lea).exists()


def test_tasks_are_pasted_looked_at_and_imported(
    client: Client, ledger: Project, lea: User, tom: User
) -> None:
    path = f"{PAGE}tasks/import/"
    client.force_login(tom)
    assert client.post(path, {"text": TODO, "import": ""}).status_code == 403

    client.force_login(lea)
    events = Event.objects.count()
    look = client.post(path, {"text": TODO, "preview": ""}).content.decode()
    assert "1 new" in look
    assert "Say &lt;b&gt;what&lt;/b&gt; it does" in look
    assert (ledger.tasks.count(), Event.objects.count()) == (0, events)

    assert client.post(path, {"text": TODO, "import": ""}).status_code == 409  # nobody has looked
    shown = {"import": "", "shown": shown_in(look)}
    other = client.post(path, {"text": TODO.replace("what", "how")} | shown)
    assert other.status_code == 409
    assert "is another than was shown" in other.content.decode()
    assert ledger.tasks.count() == 0

    faulty = client.post(path, {"text": f"{TODO}  depends: Nothing\n", "import": ""})
    assert faulty.status_code == 422
    assert "Line 3: There is no task “Nothing” to depend on." in faulty.content.decode()
    assert "depends: Nothing" in faulty.content.decode()
    told = re.search(r'role="alert">.*?(?=<ol)', faulty.content.decode(), re.DOTALL)[0]
    assert re.sub(r"<[^>]*>|\s+", " ", told).split()[-3:] == ["Nothing", "was", "imported."]
    two = client.post(path, {"text": f"{TODO}  depends: Nothing; Never\n", "preview": ""}).content.decode()
    assert "<strong>Nothing was imported.</strong> 2 faults:" in two
    assert client.post(path, {"text": "x" * 500_001, "import": ""}).status_code == 422
    assert client.post(path, {"text": " ", "import": ""}).status_code == 422
    assert 'name="guess"' not in faulty.content.decode()

    plain = client.post(path, {"text": "- Say how\n- Say why\n", "preview": ""})
    assert (plain.status_code, 'name="guess"' in plain.content.decode()) == (422, True)
    guessed = client.post(path, {"text": "- Say how\n- Say why\n", "guess": ""}).content.decode()
    assert "2 new" in guessed
    assert "- [ ] Say how\n- [ ] Say why" in guessed
    assert ledger.tasks.count() == 0

    assert client.post(path, {"text": TODO.replace("\n", "\r\n")} | shown).url == f"{PAGE}board/"
    task = ledger.tasks.get()
    assert (task.title, task.severity) == ("Say <b>what</b> it does", "high")
    assert Event.objects.filter(task=task, user=lea).exists()
