"""A TODO.md as people write it: what is read, what is said of each line, what page and command show."""

import re
from contextlib import suppress
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.events import Actor
from tasks.models import Dependency, Event, Project, Section, Task
from tasks.states import MEANINGS
from tasks.todo.exporting import export_todo
from tasks.todo.following import TICK_OF
from tasks.todo.format import TodoError, TodoFile, TodoSection, parse, render
from tasks.todo.importing import import_todo
from tasks.todo.lenient import read_leniently
from tasks.todo.lists import count_boxes, with_boxes
from tests.tasks.test_todo import todo_files

HUMAN = """\
Shopping app
============

What it is for.

Server
------

- [ ] Log people in
  - [ ] Check the password
    with bcrypt
  - [x] Read the form; then forget it
- [o] Log people out
- see RFC 6265 for cookies

1. [ ] Count the failures
2) [X] Write the schema
  owner: Tom
  severity: high

### Deep

- [-] Half done
- [?] Unclear
- [ ]

# Client

#### Pages

- [ ] Draw the page

```sh
## no heading
- [ ] no task
```

## Pages

- [ ] Draw the page
- [ ] Draw the page
"""
NOTES = [
    (1, "read as a heading"),
    (6, "read as a heading"),
    (10, "A box within “Log people in” is a task of its own"),
    (12, "A box within “Log people in” is a task of its own"),
    (14, "Text below “Log people out” is read as its description"),
    (16, "numbered box"),
    (17, "numbered box"),
    (18, "no attribute that is known here"),
    (24, "[?] is no marker of ours"),
    (25, "without a title is passed over"),
    (27, "second top heading"),
    (29, "skips a level"),
    (33, "Text below “Draw the page” is read as its description"),
    (38, "called “Pages (2)” here"),
    (41, "called “Draw the page (2)” here"),
]


def rows() -> list[Any]:
    return [
        list(model.objects.order_by("pk").values()) for model in (Project, Section, Task, Dependency, Event)
    ]


def tree(project: Project) -> dict[str, list[tuple[str, str]]]:
    sections = Section.objects.filter(project=project).order_by("rank")
    return {
        section.title: [(task.title, task.status) for task in section.tasks.order_by("rank")]
        for section in sections
    }


@pytest.mark.django_db
def test_a_persons_file_becomes_tasks_and_every_liberty_is_told_with_its_line(
    client: Client, ledger: Project, lea: User
) -> None:
    read = read_leniently(HUMAN)
    told = [(note.line, note.reason) for note in read.notes]
    assert [line for line, _ in told] == [line for line, _ in NOTES]
    assert [words for (_, reason), (_, words) in zip(told, NOTES, strict=True) if words not in reason] == []

    client.force_login(lea)
    path = f"/projects/{ledger.slug}/tasks/import/"
    look = client.post(path, {"text": HUMAN, "preview": ""}).content.decode()
    assert "11 new" in look
    assert "Line 24: [?] is no marker of ours" in look
    assert not Task.objects.exists()
    assert client.post(path, {"text": HUMAN, "import": ""}).status_code == 409, "nobody has looked at it"
    shown = re.search(r'name="shown" value="(\w{64})"', look)[1]
    assert client.post(path, {"text": HUMAN, "import": "", "shown": shown}).status_code == 302

    assert tree(ledger) == {
        "Server": [
            ("Log people in", "pending"), ("Check the password", "pending"),
            ("Read the form; then forget it", "completed"), ("Log people out", "pending"),
            ("Count the failures", "pending"), ("Write the schema", "completed"),
        ],
        "Deep": [("Half done", "pending"), ("Unclear", "pending")],
        "Client": [], "Pages": [("Draw the page", "pending")],
        "Pages (2)": [("Draw the page", "pending"), ("Draw the page (2)", "pending")],
    }  # fmt: skip
    tasks = {task.title: task for task in Task.objects.all()}
    assert tasks["Check the password"].body == "with bcrypt"
    assert tasks["Log people out"].body == "- see RFC 6265 for cookies"
    assert (tasks["Write the schema"].severity, tasks["Write the schema"].body) == ("high", "owner: Tom")
    assert {link.on.title for link in Dependency.objects.filter(task=tasks["Log people in"])} == {
        "Check the password", "Read the form; then forget it",
    }  # fmt: skip
    first = Task.objects.filter(title="Draw the page").order_by("number")[0]
    assert first.body == "```sh\n## no heading\n- [ ] no task\n```"
    ledger.refresh_from_db()
    assert ledger.preamble == "What it is for."

    before = rows()
    report = import_todo(ledger, HUMAN, actor=Actor.person(lea))
    assert (len(report.created), len(report.updated)) == (0, 0)
    assert rows() == before
    import_todo(ledger, export_todo(ledger), actor=Actor.person(lea))
    assert rows() == before


