"""TODO.md into rows and back."""

import sys
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tasks.dependencies import recount
from tasks.events import Actor
from tasks.models import Dependency, Event, Section, Task
from tasks.models.task import RANK_STEP
from tasks.states import MEANINGS, Severity, Status
from tasks.todo.exporting import export_todo
from tasks.todo.format import TodoError, parse
from tasks.todo.importing import import_todo
from tasks.todo.lenient import read_leniently
from tasks.todo.lists import count_boxes
from tasks.todo.notations import read_list
from tests.cases import for_each
from tests.factories import create_project, create_section, create_task

FILE = """\
# Ledger

## Server

The part that answers.

- [ ] Refuse a wrong password
  source: docs/SPEC.md#login
  severity: high
  tags: login, security
  depends: Keep passwords hashed

  As the specification says.

- [ ] Keep passwords hashed

### Tests

- [ ] Test the login
  severity: low

## Client
after: Server

- [ ] Ask for the password
"""


@pytest.fixture
def actor(lea):
    return Actor.person(lea)


@pytest.fixture
def ledger_file(ledger, actor):
    """The project after a first import."""
    import_todo(ledger, FILE, actor=actor)
    return ledger


def get(title: str) -> Task:
    return Task.objects.get(title=title)


def refs(tasks) -> list[str]:
    return [task.ref for task in tasks]


def snapshot() -> list:
    """All that an import could change."""
    rows = [list(model.objects.order_by("pk").values()) for model in (Section, Task, Dependency, Event)]
    return [*rows, list(Section.depends_on.through.objects.order_by("pk").values())]


def problems_of(project, text, actor) -> list[tuple[int, str]]:
    before = snapshot()
    with pytest.raises(TodoError) as caught:
        import_todo(project, text, actor=actor, strict=True)
    assert snapshot() == before
    return [(problem.line, problem.reason) for problem in caught.value.problems]


# --- Lists that other programs keep as JSON -----------------------------------------------------------------

TASK_MASTER = """{
 "master": {
  "tasks": [
   {"id": 1, "title": "Build", "status": "done", "priority": "high", "dependencies": []},
   {"id": 2, "title": "Serve", "description": "Over HTTP.", "details": "## Not a heading\\n- [ ] no task",
    "testStrategy": "Ask it.", "status": "pending", "priority": "medium", "dependencies": [1, "\\ud800"],
    "subtasks": [
     {"id": 1, "title": "Listen", "status": "in-progress", "dependencies": [2]},
     {"id": 2, "title": "Answer", "status": "pending", "dependencies": [1]},
     {"id": 3, "title": "Build", "status": "deferred", "dependencies": ["2.2"],
      "acceptanceCriteria": ["a", "b"]}
    ]},
   {"id": 3, "status": "pending"}
  ],
  "metadata": {"created": "2026-01-01", "tags": ["master"]}
 },
 "later": {"tasks": [{"id": "1", "title": "Build", "status": "cancelled", "dependencies": ["1"]}]}
}"""
ISSUES = """[
 {"number": 4, "title": "It fails", "body": "Always.", "state": "OPEN", "url": "https://example.org/4",
 "labels": [{"name": "bug"}, {"name": "P1"}]},
 {"number": 5, "title": "It fails", "state": "CLOSED", "labels": []}]"""


def test_a_list_in_json_is_read_with_its_sections_parts_and_order(ledger, actor):
    text = TASK_MASTER.replace('"dependencies": [2]', '"dependencies": []')
    report = import_todo(ledger, text, actor=actor)
    told = {
        (task.section.title, task.title): (
            task.status, task.severity, sorted(task.depends_on.values_list("title", flat=True)),
        )
        for task in ledger.tasks.select_related("section")
    }  # fmt: skip
    assert told == {
        ("master", "Build"): ("completed", "high", []),
        ("master", "Serve"): ("pending", "medium", ["Answer", "Build", "Build (2.3)", "Listen"]),
        ("master", "Listen"): ("pending", "medium", ["Build"]),
        ("master", "Answer"): ("pending", "medium", ["Build", "Listen"]),
        ("master", "Build (2.3)"): ("deferred", "medium", ["Answer", "Build"]),
        ("later", "Build"): ("cancelled", "medium", []),
    }
    assert get("Serve").body == "Over HTTP.\n\n## Not a heading\n- [ ] no task\n\nTest strategy:\nAsk it."
    assert get("Build (2.3)").body == "Acceptance criteria:\n- a\n- b"
    assert report.notes[:3] == (
        "The file is JSON: 6 tasks in 2 lists.",
        "Entry 3 of “master” has no title and is left out.",
        "“Serve” waits for \N{REPLACEMENT CHARACTER}, which is not in the list; left out.",
    )
    before = snapshot()
    again = import_todo(ledger, text, actor=actor)
    assert (len(again.unchanged), again.created, again.updated) == (6, (), ())
    assert snapshot() == before
    circle = import_todo(ledger, TASK_MASTER, actor=actor).notes
    assert [each for each in circle if "Listen" in each] == [
        "“Answer” waits for “Listen”, which waits for it; left out."
    ]


def test_an_export_of_issues_is_a_list_in_json(ledger, actor):
    import_todo(ledger, f'{{"master": {{"tasks": {ISSUES}}}}}', actor=actor)
    assert [section.title for section in ledger.sections.all()] == ["Tasks"]
    import_todo(ledger, ISSUES, actor=actor)
    told = ledger.tasks.order_by("number").values_list(
        "title", "status", "severity", "source", "body", "tags"
    )
    assert list(told) == [
        ("It fails", "pending", "high", "https://example.org/4", "Always.", ["bug", "P1"]),
        ("It fails (5)", "completed", "medium", "", "", []),
    ]


