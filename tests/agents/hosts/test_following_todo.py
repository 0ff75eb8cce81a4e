"""A TODO.md that people keep in the repository, followed and ticked in real git."""

import subprocess
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.hosts import landing as landings
from agents.hosts.branches import todo
from tasks.events import SYSTEM
from tasks.models import Event, FollowedTodo, Landing, Notice, Project, Task
from tasks.todo import comparing
from tests.agents.world import World, git, make_world  # noqa: F401

pytestmark = pytest.mark.django_db

PATH = "docs/TODO.md"
FIRST = """\
Things for the ledger, in no order.

## Soon
* [ ] Round half up
  The bank does.
* [ ] Say what went wrong
    1. [ ] Name the line

Done
----
- [X] Begin\r
"""


def choose(world: World, **settings: Any) -> None:
    Project.objects.filter(pk=world.project.pk).update(
        settings=world.project.settings | {"todo_path": PATH} | settings
    )
    world.project.refresh_from_db()


def look(world: World) -> FollowedTodo:
    """One look of a host; another one has looked already, and nobody does so again at once."""
    world.duration(records=0)
    for project in todo.due():
        todo.follow(project)
    return FollowedTodo.objects.get(project=world.project)


def file_on(world: World, branch: str = "main") -> str:
    """The file to the byte."""
    named = ["git", "-C", str(world.remote.path), "show", f"refs/heads/{branch}:{PATH}"]
    return subprocess.run(named, capture_output=True, check=True).stdout.decode()


def edit(world: World, old: str, new: str) -> str:
    """A person changes the file on the target branch."""
    text = file_on(world)
    assert old in text
    return world.remote.push({PATH: text.replace(old, new)})


def land(world: World, task: Task, files: dict[str, str | None]) -> str:
    landing = world.accepted(files, task=Task.objects.select_related("project", "section").get(pk=task.pk))
    for _ in range(3):
        landings.advance(Landing.objects.get(pk=landing.pk), "this-host")
    landing.refresh_from_db()
    assert landing.status == Landing.Status.LANDED, landing.problem
    return str(landing.sha)


def told(kind: str) -> list[str]:
    return [event.task.ref if event.task else "" for event in Event.objects.filter(kind=kind).order_by("pk")]


def test_a_persons_list_is_followed_and_ticked_where_the_project_says_so(world: World) -> None:
    world.remote.push({PATH: FIRST})
    assert todo.due() == []  # nobody chose it
    choose(world)
    world.duration(records=600)
    assert todo.has_work()
    [project] = todo.due()
    todo.follow(project)
    assert todo.due() == []  # it rests
    assert not todo.has_work()
    tasks = {task.title: task for task in world.project.tasks.select_related("section")}
    assert {title: task.status for title, task in tasks.items()} == {
        "Round half up": "pending", "Say what went wrong": "pending", "Name the line": "pending",
        "Begin": "completed",
    }  # fmt: skip
    before = world.remote.head()

    # It only reads until a branch is named; then one box is filled, and no other character changes.
    land(world, tasks["Round half up"], {"a.py": "a\n"})
    look(world)
    assert file_on(world) == FIRST
    choose(world, todo_branch="main")
    assert todo.has_work()
    row = look(world)
    assert file_on(world) == FIRST.replace("* [ ] Round", "* [x] Round")
    assert (row.sha, row.problem) == (world.remote.head(), "")
    assert git(world.remote.path, "diff", "--numstat", "HEAD~1", "HEAD").split() == ["1", "1", PATH]
    assert "Written by Steroids Web" in git(world.remote.path, "log", "-1", "--format=%b", "main")
    assert git(world.remote.path, "log", "-1", "--format=%an", "main") == "Steroids"
    assert not todo.has_work()

    # What the program wrote is no news to it: no commit follows, no task changes.
    events = Event.objects.count()
    for _ in range(3):
        look(world)
    assert (world.remote.head(), Event.objects.count()) == (row.sha, events)
    assert before != row.sha

    # People edit: a new line, a tick, a removed line, a box that they empty again, a title said otherwise.
    edit(world, "* [x] Round half up", "* [ ] Round half up")
    edit(world, "1. [ ] Name", "1. [x] Name")
    edit(world, "- [X] Begin\r\n", "- [ ] Take the currency along\n")
    edit(world, "Say what went wrong", "Say what went wrong, and where")
    Task.objects.filter(pk=tasks["Round half up"].pk).update(severity="high")  # on its page
    look(world)
    names = {task.title: task for task in world.project.tasks.all()}
    assert names["Name the line"].status == "completed"
    assert names["Name the line"].finished_by == "hand"
    assert names["Take the currency along"].status == "pending"
    assert names["Say what went wrong, and where"].pk == tasks["Say what went wrong"].pk
    assert world.project.tasks.count() == 5
    assert names["Begin"].status == "completed"  # nothing is deleted
    assert names["Round half up"].status == "completed"
    assert names["Round half up"].severity == "high"
    assert told("todo_reopened") == [names["Round half up"].ref]
    assert "* [ ] Round half up" in file_on(world)  # the person's word stands, also later
    edit(world, "in no order", "in some order")
    look(world)
    assert "* [ ] Round half up" in file_on(world)
    assert told("todo_reopened") == [names["Round half up"].ref]

    # A removed line is told once, and the task stays; back again, it is the same task.
    edit(world, "- [ ] Take the currency along\n", "")
    look(world)
    look(world)
    assert told("todo_removed") == [names["Take the currency along"].ref]
    edit(world, "in some order.", "in some order.\n\n- [ ] Take the currency along")
    look(world)
    assert world.project.tasks.filter(title="Take the currency along").count() == 1
    assert Task.objects.get(title="Take the currency along").status == "pending"