@pytest.mark.django_db
def test_the_command_is_lenient_unless_it_is_told_to_be_strict(ledger: Project, tmp_path: Any) -> None:
    file = tmp_path / "TODO.md"
    file.write_text("Server\n------\n\n1. [ ] Answer\n  severity: urgent\n  depends: Nothing known\n")
    with pytest.raises(CommandError, match=r"TODO.md:4: There is no task “Nothing known”"):
        call_command("import_todo", str(file), project="ledger")
    file.write_text("Server\n------\n\n1. [ ] Answer\n")
    with pytest.raises(CommandError, match="holds no task"):
        call_command("import_todo", str(file), project="ledger", strict=True)
    assert not Task.objects.exists()
    said = StringIO()
    call_command("import_todo", str(file), project="ledger", stdout=said)
    assert f"{file}: Line 4: A numbered box is read as a task." in said.getvalue()
    assert tree(ledger) == {"Server": [("Answer", "pending")]}


# How people write lists without boxes; what becomes of them.
PLAIN = {
    "bullets, broken lines, and what is done": (
        """\
# Silk

Of the proxy.

## Voice

- Exercise the expiry with
  real clients; adjust it.
* Decide on the queue's size
  severity: high

  - not a task of its own
```
- code
```
## Milestones (done)

- Added backups
### Of the server
- Kept the status

## Complete the rest

1. (Done) Write `--help`
2) ~~Show it~~
+ ✅ Draw it
3. Demos
""",
        {
            "Voice": [
                ("Exercise the expiry with real clients; adjust it.", " "),
                ("Decide on the queue's size", " "),
            ],
            "Milestones (done)": [("Added backups", "x")],
            "Of the server": [("Kept the status", "x")],
            "Complete the rest": [
                ("Write `--help`", "x"),
                ("Show it", "x"),
                ("Draw it", "x"),
                ("Demos", " "),
            ],
        },
    ),
    "numbered headings": (
        """\
# Plan

## 1. Pending

### 1.1 Remove the docs
- from git
#### Why
They are generated.

### Task 1.2: Merge the skills ✅

```
# no heading
```

## 2. Done

### 2.1) Split it
- at the seam
""",
        {
            "1. Pending": [("Remove the docs", " "), ("Merge the skills ✅", "x")],
            "2. Done": [("Split it", "x")],
        },
    ),
    "headings with criteria": (
        """\
## Phase 1

### Task 1.1: Say what it does
**Priority**: P0
**Dependencies**: None
#### Acceptance criteria
- [x] It is said
- [X] It is read

### Task 1.2: Say how
**Dependencies**: Task 1.1
- [ ] It is said
  1. [x] well

## Next

- [ ] Look again
""",
        {
            "Phase 1": [("Task 1.1: Say what it does", "x"), ("Task 1.2: Say how", " ")],
            "Next": [("Look again", " ")],
        },
    ),
    "a table": (
        """\
# Plan

| Step | What |
|---|---|
| 1 | no task |

## Work

| ID | Task | Priority | Status | Where |
|:---|:----:|----------|--------|-------|
| T-1 | **Say what** it does | P0 | ✅ Complete | `docs/` |
| T-2 | Say how | 🔴 High | Not started | - |
| T-3 | [Ask](a.md) a\\|b |  | in progress |  |

- Keep it small.
""",
        {
            "Work": [
                ("T-1 **Say what** it does (P0) — `docs/`", "x"),
                ("T-2 Say how (High)", " "),
                ("T-3 [Ask](a.md) a|b", " "),
            ],
        },
    ),
    "boxes without dashes": (
        "## A\n\n[x] Say it\n[] Say how\n[ ] Say *why*\n☐ Say when\n✅ Say who\n[1] A note\n[x]: https://example.org\n",
        {"A": [("Say it", "x"), ("Say how", " "), ("Say *why*", " "), ("Say when", " "), ("Say who", "x")]},
    ),
    "nested boxes": ("## A\n\n- To do:\n  - [ ] Say it\n", {}),
}