def test_a_list_spells_no_text_that_no_database_takes(ledger, actor):
    import_todo(ledger, r'{"tasks": [{"title": "Cut \ud83d\u0000 off", "status": "pending"}]}', actor=actor)
    import_todo(ledger, '- title: "Cut \\ud83d\\0 off"\n  body: "\\udfff"\n', actor=actor)
    assert {task.title for task in ledger.tasks.all()} == {"Cut \ufffd off"}


LINKS = """{"issue_id": "b-2", "depends_on_id": "b-1", "type": "blocks"},
    {"issue_id": "b-2", "depends_on_id": "b-3", "type": "parent-child"},
    {"issue_id": "b-2", "depends_on_id": "b-4", "type": "related"}""".replace("\n", "")


def test_lists_that_agents_keep_are_read_with_what_is_done_and_what_waits(ledger, actor):
    cases = {
        "user stories in the order of their numbers": (
            """{"branchName": "x", "userStories": [
            {"id": "US-2", "title": "Badge", "priority": 2, "passes": false, "dependencies": ["US-1"]},
            {"id": "US-1", "title": "Column", "priority": 1, "passes": true,
            "acceptanceCriteria": ["It runs"]},
            {"id": "US-3", "title": "Filter", "priority": 3, "passes": false, "notes": "Take care."}]}""",
            [
                ("Column", "completed", "medium", [], "Acceptance criteria:\n- It runs"),
                ("Badge", "pending", "medium", ["Column"], ""),
                ("Filter", "pending", "medium", [], "Notes:\nTake care."),
            ],
        ),
        "features without a title": (
            """[{"category": "a", "description": "A chat begins", "steps": ["Click"], "passes": true},
            {"description": "It is dark.\\nAt night.", "complete": false},
            {"name": "sitemap", "description": "For robots", "status": "not_started"},
            {"title": "It prints JSON", "state": "passing", "area": "a",
            "userVisibleBehavior": "One line for each file"}]""",
            [
                ("A chat begins", "completed", "medium", [], "Steps:\n- Click"),
                ("It is dark.", "pending", "medium", [], "It is dark.\nAt night."),
                ("sitemap", "pending", "medium", [], "For robots"),
                (
                    "It prints JSON",
                    "completed",
                    "medium",
                    [],
                    "User visible behavior:\nOne line for each file",
                ),
            ],
        ),
        "an issue in each line": (
            """{"id": "b-1", "title": "Serve", "status": "closed", "priority": 2}
            {"id": "b-2", "title": "Ask", "status": "open", "priority": 1, "dependencies": [LINKS]}
            {"id": "b-3", "title": "Daemon", "status": "in_progress", "priority": 0}

            {"id": "b-4", "title": "Old", "status": "tombstone", "priority": 1}""".replace("LINKS", LINKS),
            [
                ("Serve", "completed", "medium", [], ""),
                ("Ask", "pending", "high", ["Serve"], ""),
                ("Daemon", "pending", "critical", ["Ask"], ""),
                ("Old", "cancelled", "high", [], ""),
            ],
        ),
        "a list in YAML": (
            """# Priority order (first = highest).
version: 1
tasks:
  - id: T-1
    title: "Dig: here"
    status: done
    acceptance_criteria: [It is deep, It is wide]
  - id: T-2
    title: Pile
    blocked_by: [T-1]
    priority: high
    description: |
      With earth.
      - [ ] all of it
  - id: T-3
    title: Nap
    done: true
""",
            [
                ("Dig: here", "completed", "medium", [], "Acceptance criteria:\n- It is deep\n- It is wide"),
                ("Pile", "pending", "high", ["Dig: here"], "With earth.\n- [ ] all of it"),
                ("Nap", "completed", "medium", [], ""),
            ],
        ),
        "a road map in YAML that names its parts by slugs": (
            "- slug: mesh\n  description: It meshes\n- slug: blog\n- slug: trust\n  after:\n  - mesh\n",
            [
                ("It meshes", "pending", "medium", [], ""),
                ("blog", "pending", "medium", [], ""),
                ("trust", "pending", "medium", ["It meshes"], ""),
            ],
        ),
        "an export in CSV with columns of one name, parts and lines in a cell": (
            """\ufeffSummary,Issue key,Issue id,Parent,Status,Priority,Labels,Labels,\
Inward issue link (Blocks),Description
Serve it,AB-1,100,,To Do,Highest,web,api,AB-2,"It ""serves"".

Fast, too"
Listen,AB-2,101,100,Done,Low,,,,
Older,AB-3,102,,Duplicate,Medium,,,,
""",
            [
                ("Serve it", "pending", "critical", ["Listen"], 'It "serves".\n\nFast, too'),
                ("Listen", "completed", "low", [], ""),
                ("Older", "cancelled", "medium", [], ""),
            ],
        ),
        "an export in CSV with semicolons": (
            'Title;Status;Blocked by\nMow;Closed;\nRake;In Progress;"Mow; Sit"\nSit;Todo;\n',
            [
                ("Mow", "completed", "medium", [], ""),
                ("Rake", "pending", "medium", ["Mow", "Sit"], ""),
                ("Sit", "pending", "medium", [], ""),
            ],
        ),
        "a road map in YAML with tasks that are only a title": (
            "milestones:\n  - name: Core\n    tasks:\n      - title: Delve\n        labels: [priority/high]\n"
            "  - name: Docs\n    tasks:\n      - Say it\n      - Show it\n",
            [
                ("Delve", "pending", "high", [], ""),
                ("Say it", "pending", "medium", [], ""),
                ("Show it", "pending", "medium", [], ""),
            ],
        ),
        "a todo.txt": (
            "(A) 2026-11-01 Call it twice at 10:30 +core @cli due:2026-12-24\n\n(B) Write docs id:7\n"
            "x 2026-11-03 2026-11-01 Remove it\n(C) Round it id:8 dep:7\nBuy @milk now\n",
            [
                ("Call it twice at 10:30", "pending", "high", [], ""),
                ("Write docs", "pending", "medium", [], ""),
                ("Remove it", "completed", "medium", [], ""),
                ("Round it", "pending", "low", ["Write docs"], ""),
                ("Buy @milk now", "pending", "medium", [], ""),
            ],
        ),
        "a checklist in AsciiDoc": (
            "= Plan\n:toc:\n\n== One\n\n* [ ] Mill it\n+\nAs people do.\n** [ ] Try it\n* [*] Help\n\n"
            "----\n* [ ] no task\n----\n\n== Two\n\n. [ ] Tell it\n",
            [
                ("Mill it", "pending", "medium", ["Try it"], "As people do."),
                ("Try it", "pending", "medium", [], ""),
                ("Help", "completed", "medium", [], "```\n* [ ] no task\n```"),
                ("Tell it", "pending", "medium", [], ""),
            ],
        ),
        "phases with tasks": (
            """{"phases": [{"name": "One", "status": "done", "tasks": [{"title": "Dig", "done": true}]},
            {"title": "Two", "tasks": [{"id": 7, "title": "Fill"},
            {"title": "Rest", "depends_on": [7]}]}]}""",
            [
                ("Dig", "completed", "medium", [], ""),
                ("Fill", "pending", "medium", [], ""),
                ("Rest", "pending", "medium", ["Fill"], ""),
            ],
        ),
    }
    for name, (text, expected) in cases.items():
        before = ledger.tasks.count()
        import_todo(ledger, text, actor=actor)
        told = [
            (
                task.title, task.status, task.severity,
                sorted(task.depends_on.values_list("title", flat=True)), task.body,
            )
            for task in ledger.tasks.filter(number__gt=before).order_by("rank")
        ]  # fmt: skip
        assert told == expected, name
    assert {"One", "Two"} <= {section.title for section in ledger.sections.all()}