def test_a_line_keeps_its_task_when_it_moves_and_a_page_keeps_what_the_file_does_not_say(
    world: World,
) -> None:
    world.remote.push({PATH: FIRST})
    choose(world)
    look(world)
    task = world.project.tasks.get(title="Round half up")
    own = "Ask the bank.\nThen round."
    Task.objects.filter(pk=task.pk).update(
        title="Round half up, always", body=own, severity="critical", tags=["bank"]
    )
    moved = FIRST.replace("* [ ] Round half up\n  The bank does.\n", "") + "- [ ] Round half up\n"
    world.remote.push({PATH: moved})
    look(world)
    row = world.project.tasks.select_related("section").get(pk=task.pk)
    assert (row.title, row.severity, row.tags) == ("Round half up, always", "critical", ["bank"])
    assert (row.section.title, row.body) == ("Done", "")
    edit_ = Event.objects.get(kind="edited", task=row)  # the words of a page are not lost
    assert edit_.data == {"fields": ["body", "section"], "replaced": {"body": own}}
    assert edit_.note == f"Changed in TODO.md: body, section.\nBefore, its body was: {own}"
    assert world.project.tasks.count() == 4
    edit(world, "- [ ] Round half up", "- [ ] Round half up\n  severity: low")
    look(world)
    row.refresh_from_db()
    assert (row.title, row.severity) == ("Round half up, always", "low")