def test_a_file_without_boxes_gets_them_where_they_seem_to_be_meant() -> None:
    for name, (text, wanted) in PLAIN.items():
        boxed = with_boxes(text)
        read = parse(read_leniently(boxed).text)
        if not count_boxes(text):
            assert boxed == text, name
            continue
        found = {
            part.title: [(task.title, "x" if task.status == "completed" else " ") for task in part.tasks]
            for part in read.sections
            if part.tasks
        }
        assert found == wanted, name
        kept = sum(line.startswith("- [") for line in text.split("\n") if "Look again" in line)
        assert count_boxes(text) == sum(map(len, wanted.values())) - kept, name
        assert boxed.count("\n") == text.count("\n"), "every line keeps its number"
        assert (with_boxes(boxed), count_boxes(boxed)) == (boxed, 0), name
    assert count_boxes("Just a sentence.\n\n    - code\n") == 0


def test_the_command_takes_a_file_without_boxes_only_if_it_is_told_to(ledger: Project, tmp_path: Any) -> None:
    file = tmp_path / "TODO.md"
    file.write_text("## Later\n\n- Say what it does\n- Say how\n")
    with pytest.raises(CommandError, match=r"holds no task(.|\n)*With --guess, 2 tasks would be read"):
        call_command("import_todo", str(file), project="ledger")
    assert not Task.objects.exists()
    call_command("import_todo", str(file), project="ledger", guess=True, stdout=StringIO())
    assert tree(ledger) == {"Later": [("Say what it does", "pending"), ("Say how", "pending")]}


def test_a_broken_title_goes_on_and_a_rule_ends_a_task() -> None:
    long = "- [ ] Exercise the expiry of bridges, the restart of the listener and"
    for below, title, body in (
        ("  the peers' addresses.", "the listener and the peers' addresses.", ""),
        ("  The peers' addresses.", "the listener and", "The peers' addresses."),
        ("  severity: high", "the listener and", ""),
        ("\n  the peers' addresses.", "the listener and", "the peers' addresses."),
        ("---\nLast changed today.", "the listener and", ""),
        ("* * *", "the listener and", ""),
    ):
        (section,) = parse(read_leniently(f"## A\n\n{long}\n{below}\n").text).sections
        (task,) = section.tasks
        assert task.title.endswith(title), below
        assert task.body == body, below
    assert parse(read_leniently("## A\n\n- [ ] Write it\n  and read it\n").text).sections[0].tasks[0].body
    assert "\n---\n" in read_leniently("## A\n\nabove\n\n---\n\nbelow\n").text