ORG = """#+TITLE: Sink

* Now [1/3]
** TODO [#A] Write a macro [50%]   :parser:
:PROPERTIES:
:ID: 7
:END:
All functions
should work.
#+BEGIN_SRC sh
** TODO no task
#+END_SRC
*** COMPLETE Count
CLOSED: [2020-11-08 Sun 18:56]
*** Remarks
None.
** DONE Make hooks easier
** API for all
* DONT-DO Port it
* WAITING Ask
* COMMENT Ideas
** TODO Nobody does it
* Old :core:ARCHIVE:
** TODO Nor this
"""


def test_an_outline_of_org_mode_is_read_with_its_tasks(ledger, actor):
    report = import_todo(ledger, ORG, actor=actor)
    told = [
        (task.section.title, task.title, task.status, task.severity, task.body)
        for task in ledger.tasks.order_by("rank")
    ]
    body = "All functions\nshould work.\n```sh\n** TODO no task\n```"
    assert told == [
        ("Now", "[P1] Write a macro :parser:", "pending", "high", body),
        ("Now", "Count", "completed", "medium", "Remarks\nNone."),
        ("Now", "Make hooks easier", "completed", "medium", ""),
        ("API for all", "Port it", "cancelled", "medium", ""),
        ("API for all", "Ask", "pending", "medium", ""),
    ]
    assert count_boxes(ORG) == count_boxes("- title: a\n- title: b\n") == 0
    assert report.notes[0] == "Line 4: The file is an outline of Org mode: its TODO lines are the tasks."
    later = ORG.replace("[1/3]", "[3/3]").replace("[50%]   :", "[100%] :")  # Org counts and aligns anew
    assert import_todo(ledger, later, actor=actor).created == ()
    import_todo(ledger, "# Notes\n\n- [ ] One\n\n  * TODO is a word here\n", actor=actor)
    assert get("One").body == "* TODO is a word here"


def test_an_entry_of_another_program_keeps_its_task_by_its_address_or_key_whatever_it_is_called(actor):
    def rows(project):
        return list(project.tasks.order_by("number").values_list("number", "title", "source"))

    for number, (first, second, sources) in enumerate(
        (
            (
                '[{"title": "Fix it", "url": "https://x.org/5"}, {"title": "Fix it", "url": "https://x.org/6"}]',
                '[{"title": "Fix it", "url": "https://x.org/6"}, {"title": "Mend", "url": "https://x.org/5"}]',
                ("https://x.org/5", "https://x.org/6"),
            ),
            (
                "Issue key,Summary,Status\nL-1,Fix it,To Do\nL-2,Fix it,To Do\n",
                "Issue key,Summary,Status\nL-2,Fix it,To Do\nL-1,Mend,To Do\n",
                ("L-1", "L-2"),
            ),
            (  # numbers are places in the list
                '[{"id": 1, "title": "Mend", "done": false}, {"id": 2, "title": "Fix it", "done": false}]',
                '[{"id": 1, "title": "Fix it", "done": false}, {"id": 2, "title": "Mend", "done": false}]',
                ("", ""),
            ),
            (  # a line that kept its title and no longer names a source is still its task
                "- [ ] Mend\n  source: https://x.org/5\n- [ ] Fix it\n  source: SPEC.md\n",
                "- [ ] Mend\n- [ ] Try\n  source: https://x.org/5\n- [ ] Fix it\n  source: SPEC.md\n",
                ("", "SPEC.md", "https://x.org/5"),
            ),
        )
    ):
        project = create_project(slug=f"entries-{number}")
        import_todo(project, first, actor=actor)
        import_todo(project, second, actor=actor)
        titles = ["Mend", "Fix it", "Try"][: len(sources)]
        assert rows(project) == [(at + 1, titles[at], source) for at, source in enumerate(sources)]