def test_lines_keep_their_tasks_where_all_of_them_and_their_section_are_reworded_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To compare each new line with each that is gone takes minutes where thousands are rewritten.

    Beyond a limit, words that few lines have show which are compared, and what no longer has any is new.
    """
    lines = [f"- [ ] Write page {number} of the manual" for number in range(10, 20)]
    world.remote.push({PATH: "\n".join(["## Soon", *lines])})
    choose(world)
    look(world)
    numbers = {task.title[:13]: task.number for task in world.project.tasks.all()}
    monkeypatch.setattr(comparing, "COMPARED_MAX", 20)
    changed = [line.replace("the manual", "our manual") for line in reversed(lines)]
    world.remote.push({PATH: "\n".join(["## At once", *changed[:9], "- [ ] Write a page of the manual"])})
    look(world)
    tasks = world.project.tasks.select_related("section").order_by("number")
    now = {task.title[:13]: task.number for task in tasks}
    assert {title: now[title] for title in numbers} == numbers
    assert [task.title.split(" of ")[1] for task in tasks] == ["the manual"] + ["our manual"] * 9 + [
        "the manual"
    ]
    assert [task.section.title for task in tasks] == ["Soon"] + ["At once"] * 10


def test_what_people_change_of_a_sections_order_stays_until_the_file_says_another(world: World) -> None:
    then = "## Then\nafter: Soon\nSecond.\n- [ ] B\n  depends: A\n"
    world.remote.push({PATH: f"## Soon\n- [ ] A\n\n{then}\n## Last\n- [ ] C\n"})
    choose(world)
    look(world)
    section, b = world.project.sections.get(title="Then"), world.project.tasks.get(title="B")

    def order() -> tuple[list[str], list[str], str]:
        section.refresh_from_db()
        needed = [link.on.title for link in b.dependencies.select_related("on")]
        return [each.title for each in section.depends_on.order_by("pk")], needed, section.body

    assert order() == (["Soon"], ["A"], "Second.")
    section.depends_on.clear()
    b.dependencies.all().delete()
    type(section).objects.filter(pk=section.pk).update(body="Ask Tom first.")
    edit(world, "- [ ] C", "- [ ] C, too")
    look(world)
    assert order() == ([], [], "Ask Tom first.")
    edit(world, "after: Soon\nSecond.", "after: Soon; Last\nSecond, or third.")
    look(world)
    assert order() == (["Soon", "Last"], [], "Second, or third.")
    edit(world, "after: Soon; Last\n", "")
    look(world)
    assert order()[0] == []  # the file named an order before, so saying none is a change


def test_ticks_go_to_a_branch_of_their_own_and_stop_where_somebody_changed_it(world: World) -> None:
    world.remote.push({PATH: FIRST})
    choose(world, todo_branch="ticks")
    look(world)
    first, second, third = world.project.tasks.filter(status="pending").order_by("number")
    land(world, first, {"a.py": "a\n"})
    head = world.remote.head()
    look(world)
    assert world.remote.head() == head
    assert file_on(world, "ticks") == FIRST.replace("* [ ] Round", "* [x] Round")
    assert not todo.has_work()
    land(world, third, {"b.py": "b\n"})
    look(world)
    both = FIRST.replace("* [ ] Round", "* [x] Round").replace("1. [ ]", "1. [x]")
    assert file_on(world, "ticks") == both

    # Merged, it begins anew from the target branch; the program knows its own ticks again.
    world.remote.push({PATH: both}, "Merge ticks")
    events = Event.objects.count()
    look(world)
    assert Event.objects.count() == events
    clone = world.remote.path.parent / "clone"
    git(clone.parent, "clone", "--quiet", "--branch", "ticks", str(world.remote.path), str(clone))
    (clone / PATH).write_text(both + "- [ ] By hand\n")
    git(clone, "commit", "--quiet", "--all", "--message", "By hand")
    git(clone, "push", "--quiet", "origin", "ticks")
    land(world, second, {"c.py": "c\n"})
    row = look(world)
    assert f"Somebody changed {PATH} on ticks" in row.problem
    assert file_on(world, "ticks") == both + "- [ ] By hand\n"
    assert not todo.has_work()


def test_what_landed_work_changes_in_the_list_waits_for_a_person(
    world: World, client: Client, lea: User, tom: User
) -> None:
    world.project.memberships.create(user=lea, role="maintainer", is_lead=True)
    world.project.memberships.create(user=tom, role="triager")
    world.remote.push({PATH: FIRST})
    choose(world)
    look(world)
    first, second, _ = world.project.tasks.filter(status="pending").order_by("number")

    # A tick alone passes, and closes nothing.
    land(world, first, {PATH: FIRST.replace("* [ ]", "* [x]")})
    row = look(world)
    assert row.waiting_for == []
    assert (row.sha, row.waiting, row.waiting_for) == (world.remote.head(), "", [])
    second.refresh_from_db()
    assert second.status == "pending"
    assert told("todo_unclosed") == [second.ref]

    # What it adds or says otherwise is not taken, however often the branch moves on.
    more = file_on(world) + "- [ ] <b>Pay Mallory</b>\n"
    third = world.project.tasks.get(title="Name the line")
    commit = land(world, third, {PATH: more})
    look(world)
    world.remote.push({"b.py": "b\n"})
    row = look(world)
    assert row.waiting == commit
    assert world.project.tasks.count() == 4
    [event] = Event.objects.filter(kind="todo_waits")
    assert third.ref in event.note
    assert Notice.objects.filter(event=event).exists()
    address = f"/projects/{world.project.slug}/"
    client.force_login(tom)
    page = client.get(address).content.decode()
    assert "&lt;b&gt;Pay Mallory" in page
    assert "Let it pass" not in page
    assert client.post(f"{address}tasks/followed/", {"sha": commit}).status_code == 403
    client.force_login(lea)
    assert "Let it pass" in client.get(address).content.decode()
    assert client.post(f"{address}tasks/followed/", {"sha": row.sha}).status_code == 409
    assert client.post(f"{address}tasks/followed/", {"sha": commit}).status_code == 302
    row = look(world)
    assert (row.waiting, row.sha) == ("", world.remote.head())
    assert world.project.tasks.filter(title="<b>Pay Mallory</b>").exists()
    assert "as of" in client.get(address).content.decode()


def test_a_file_that_cannot_be_read_changes_nothing_and_says_why(
    world: World, client: Client, lea: User
) -> None:
    world.project.memberships.create(user=lea, role="maintainer")
    choose(world, todo_branch="main")
    row = look(world)
    assert row.problem == f"There is no file {PATH} on main."
    world.remote.push({PATH: FIRST})
    assert look(world).problem == ""
    taken = FollowedTodo.objects.get().sha
    count = world.project.tasks.count()
    world.remote.push({PATH: "# Nothing\n"})
    row = look(world)
    assert "holds no task" in row.problem
    assert (row.sha, world.project.tasks.count()) == (taken, count)
    client.force_login(lea)
    assert "holds no task" in client.get(f"/projects/{world.project.slug}/").content.decode()
    task = world.project.tasks.get(title="Round half up")
    task.finish(actor=SYSTEM)
    head = world.remote.head()
    look(world)
    assert world.remote.head() == head  # nothing is written into a file that is not understood
    edit(world, "# Nothing\n", FIRST)
    assert look(world).problem == ""
    assert "* [x] Round" in file_on(world)

    # What git could not do is told, and is over once it can again.
    address = world.project.repo_url
    Project.objects.filter(pk=world.project.pk).update(repo_url="/nowhere/at/all.git")
    assert look(world).problem
    assert not todo.has_work()
    Project.objects.filter(pk=world.project.pk).update(repo_url=address)
    assert look(world).problem == ""

    # Another path is read though the branch has not moved; what the first file held stays.
    world.remote.push({"PLAN.md": "- [ ] Round half up\n- [ ] Plan\n"})
    look(world)
    choose(world, todo_path="PLAN.md")
    assert look(world).path == "PLAN.md"
    assert told("todo_removed") == []
    assert world.project.tasks.filter(title="Round half up").count() == 1
    assert world.project.tasks.filter(title="Plan").count() == 1