# The line that is interpreted, the word for it in the note, and what the task then has.
URGENT = [
    ("- [ ] [P0] Fix it", "", "critical"), ("- [ ] `[P3]` **Tidy it**", "", "low"),
    ("- [ ] P1: Fix it", "", "high"), ("- [ ] **P2** Fix it", "", "medium"),
    ("- [ ] Fix it \N{UP-POINTING RED TRIANGLE} 📅 2025-01-20", "", "critical"),
    ("- [ ] Fix it \N{BLACK UP-POINTING DOUBLE TRIANGLE}", "", "high"),
    ("- [ ] Fix it (High Priority)", "", "high"), ("- [ ] Fix it #p1", "", "high"),
    ("- [ ] Fix it\n  - **Priority:** P0 (Critical)", "", "critical"),
    ("- [ ] Fix it\n  Priority: Low", "", "low"), ("- [ ] Fix it\n  _priority: 🔴 High_", "", "high"),
    ("- [ ] Fix it\n\n  More.\n  - Severity: blocker", "", "critical"),
    ("- [ ] Fix it", "## High priority — viewer", "high"), ("- [ ] Fix it", "## P1 (Important)", "high"),
    ("- [ ] Fix it", "## 🔴 Critical", "critical"), ("- [ ] Fix it", "## Priority 2: Logic", "medium"),
    ("- [ ] Fix it", "## Phase\n\n**Priority**: High", "high"),
    ("- [ ] Fix it", "## High priority\n\n### Server", "high"),
    ("- [ ] Fix it", "## Phase 3: Story 1 - Ledgers (Priority: P1) MVP", "high"),
    ("- [ ] Fix it (priority: low)", "## P0", "low"),
    ("- [ ] [P2] Fix it", "## P0", "medium"), ("- [ ] [P2] Fix it\n  severity: low", "## P0", "low"),
    ("- [ ] [P] Fix it", "", None), ("- [ ] Fix the low-level code", "## Low-level API", None),
    ("- [ ] Speak of P0", "## Critical path", None), ("- [ ] Fix it\n  Priority: none", "", None),
    ("- [ ] Fix it\n\n  ```\n  Priority: P0\n  ```", "", None),
    ("- [ ] [P0] Fix it <!-- t:ledger-1 -->\n  tags: a\n\n  Priority: P0", "## P0", None),
]  # fmt: skip


def test_words_for_how_urgent_a_task_is_become_its_severity() -> None:
    for task, above, severity in URGENT:
        read = read_leniently(f"{above or '## Work'}\n\n{task}\n")
        (item,) = (item for section in parse(read.text).sections for item in section.tasks)
        assert item.severity == severity, (task, above)
        own = "severity: low" in task
        assert any("severity" in note.reason for note in read.notes) == bool(severity and not own), task
        assert "Fix it" in item.title or severity != "critical", "the title stays as it is written"


WAITS = [
    ("- [ ] **Task 1.1:** A\n- [ ] **Task 1.2:** B\n  - **Dependencies:** Task 1.1", {"B": ["A"]}),
    ("- [ ] T001 [P] A\n- [ ] T002 B\n- [ ] T003 C\n  Depends on: T001, T002", {"C": ["A", "B"]}),
    ("- [ ] 1.1 A\n- [ ] 1.2 B\n- [ ] 2.1 C\n  - Depends: 1.1 and 1.2 (both).", {"C": ["A", "B"]}),
    ("- [ ] A\n- [ ] B\n  **Blocked by**: A", {"B": ["A"]}),
    ("- [ ] A\n\n## More\n\n- [ ] B\n  _Depends on: `a`_", {"B": ["A"]}),
    ("- [ ] #1 A\n- [ ] #2 B\n  depends: #1", {"B": ["A"]}),
    ("- [ ] A\n- [ ] B\n  Dependencies: None", {}),
    ("- [ ] Task 1: A\n  - [ ] Task 1.1: B\n    Depends on: Task 1", {"A": ["B"]}),
    ("- [ ] Task 1: A\n  Depends on: Task 2\n- [ ] Task 2: B\n  Depends on: Task 1", {"A": ["B"]}),
    ("- [ ] 3 A\n- [ ] B\n  Depends on: 3 servers", {}),
    ("- [ ] T1 A\n- [ ] B <!-- t:ledger-1 -->\n\n  Depends on: T1", {}),
    ("- [ ] T001 A\n- [ ] T002 B\n- [ ] T003 (depends on T001, T002) C", {"C": ["A", "B"]}),
    ("- [ ] T1 A\n- [ ] T2 B\n- [ ] T3 C\n- [ ] T4 (depends on T1–T3) D", {"D": ["A", "B", "C"]}),
    ("- [ ] T08 A\n- [ ] T09 B\n- [ ] T10 C\n- [ ] D\n  Depends on: T08 to T10", {"D": ["A", "B", "C"]}),
    ("- [ ] Task 1: A\n- [ ] Task 2: B\n- [ ] C\n  Depends on: Tasks 1-2", {"C": ["A", "B"]}),
    ("- [ ] T1 A\n- [ ] B\n  Its second half, which needs T1 and more.", {"B": ["A"]}),
    ("- [ ] T1 A\n- [ ] T2 (after T1 + T7) B", {"B": ["A"]}),
    ("- [ ] T1 A\n- [ ] B\n  It requires Python 3.11 after 10 minutes, and T1x.", {}),
    ("- [ ] T1 A\n- [ ] T2 (depends on T1) B\n  depends: T1", {"B": ["A"]}),
    ("- [ ] T1 A\n- [ ] B\n  Depends on: T1-T900000", {}),
]