def test_entries_of_another_program_that_wait_for_each_other_lose_one_link_and_a_note_says_which(
    ledger, actor
):
    links = "L-1,First,L-2\nL-2,Second,L-3\nL-3,Third,L-1\nL-4,Fourth,L-5\nL-5,Fifth,L-4\n"
    report = import_todo(ledger, f"Issue key,Summary,Inward issue link (Blocks)\n{links}", actor=actor)
    waits = {task.title: [link.on.title for link in task.dependencies.all()] for task in ledger.tasks.all()}
    assert waits == {"First": ["Second"], "Second": ["Third"], "Third": [], "Fourth": ["Fifth"], "Fifth": []}
    assert report.notes[1:] == (
        "“Third” waits for “First”, which waits for it; left out.",
        "“Fifth” waits for “Fourth”, which waits for it; left out.",
    )


def test_the_keywords_that_an_outline_of_org_mode_names_itself_are_its_tasks(ledger, actor):
    for number, (head, expected) in enumerate(
        (
            ("#+TODO: IDEA(i) Doing(d!) | Shipped(s@/!) NEVER(n)", "pending pending completed completed"),
            ("#+seq_todo: IDEA Doing Shipped", "pending pending completed"),
            (
                "#+TODO: IDEA | Shipped\n#+TODO: Doing | NEVER CANCELLED",
                "pending pending completed completed",
            ),
        )
    ):
        outline = "* IDEA One\n* Doing Two\n* Shipped Three\n* NEVER Four\n* TODO the rest\n"
        project = create_project(slug=f"org-{number}")
        import_todo(project, f"{head}\n{outline}", actor=actor)
        assert list(project.tasks.order_by("rank").values_list("status", flat=True)) == expected.split()


def test_a_folder_with_a_file_for_each_task_is_a_list(ledger, tmp_path):
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "readme.md").write_text("# Tasks\n\nAs files.\n")
    for name, text in (
        (
            "task-2 - Fill.md",
            "id: TASK-2\ntitle: 'Fill: it'\nstatus: To Do\ndependencies:\n  - TASK-10\npriority: high",
        ),
        ("task-2.1 - Earth.md", "id: TASK-2.1\ntitle: Earth\nstatus: In Progress\nparent_task_id: TASK-2"),
        ("task-10 - Dig.md", "id: TASK-10\nstatus: Done\ncreated_date: 2026-01-02\nlabels: [a, b]"),
    ):
        (folder / name).write_text(f"---\n{text}\n---\n\n# Title of {name[:7]}\n\n- [ ] #1 It is so\n")
    out = StringIO()
    call_command("import_todo", str(folder), project=ledger.slug, stdout=out)
    told = [
        (task.title, task.status, task.severity, sorted(task.depends_on.values_list("title", flat=True)))
        for task in ledger.tasks.order_by("rank")
    ]
    assert told == [
        ("Fill: it", "pending", "high", ["Earth", "Title of task-10"]),
        ("Earth", "pending", "medium", []),
        ("Title of task-10", "completed", "medium", []),
    ]
    assert "- [ ] #1 It is so" in get("Earth").body
    assert "Not read in the list: created_date." in out.getvalue()
    told = (
        "The folder has a file for each task (left out, without front matter: readme.md): 3 tasks in 1 list."
    )
    assert told in out.getvalue()
    (folder / "toml.md").write_text(
        '+++\ntitle = "Rest"\ndate = 2026-01-02\ndepends = ["TASK-2"]\n+++\nSo.\n'
    )
    call_command("import_todo", str(folder), project=ledger.slug)
    assert (get("Rest").body, get("Rest").depends_on.get()) == ("So.", get("Fill: it"))
    (folder / "task-3.md").write_text("---\ntitle: [\n---\n")
    with pytest.raises(CommandError, match=r"task-3.md.*cannot be read as YAML"):
        call_command("import_todo", str(folder), project=ledger.slug)
    with pytest.raises(CommandError, match="is a folder without a task"):
        call_command("import_todo", str(tmp_path), project=ledger.slug)


def test_json_that_holds_no_list_is_refused_with_its_place(ledger, actor):
    for text, line, reason in (
        ('{\n "tasks": [\n  {"title": "a"},\n ]\n}', 4, "This is no valid JSON: "),
        ("#\0 \0T\0", 0, "The file is not written in UTF-8."),
        ("- [ ] A\n<<<<<<< HEAD\n- [ ] B\n=======\n- [ ] C\n>>>>>>> b\n", 2, "Git left a conflict here"),
        ('{"name": "a package", "scripts": {"test": "x"}}', 1, "The file holds no task."),
        ('{"a": ' * 100_000, 0, "This JSON is nested too deeply"),
        ('[{"title": "a", "subtasks": ' * 600 + "[]" + "}]" * 600, 0, "This JSON is nested too deeply"),
        (f'[{{"title": "a", "id": {"9" * 5000}}}]', 0, "This JSON is nested too deeply, or holds a number"),
        ('{"title": "a"}\n{"title": }', 2, "This is no valid JSON: Expecting value"),
        ('{"name": "a", "contributors": [{"name": "b", "url": "c"}]}', 1, "The file holds no task."),
        ("tasks:\n  - title: a\n   status: b\n", 3, "This cannot be read as YAML: no YAML: "),
        ("- title: &a b\n- title: *a\n", 1, "This cannot be read as YAML: no YAML: anchors and aliases"),
        ("name: ci\non: push\njobs: {t: {steps: [{name: a, run: b}]}}\n", 1, "The file holds no task."),
        ("name,age\nLea,7\n", 1, "The file holds no task."),
    ):
        with pytest.raises(TodoError) as caught:
            import_todo(ledger, text, actor=actor)
        assert [(each.line, each.reason[: len(reason)]) for each in caught.value.problems] == [(line, reason)]
    assert not ledger.tasks.exists()


def steps(read):
    """How many lines of Python it takes."""
    count = 0

    def trace(*_):
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        read()
    finally:
        sys.settrace(before)
    return count


def test_to_tell_tasks_of_one_title_apart_takes_as_long_for_each():
    def listed(count):
        return "- [ ] Do it\n" * count

    def in_json(count):
        return "[" + ",".join(['{"title": "Do it"}'] * count) + "]"

    for read, text in ((read_leniently, listed), (read_list, in_json)):
        few, many = (steps(lambda: read(text(count))) for count in (200, 800))  # noqa: B023
        assert many < 5 * few
        titles = [task.title for section in parse(read(text(800)).text).sections for task in section.tasks]
        assert (len(set(titles)), titles[-1]) == (800, "Do it (800)")


# --- A first import ---------------------------------------------------------------------------------------


def test_it_creates_every_task_with_its_fields(ledger, actor):
    report = import_todo(ledger, FILE, actor=actor)
    assert refs(report.created) == ["ledger-1", "ledger-2", "ledger-3", "ledger-4"]
    assert (report.updated, report.unchanged, report.missing, report.notes) == ((), (), (), ())
    task = get("Refuse a wrong password")
    assert (task.source, task.severity, task.tags) == ("docs/SPEC.md#login", "high", ["login", "security"])
    assert (task.body, task.status, task.origin) == ("As the specification says.", "pending", "todo")


def test_it_ranks_tasks_from_top_to_bottom_through_all_sections(ledger_file):
    assert list(ledger_file.tasks.order_by("rank").values_list("number", "rank")) == [
        (number, number * RANK_STEP) for number in (1, 2, 3, 4)
    ]


def test_it_creates_sections_with_parents_order_and_dependencies(ledger_file):
    server, tests, client = ledger_file.sections.order_by("rank")
    assert (server.title, tests.title, client.title) == ("Server", "Tests", "Client")
    assert (server.parent, tests.parent, client.parent) == (None, server, None)
    assert (server.body, list(client.depends_on.all())) == ("The part that answers.", [server])


def test_it_links_dependencies_and_counts_what_a_task_waits_for(ledger_file):
    assert list(get("Refuse a wrong password").depends_on.all()) == [get("Keep passwords hashed")]
    waits = dict(ledger_file.tasks.values_list("title", "waits_for"))
    assert waits == {
        "Refuse a wrong password": 1,
        "Keep passwords hashed": 0,
        "Test the login": 0,
        "Ask for the password": 1,
    }


def test_each_created_task_has_one_event_with_its_author(ledger_file, lea):
    events = list(Event.objects.order_by("pk"))
    assert [(event.kind, event.task.number, event.to_status) for event in events] == [
        ("created", number, "pending") for number in (1, 2, 3, 4)
    ]
    assert {event.user for event in events} == {lea}


def test_a_task_without_severity_is_medium(ledger_file):
    assert get("Ask for the password").severity == Severity.MEDIUM


def test_tasks_above_the_first_heading_get_a_section(ledger, actor):
    import_todo(ledger, "- [ ] Do it", actor=actor)
    assert get("Do it").section.title == "Tasks"
    report = import_todo(ledger, "- [ ] Do it", actor=actor)
    assert refs(report.unchanged) == ["ledger-1"]


def test_numbers_go_on_where_the_project_stopped(ledger, actor):
    create_task(ledger, number=41)
    create_task(create_project("other"), number=99)
    assert refs(import_todo(ledger, "## A\n- [ ] Do it", actor=actor).created) == ["ledger-42"]


@for_each(
    ("marker", "status"),
    [
        (" ", "pending"),
        ("-", "pending"),
        ("o", "pending"),
        ("x", "completed"),
        ("!", "deferred"),
        ("F", "deferred"),
        (">", "deferred"),
        ("~", "cancelled"),
    ],
)
def test_a_new_task_begins_in_a_status_that_needs_no_history(ledger, actor, marker, status):
    report = import_todo(ledger, f"- [{marker}] Do it", actor=actor)
    assert get("Do it").status == status
    assert bool(report.notes) == (marker in "!Fo-~")


def test_a_task_imported_as_completed_holds_nobody_up(ledger, actor):
    import_todo(ledger, "- [x] First\n- [ ] Second\n  depends: First", actor=actor)
    assert get("First").finished_by == "import"
    assert get("Second").waits_for == 0


def test_the_report_says_what_became_of_disputed_and_failed_tasks(ledger, actor):
    report = import_todo(ledger, "- [!] Argue\n- [F] Break", actor=actor)
    assert report.notes == (
        "“Argue” is new and marked [!]: it is deferred until it is resumed.",
        "“Break” is new and marked [F]: it is deferred until it is resumed.",
    )


def test_the_text_above_the_first_section_is_kept_and_written_again(ledger, actor):
    text = "# Ledger\n\nRead me.\n\n\\# Not a title\n\n## A\n- [ ] a\n"
    assert import_todo(ledger, text, actor=actor).notes == ()
    ledger.refresh_from_db()
    assert ledger.preamble == "Read me.\n\n# Not a title"
    before = snapshot()
    assert "Read me.\n\n\\# Not a title\n" in export_todo(ledger)
    import_todo(ledger, export_todo(ledger), actor=actor)
    import_todo(ledger, "## A\n- [ ] a\n", actor=actor)
    assert snapshot() == before
    ledger.refresh_from_db()
    assert ledger.preamble == "Read me.\n\n# Not a title"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "A task is a line such as `- [ ] Say what it does`."),
        ("# Ledger\n\nRead me.\n\n## Start\n", 1, "A task is a line such as `- [ ] Say what it does`."),
        (
            "# Ledger\n\n## To do\n\n* Read it\n* Run it\n",
            5,
            "A task begins with a dash and a box: `- [ ] Read it`.",
        ),
        ("# Ledger\n\n1. [ ] Read it\n", 3, "A task begins with a dash and a box: `- [ ] Read it`."),
    ],
)
def test_a_file_without_a_task_is_refused_and_leaves_no_section(ledger, actor, text, line, reason):
    assert problems_of(ledger, text, actor) == [(line, f"The file holds no task. {reason}")]
    assert not Section.objects.exists()