def test_a_task_waits_for_those_whose_number_or_title_it_names() -> None:
    for text, wanted in WAITS:
        read = read_leniently(f"## Work\n\n{text}\n")
        tasks = [task for section in parse(read.text).sections for task in section.tasks]
        found = {task.title[-1]: [name[-1] for name in task.depends] for task in tasks if task.depends}
        assert found == wanted, text
        parts = "  - [ ]" in text
        assert any("depends" in note.reason for note in read.notes) == bool(wanted and not parts), text
    chain = "".join(f"- [ ] Task {n}: A\n  Depends on: Task {n + 1}\n" for n in range(2000))
    (section,) = parse(read_leniently(chain).text).sections
    assert sum(bool(task.depends) for task in section.tasks) == 1999, "however long it is"
    (note,) = read_leniently("- [ ] A\n- [ ] B\n  Depends on: Phase 7\n").notes
    assert (note.line, "“Phase 7” names no task" in note.reason) == (3, True)


PHASES = """\
---

description: "Tasks of a feature"
---
# Tasks: Ledgers

- **[P]**: Can run in parallel (different files, no dependencies)

## Phase 1: Setup

- [x] T001 Lay out the folders
- [ ] T002 [P] Write the schema
- [ ] T003 [P] Write the settings
- [ ] T004 Start the server

## Phase 2: Ledgers (Priority: P1)

### Tests

- [ ] T005 [P] [US1] Test the rows
- [ ] T006 [P] [US1] Test the sums

### Code

- [ ] T007 [P] [US1] Add rows
- [ ] T008 [US1] Add sums (depends on T005)
- [ ] T009 [US1] Show both in src/[P]age.py

################

## Notes

- [P] tasks = different files, no dependencies
- [ ] Tell the team
"""


def test_the_numbered_tasks_of_a_plan_follow_each_other_and_a_star_marks_what_is_optional() -> None:
    plan = """\
# Implementation Plan: Ledgers

- [ ] 1. Set the project up
- [ ] 2. Keep rows
  - [ ] 2.1 Write rows
    - Close the file
    - _Requirements: 1.1, 2.3_
  - [ ]* 2.2 Test the rows
  - [ ] 2.3 Read rows
- [ ] 3. Checkpoint
- [ ] Tell the team
"""
    read = read_leniently(plan)
    (section,) = parse(read.text).sections
    waits = {task.title[:3].strip(): [name[:3].strip() for name in task.depends] for task in section.tasks}
    assert waits == {
        "1.": [], "2.": ["2.1", "2.2", "2.3", "1."], "2.1": ["1."], "2.2": ["1.", "2.1"],
        "2.3": ["1.", "2.2"], "3.": ["2."], "Tel": [],
    }  # fmt: skip
    assert [task.title for task in section.tasks if task.severity == "low"] == ["2.2 Test the rows"]
    assert {(note.line, note.reason[:27]) for note in read.notes} >= {
        (3, "The numbered tasks of this "), (8, "“*” behind the box marks wh"),
    }  # fmt: skip
    (section,) = parse(read_leniently(plan.replace("Implementation Plan", "Ideas")).text).sections
    assert [task.title for task in section.tasks if task.depends] == ["2. Keep rows"], (
        "numbers alone are no order"
    )
    for title, mark in (("# Implementation Plan", ""), ("# Tasks", "[P] ")):
        deep = "\n".join(f"{' ' * depth}- [ ] {depth}. {mark}a" for depth in range(1200))
        (section,) = parse(read_leniently(f"{title}\n\n- [ ] 0. b\n{deep}\n").text).sections
        assert len(section.tasks) == 1201, "however deep it is"