# --- Known tasks ------------------------------------------------------------------------------------------


def test_the_same_file_again_changes_nothing(ledger_file, actor):
    before = snapshot()
    report = import_todo(ledger_file, FILE, actor=actor)
    assert len(report.unchanged) == 4
    assert snapshot() == before


def test_the_status_of_a_known_task_is_never_read_from_a_file(ledger_file, actor):
    report = import_todo(ledger_file, FILE.replace("- [ ] Test", "- [x] Test"), actor=actor)
    assert get("Test the login").status == "pending"
    assert report.notes == ("The file says another status for ledger-3; a known task keeps its own.",)


def test_a_known_task_takes_its_texts_from_the_file(ledger_file, actor):
    text = FILE.replace("  severity: low\n", "  severity: critical\n  tags: slow\n\n  With real passwords.\n")
    report = import_todo(ledger_file, text, actor=actor)
    task = get("Test the login")
    assert refs(report.updated) == ["ledger-3"]
    assert (task.severity, task.tags, task.body) == ("critical", ["slow"], "With real passwords.")
    event = task.events.first()
    assert (event.kind, event.note) == ("edited", "Changed in TODO.md: body, severity, tags.")


def test_an_identity_comment_lets_a_task_change_its_title_and_section(ledger_file, actor):
    text = FILE.replace("- [ ] Test the login\n  severity: low\n", "").replace(
        "after: Server\n", "after: Server\n\n- [ ] Test all logins <!-- t:ledger-3 -->\n  severity: low\n"
    )
    report = import_todo(ledger_file, text, actor=actor)
    assert (refs(report.created), refs(report.updated)) == ([], ["ledger-3"])
    task = Task.objects.get(number=3)
    assert (task.title, task.section.title, task.waits_for) == ("Test all logins", "Client", 1)


def test_without_a_comment_a_new_title_is_a_new_task(ledger_file, actor):
    report = import_todo(ledger_file, FILE.replace("Test the login", "Test all logins"), actor=actor)
    assert (refs(report.created), refs(report.missing)) == (["ledger-5"], ["ledger-3"])


def test_a_freed_title_may_be_used_for_a_new_task_in_the_same_file(ledger_file, actor):
    text = FILE.replace(
        "- [ ] Test the login\n",
        "- [ ] Test the login\n\n- [ ] Test all logins <!-- t:ledger-3 -->\n",
    )
    report = import_todo(ledger_file, text, actor=actor)
    assert (refs(report.created), refs(report.updated)) == (["ledger-5"], ["ledger-3"])


def test_tasks_that_the_file_does_not_hold_are_left_alone(ledger_file, actor):
    before = Task.objects.filter(number=4).values().get()
    report = import_todo(ledger_file, FILE.split("## Client", maxsplit=1)[0], actor=actor)
    assert refs(report.missing) == ["ledger-4"]
    assert Task.objects.filter(number=4).values().get() == before


def test_what_the_file_does_not_hold_is_ranked_behind_it(ledger_file, actor):
    import_todo(ledger_file, "## Client\n- [ ] Greet\n## Extras\n- [ ] Sing", actor=actor)
    assert list(ledger_file.tasks.order_by("rank").values_list("title", flat=True)) == [
        "Greet",
        "Ask for the password",
        "Sing",
        "Refuse a wrong password",
        "Keep passwords hashed",
        "Test the login",
    ]


def test_a_new_order_is_one_event_of_the_project_and_no_edit_of_tasks(ledger, actor):
    import_todo(ledger, "- [ ] A\n- [ ] B\n- [ ] C", actor=actor)
    report = import_todo(ledger, "- [ ] C\n- [ ] A\n- [ ] B", actor=actor)
    assert len(report.unchanged) == 3
    assert list(ledger.tasks.order_by("rank").values_list("title", flat=True)) == ["C", "A", "B"]
    event = Event.objects.first()
    assert (event.kind, event.task, event.note) == ("edited", None, "The tasks have a new order.")


def test_a_new_task_on_top_is_no_edit_of_those_below(ledger, actor):
    import_todo(ledger, "- [ ] B", actor=actor)
    import_todo(ledger, "- [ ] A\n- [ ] B", actor=actor)
    assert list(ledger.tasks.order_by("rank").values_list("title", flat=True)) == ["A", "B"]
    assert not Event.objects.filter(kind="edited").exists()


def test_dependencies_follow_the_file(ledger_file, actor):
    text = FILE.replace("depends: Keep passwords hashed", "depends: Test the login; ledger-2")
    report = import_todo(ledger_file, text, actor=actor)
    assert refs(report.updated) == ["ledger-1"]
    assert Task.objects.get(number=1).waits_for == 2
    import_todo(ledger_file, FILE.replace("  depends: Keep passwords hashed\n", ""), actor=actor)
    assert Task.objects.get(number=1).waits_for == 0


def test_sections_follow_the_file(ledger_file, actor):
    text = FILE.replace("The part that answers.\n\n", "").replace("after: Server", "after: Server / Tests")
    import_todo(ledger_file, text, actor=actor)
    server, tests, client = ledger_file.sections.order_by("rank")
    assert (server.body, list(client.depends_on.all())) == ("", [tests])
    assert Event.objects.first().note == "Section “Server”: body. Section “Client”: after."


def test_a_task_that_waits_no_longer_for_a_section_can_start(ledger_file, actor):
    import_todo(ledger_file, FILE.replace("after: Server\n", ""), actor=actor)
    assert get("Ask for the password").waits_for == 0


def test_an_edit_does_not_disturb_a_turn(ledger_file, actor):
    Task.objects.filter(number=3).update(status=Status.IN_PROGRESS, round=1, version=7)
    import_todo(ledger_file, FILE.replace("severity: low", "severity: high"), actor=actor)
    task = Task.objects.get(number=3)
    assert (task.severity, task.status, task.version) == ("high", "in_progress", 7)


# --- Problems ---------------------------------------------------------------------------------------------


def test_a_first_line_of_any_length_is_no_row_of_names():
    for line in ("x" * 200_000, f"title,{'x' * 200_000}"):
        assert read_list(f"{line}\n- [ ] One\n") is None


def test_a_malformed_file_imports_nothing(ledger, actor):
    assert problems_of(ledger, "- [ ] Do it\n- [?] What", actor)[0][0] == 2
    assert not ledger.sections.exists()


def test_unknown_names_are_all_reported(ledger_file, actor):
    text = (
        "## A\nafter: Nowhere\n\n- [ ] Do it\n  depends: Nothing; ledger-77\n- [ ] More <!-- t:ledger-9 -->"
    )
    assert problems_of(ledger_file, text, actor) == [
        (1, "There is no section “Nowhere” to come after."),
        (4, "There is no task “Nothing” to depend on."),
        (4, "There is no task “ledger-77” to depend on."),
        (6, "ledger-9 is not a task of ledger. Without the comment it is a new task."),
    ]


def test_a_task_of_another_project_is_unknown(ledger, actor):
    create_task(create_project("other"), number=1, title="Elsewhere")
    text = "- [ ] Do it\n  depends: other-1; Elsewhere"
    assert len(problems_of(ledger, text, actor)) == 2


def test_a_title_that_several_tasks_have_needs_a_ref(ledger, actor):
    text = "## A\n- [ ] Do it\n## B\n- [ ] Do it\n## C\n- [ ] Then\n  depends: Do it"
    assert problems_of(ledger, text, actor) == [
        (6, "Several tasks are called “Do it”; depends needs a ref."),
    ]


def test_a_title_in_the_same_section_goes_first(ledger, actor):
    text = "## A\n- [ ] Do it\n## B\n- [ ] Do it\n- [ ] Then\n  depends: Do it"
    import_todo(ledger, text, actor=actor)
    assert get("Then").depends_on.get().section.title == "B"


def test_several_lists_of_one_form_keep_their_sections_and_tasks_apart(ledger, actor):
    form = """# Tasks: {name}

## Phase 1: Setup
- [ ] T001 Lay out the folders
- [ ] T002 [P] Choose {name}
- [ ] T003 [P] Write about {name}
## Phase 2: Core
- [ ] T004 Write {name} (depends on T001)
"""
    lists = {name: form.format(name=name) for name in ("Exports", "Imports")}
    for text in lists.values():
        report = import_todo(ledger, text, actor=actor)
        assert (len(report.created), report.updated) == (4, ())
    assert {(row.title, str(row.parent)) for row in Section.objects.filter(parent__isnull=False)} == {
        (phase, name) for phase in ("Phase 1: Setup", "Phase 2: Core") for name in lists
    }
    for name in lists:
        assert get(f"T004 Write {name} (depends on T001)").depends_on.get().section.parent.title == name
        core = Section.objects.get(title="Phase 2: Core", parent__title=name)
        assert core.depends_on.get().parent.title == name
    for text in lists.values():
        report = import_todo(ledger, text, actor=actor)
        assert (report.created, report.updated, len(report.unchanged)) == ((), (), 4)
    renamed = lists["Exports"].replace("Phase 1: Setup", "Phase 1: Begin")
    report = import_todo(ledger, renamed, actor=actor)
    assert (report.created, len(report.updated)) == ((), 3), "whoever renames a section makes no task anew"


def test_a_section_that_is_named_twice_needs_its_path(ledger, actor):
    text = "## A\n### Tests\n## B\n### Tests\n## C\nafter: Tests\n- [ ] Do it"
    assert problems_of(ledger, text, actor) == [
        (5, "Several sections are called “Tests”: A / Tests; B / Tests."),
    ]
    import_todo(ledger, text.replace("after: Tests", "after: B / Tests"), actor=actor)
    assert Section.objects.get(title="C").depends_on.get().parent.title == "B"


def test_rows_with_one_title_in_a_section_need_a_comment(ledger, actor):
    section = create_section(ledger, "A")
    create_task(section=section, number=1, title="Do it")
    create_task(section=section, number=2, title="Do it")
    assert problems_of(ledger, "## A\n- [ ] Do it", actor) == [
        (2, "ledger-1, ledger-2 have this title; an identity comment has to say which it is."),
    ]


def test_a_cycle_names_its_tasks(ledger, actor):
    text = "- [ ] A\n  depends: B\n- [ ] B\n  depends: C\n- [ ] C\n  depends: A\n- [ ] D\n  depends: A"
    ((line, reason),) = problems_of(ledger, text, actor)
    assert line == 1
    assert reason.startswith("These would wait for each other for ever: ")
    assert all(f"“{title}”" in reason for title in "ABC")
    assert "“D”" not in reason


def test_a_task_cannot_wait_for_itself(ledger, actor):
    assert problems_of(ledger, "- [ ] A\n  depends: A", actor) == [(1, "This would wait for itself: “A”.")]


@pytest.mark.parametrize(
    "text",
    [
        "## A\nafter: B\n## B\nafter: A",
        "## A\nafter: A / B\n### B",
        "## A\n### B\nafter: A",
        "## A\nafter: B\n- [ ] a\n## B\n- [ ] b\n  depends: a",
    ],
)
def test_sections_that_would_wait_for_ever_are_a_cycle(ledger, actor, text):
    ((_, reason),) = problems_of(ledger, text, actor)
    assert reason.startswith("These would wait for each other for ever: ")
    assert "section “A”" in reason