def test_phases_follow_each_other_and_what_lacks_the_parallel_mark_waits_for_what_is_above(
    ledger: Project, lea: User
) -> None:
    read = read_leniently(PHASES)
    todo = parse(read.text)
    assert {section.title: section.after for section in todo.sections if section.after} == {
        "Phase 2: Ledgers (Priority: P1)": ("Phase 1: Setup",)
    }
    tasks = [task for each in todo.sections for task in each.tasks]
    waits = {task.title[:4]: [name[:4] for name in task.depends] for task in tasks}
    assert waits == {
        "T001": [], "T002": ["T001"], "T003": ["T001"], "T004": ["T002", "T003"],
        "T005": [], "T006": [], "T007": [], "T008": ["T005", "T006", "T007"], "T009": ["T008"], "Tell": [],
    }  # fmt: skip
    told = {note.line: note.reason for note in read.notes if note.line in {12, 29, 33}}
    assert {line: reason[:40] for line, reason in told.items()} == {
        12: "Tasks without [P] are read to wait for t",
        29: "A heading without a title is passed over", 33: "[P] stands in titles, too: this line is ",
    }  # fmt: skip
    assert not {note.line for note in read.notes} & {1, 3, 4}, "front matter is no heading"
    boxes = "- [X] Set up\n- [/] Half way\n- [?] Unclear\n- [S] Later\n\nLegend: [S] = deferred\n"
    titles = "- [ ] Draw the [X] that closes\n- [ ] Read [/] and [?] there\n- [ ] Keep the [S] sign\n"
    both = read_leniently(f"## Marks\n\n{boxes}\n## Titles\n\n{titles}").text
    said = [task.status for task in parse(both).sections[0].tasks]
    assert said == ["completed", "in_progress", "pending", "deferred"], "titles that show a marker take none"
    stories = "## Phase 1: Base\n## Phase 2: User Story 1; a\n## Phase 3: User Story 2\n## Phase 4: Polish\n"
    assert [section.after for section in parse(read_leniently(f"{stories}\n- [ ] A").text).sections] == [
        (), ("Phase 1: Base",), ("Phase 1: Base",), ("Phase 2: User Story 1; a", "Phase 3: User Story 2"),
    ]  # fmt: skip
    for said in ("after: Notes\n", ""):  # whoever states an order has stated it
        own = PHASES.replace("## Phase 1: Setup\n", f"## Phase 1: Setup\n{said}")
        own = own if said else own.replace("T002 [P] Write the schema", "T002 Write (depends on T005)")
        todo = parse(read_leniently(own).text)
        assert [section.after for section in todo.sections if section.after] == ([("Notes",)] if said else [])
    plain = PHASES.replace("[P]", "[B]")
    tasks = [task for each in parse(read_leniently(plain).text).sections for task in each.tasks]
    assert [task.title[:4] for task in tasks if task.depends] == ["T008"], "a mark that the file does not use"
    once = parse(read_leniently("## Phase 1\n\n- [ ] [P] A\n- [ ] B\n").text)
    assert once.sections[0].tasks[1].depends == (), "one may be there by chance"
    each = "### Phase 1\n\n- [ ] {0}1\n\n### Phase 2\n\n- [ ] {0}2\n\n"
    two = "## A\n\n" + each.format("A") + "## B\n\n" + each.format("B")
    import_todo(ledger, two, actor=Actor.person(lea))
    assert {(s.parent.title, s.title, *s.depends_on.values_list("parent__title", "title"))
        for s in Section.objects.filter(parent__isnull=False).select_related("parent")
    } == {
        ("A", "Phase 1"), ("A", "Phase 2", ("A", "Phase 1")),
        ("B", "Phase 1"), ("B", "Phase 2", ("B", "Phase 1")),
    }  # fmt: skip
    import_todo(ledger, PHASES, actor=Actor.person(lea))
    assert Task.objects.get(title__startswith="T008").waits_for == 4, "with its phase"
    assert Task.objects.get(title__startswith="T004").waits_for == 2