def test_a_finished_task_is_no_part_of_a_cycle(ledger, actor):
    import_todo(ledger, "- [x] A\n  depends: B\n- [ ] B\n  depends: A", actor=actor)
    assert Dependency.objects.count() == 2


def test_a_cycle_through_tasks_outside_the_file_is_found(ledger_file, actor):
    text = "## Server\n- [ ] Keep passwords hashed\n  depends: ledger-1"
    assert len(problems_of(ledger_file, text, actor)) == 1


# --- Export -----------------------------------------------------------------------------------------------


def test_an_export_is_the_file_with_refs_and_statuses(ledger_file):
    Task.objects.filter(number=3).update(status=Status.REVIEW, round=1)
    text = export_todo(ledger_file)
    assert text.startswith(
        "# Ledger\n\n## Server\n\nThe part that answers.\n\n- [ ] Refuse a wrong password <!-- t:"
    )
    assert "- [o] Test the login <!-- t:ledger-3 -->\n  severity: low\n" in text
    assert "  depends: ledger-2\n" in text
    assert "## Client\nafter: Server\n" in text


@for_each("status", Status)
def test_an_export_shows_every_status(ledger, status):
    create_task(ledger, title="Do it", status=status, finished_by="hand")
    assert f"- [{MEANINGS[status].marker}] Do it <!-- " in export_todo(ledger)


def test_importing_an_export_changes_nothing(ledger_file, actor):
    before = snapshot()
    report = import_todo(ledger_file, export_todo(ledger_file), actor=actor)
    assert (len(report.unchanged), report.notes) == (4, ())
    assert snapshot() == before


def test_importing_an_export_of_awkward_rows_changes_nothing(ledger, actor):
    first = create_section(ledger, "Read; write / \\ ", body="\r\n## Not a section\n```\n- [ ] x\n")
    inner = create_section(ledger, "Inner", parent=first, body="after: nothing")
    last = create_section(ledger, "Inner", body="- [ ] not a task")
    last.depends_on.add(first, inner)
    one = create_task(section=last, title=" Do\nit <!-- t:x ", body="\n\n  severity: high\r\n\x1b[31m\n\n")
    two = create_task(section=inner, title=" Do\nit <!-- t:x ", tags=["a,b", " ", "c\\"], source=" x ")
    three = create_task(section=inner, title=" Do\nit <!-- t:x ", status=Status.FAILED, rank=-5)
    Dependency.objects.create(task=one, on=two)
    Dependency.objects.create(task=two, on=three)
    recount([one, two, three])
    before = snapshot()
    report = import_todo(ledger, export_todo(ledger), actor=actor)
    assert refs(report.unchanged) == [three.ref, two.ref, one.ref]
    assert snapshot() == before


def test_an_export_of_a_project_without_tasks_is_its_title(ledger):
    assert export_todo(ledger) == "# Ledger\n"


def test_an_export_does_not_query_for_each_task(ledger_file, django_assert_num_queries):
    with django_assert_num_queries(4):
        export_todo(ledger_file)


# --- Commands ---------------------------------------------------------------------------------------------


def run(*args: str) -> str:
    out = StringIO()
    call_command(*args, stdout=out)
    return out.getvalue()


def test_the_commands_import_and_export(ledger, tmp_path):
    source, copy = tmp_path / "TODO.md", tmp_path / "copy.md"
    source.write_text(FILE)
    out = run("import_todo", str(source), "--project", "ledger")
    assert out == "4 created, 0 updated, 0 unchanged, 0 not in the file.\n"
    assert run("export_todo", "--project", "ledger", str(copy)) == ""
    assert copy.read_text() == run("export_todo", "--project", "ledger") == export_todo(ledger)
    assert Event.objects.first().label == "import_todo"


def test_the_import_command_lists_what_the_file_does_not_hold(ledger_file, tmp_path):
    file = tmp_path / "TODO.md"
    file.write_text("- [!] Argue\n")
    out = run("import_todo", str(file), "--project", "ledger")
    assert "“Argue” is new and marked [!]" in out
    assert "Not in the file, left alone: ledger-4 Ask for the password\n" in out


def test_the_import_command_lists_problems_with_file_and_line(ledger, tmp_path):
    file = tmp_path / "TODO.md"
    file.write_text("- [ ]\n\n- [ ] Do it\n  severity: urgent\n")
    with pytest.raises(CommandError) as caught:
        run("import_todo", str(file), "--project", "ledger", "--strict")
    assert str(caught.value).splitlines() == [
        f"{file}:1: A task needs a title.",
        f"{file}:4: urgent is not a severity; known are critical, high, medium, low.",
        "Nothing was imported.",
    ]


@pytest.mark.parametrize(
    ("content", "reason"), [(b"\xff", "is not UTF-8"), (None, "cannot be read: No such file or directory.")]
)
def test_the_import_command_says_why_a_file_cannot_be_read(ledger, tmp_path, content, reason):
    file = tmp_path / "TODO.md"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CommandError, match=reason):
        run("import_todo", str(file), "--project", "ledger")


@pytest.mark.parametrize("arguments", [("import_todo", "TODO.md"), ("export_todo",)])
def test_the_commands_name_a_project_that_is_unknown(db, arguments):
    with pytest.raises(CommandError, match=r"There is no project nowhere\."):
        run(*arguments, "--project", "nowhere")


def test_the_export_command_says_why_it_cannot_write(ledger, tmp_path):
    with pytest.raises(CommandError, match="cannot be written: Is a directory"):
        run("export_todo", "--project", "ledger", str(tmp_path))


def test_the_export_command_says_why_a_project_cannot_be_exported(ledger):
    section = None
    for depth in range(6):
        section = create_section(ledger, f"Depth {depth}", parent=section)
    with pytest.raises(CommandError, match="A heading begins with at most ######"):
        run("export_todo", "--project", "ledger")