COLUMNS = [
    ("## To do\n\n- [ ] A\n\n## Done ✅\n\n- [ ] B\n  - [ ] C", " xx"),
    ("## Completed tasks (3)\n\n### Server\n\n- [ ] A\n\n## Next\n\n- [ ] B", "x "),
    ("## Done (v1.1)\n\n- [x] A\n- [ ] B", "x "), ("## Definition of done\n\n- [ ] A", " "),
    ("## Done when\n\n- [ ] A", " "), ("## Done\n\n- [ ] A <!-- t:ledger-1 -->", " "),
    ("## Icebox\n\n- [ ] A\n- [x] B", ">x"), ("## Won't do\n\n- [ ] A", "~"),
    ("## [x] Task 1: A\n- **Priority**: P0\n---\n## [ ] Task 2: B\n- Depends on: Task 1", "x "),
    ("Legend: `[x]` done · `[~]` partial\n\n- [~] A\n- [~] B <!-- t:ledger-1 -->", "-~"),
    ("## Done\n\n- [/] A\n- [✓] B", "-x"),
]  # fmt: skip


def test_a_task_stands_where_its_column_or_the_box_in_its_heading_says() -> None:
    for text, wanted in COLUMNS:
        read = read_leniently(f"# Board\n\n{text}\n")
        tasks = [task for section in parse(read.text).sections for task in section.tasks]
        assert "".join(MEANINGS[task.status].marker for task in tasks) == wanted, text
    for text, followed in (("## Done\n\n- [ ] A\n", " "), ("## Icebox\n\n- [ ] A\n", ">")):
        read = read_leniently(text, is_followed=True)
        (task,) = parse(read.text).sections[0].tasks
        assert MEANINGS[task.status].marker == followed, "only boxes say that a task is done there"
    text = next(text for text, _ in COLUMNS if "## [x]" in text)
    read = read_leniently(text)
    assert [(note.line, note.reason[:32]) for note in read.notes][:2] == [
        (1, "A heading with a box is read as "), (2, "“P0” is read as severity: critic"),
    ]  # fmt: skip
    a, b = parse(read.text).sections[0].tasks
    assert (a.body, b.depends, b.body) == ("- **Priority**: P0", ("Task 1: A",), "- Depends on: Task 1")
    assert TICK_OF.fullmatch("## [ ] Task 2: B")
    titled = TodoFile("", (TodoSection("[x] Task 1", 2), TodoSection("\\[ ] b", 2), TodoSection("Z", 2)))
    assert parse(read_leniently(render(titled)).text) == titled


def test_what_a_task_of_ours_holds_is_not_taken_apart() -> None:
    text = "## A\n\n- [ ] Do it <!-- t:ledger-1 -->\n\n  - [ ] a box\n    \n  1. [ ] another\n"
    read = read_leniently(text)
    assert (read.text, read.notes) == (text, ())


@settings(max_examples=60, deadline=None)
@given(todo_files())
def test_what_the_export_writes_is_read_as_it_stands(file: Any) -> None:
    text = render(file)
    sections = read_leniently(text)
    if all(task.ref for section in file.sections for task in section.tasks):
        assert parse(sections.text) == file


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "  ", "    ", "\t", "   "]),
            st.sampled_from(
                ["- [ ] a", "1. [x] b", "# T", "## S", "#### D", "---", "```", "text", "severity: odd", ""]
            ),
        ),
        max_size=14,
    )
)
def test_lines_in_any_order_are_read_or_refused_and_none_is_lost(lines: list[tuple[str, str]]) -> None:
    text = "\n".join(indent + line for indent, line in lines)
    read = read_leniently(text)
    assert all(1 <= number <= len(lines) for number in read.origins if text)
    with suppress(TodoError):
        parse(read.text)
    for word in ("text", "odd"):
        assert read.text.count(word) >= text.count(word)
