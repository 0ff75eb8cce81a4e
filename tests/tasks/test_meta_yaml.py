"""Comments as <artifact>.meta.yaml: the form, round trips, faults with lines, hostile files (ITM-1)."""

from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from textwrap import dedent

import pytest
import yaml
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from tasks.configuration.reading import FaultyFile
from tasks.events import SYSTEM
from tasks.models import Comment, Event, Task
from tasks.remarks.files import export_comments, import_comments
from tasks.remarks.meta_yaml import (
    Item,
    MetaComment,
    artifact_in,
    artifact_of,
    numbered,
    read_meta,
    write_meta,
)
from tests.cases import for_each
from tests.factories import create_project, create_task

ARTIFACT = "tests/247-trading-tests.md"
DESIGN = """\
# Artifact: tests/247-trading-tests.md
# Metadata: tests/247-trading-tests.meta.yaml

comments:
  - id: c001
    author: dev-agent
    timestamp: 2024-01-17T14:30:00
    target: "test_trade_cancellation"  # specific test/section
    content: |
      This test assumes synchronous cancellation, but the
      architecture doc specifies async event-driven cancellation.
      Test will always fail with correct implementation.
    status: open

  - id: c002
    author: test-architect
    timestamp: 2024-01-17T15:45:00
    parent: c001  # reply to
    content: |
      You're right. Architecture says async. Updating test
      to use async/await pattern with proper event mocking.
    status: resolved
    resolution: accepted
"""
BREAKER = """\
issue: 247
dispute_rounds: 3
dispute_agents: [dev-agent, test-architect, dev-agent, test-architect]
status: needs-human-review
flag: "Agents disagree after 3 rounds - human decision needed"
comments: []
"""


def faults(text: str) -> list[tuple[int, str]]:
    with pytest.raises(FaultyFile) as refused:
        read_meta(text)
    return [(fault.line, fault.message) for fault in refused.value.faults]


# --- The file ---------------------------------------------------------------------------------------------


def test_the_designs_file_is_read_as_it_is() -> None:
    first, second = read_meta(DESIGN)

    assert first == MetaComment(
        "c001", "dev-agent", datetime(2024, 1, 17, 14, 30, tzinfo=UTC), first.content,
        target="test_trade_cancellation",
    )  # fmt: skip
    assert first.content.splitlines()[2] == "Test will always fail with correct implementation."
    assert (second.parent, second.status, second.resolution) == ("c001", "resolved", "accepted")


def test_an_empty_file_holds_nothing() -> None:
    assert read_meta("") == read_meta(BREAKER) == ()


names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(
    str.strip
)
moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@st.composite
def items(draw: st.DrawFn) -> Item:
    """Any comments, some of them answers to earlier ones."""
    comments: list[MetaComment] = []
    for number in range(draw(st.integers(0, 5))):
        parent = draw(st.sampled_from(["", *(comment.id for comment in comments)]))
        comments.append(
            MetaComment(
                str(number),
                draw(names),
                draw(moments),
                draw(texts),
                draw(names | st.just("")),
                parent,
                draw(st.sampled_from(["open", "resolved"])),
                draw(st.sampled_from(["", "accepted", "rejected"])),
            )
        )
    rounds = draw(st.integers(0, 9))
    agents = tuple(draw(st.lists(names, max_size=3)))
    return Item(numbered(comments), draw(names | st.just("")), rounds, agents, draw(names | st.just("")))


@given(items())
def test_whatever_is_written_is_read_again(item: Item) -> None:
    text = write_meta(item, ARTIFACT)

    assert read_meta(text) == item.comments
    assert artifact_in(text) == ARTIFACT


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5).map(repr))
def test_any_text_is_read_or_refused_with_lines(text: str) -> None:
    refused: list[int] = []
    try:
        read_meta(text)
    except FaultyFile as error:
        refused = [fault.line for fault in error.faults]

    assert all(line >= 1 for line in refused)


@for_each(
    ("text", "line", "fault"),
    [
        ("- a\n", 1, "it is no mapping."),
        ("comments: 7\n", 1, "comments is a list: `- id: c001` for each."),
        ("\nsecrets: 1\n", 2, "the file: secrets is unknown. Known are issue,"),
        ("comments:\n  - id: c001\n    owner: x\n", 2, "a comment: owner is unknown."),
        ("comments:\n  - id: c001\n", 2, "a comment has no author."),
        ("comments:\n  - id: c001\n    id: c002\n", 3, "the key id stands twice."),
        ("a: [\n", 2, "no YAML:"),
        ("comments: [x]\n", 1, "a comment holds keys"),
        ("comments: &a [*a]\n", 1, "no YAML: anchors and aliases are not taken"),
        ("? {x: 1}\n: 2\n", 1, "a key is no word."),
        ("a: \x01\n", 1, "there is a character that YAML does not allow."),
        ("!!python/object/apply:os.system [echo]\n", 1, "it is no mapping."),
        ("issue: !!binary x\ncomments:\n - !!python/name:os.system\n", 1, "a comment holds keys"),
    ],
)
def test_a_fault_names_its_line(text: str, line: int, fault: str) -> None:
    found = faults(text)

    assert found[0][0] == line
    assert found[0][1].startswith(fault)


@for_each(
    ("old", "new", "line", "fault"),
    [
        ("id: c002", "id: 2", 15, "'2' is no id; c001 is one."),
        ("id: c002", "id: c001", 15, "c001 stands there twice."),
        ("parent: c001", "parent: c009", 15, "c002 answers c009, which is not above it."),
        ("status: open", "status: perhaps", 5, "c001: status is one of open, resolved."),
        ("resolution: accepted", "resolution: maybe", 15, "c002: resolution is one of accepted, rejected."),
        ("2024-01-17T14:30:00", "soon", 5, "timestamp is a moment such as 2024-01-17T14:30:00."),
        ("2024-01-17T14:30:00", "9999-12-31T23:59:59", 5, "timestamp is a moment"),
        ("author: dev-agent", f"author: {'x' * 121}", 5, "author has 121 characters; 120 are the most."),
        ("author: dev-agent", "author: [a]", 5, "author is a text."),
    ],
)
def test_a_wrong_value_names_its_line(old: str, new: str, line: int, fault: str) -> None:
    found = faults(DESIGN.replace(old, new, 1))

    assert found[0][0] == line
    assert found[0][1].startswith(fault)


def test_a_file_without_end_is_refused_at_once() -> None:
    assert faults("x" * (1024 * 1024 + 1)) == [(1, "the file has 1048577 characters; 1048576 are the most.")]
    assert faults("comments:\n" + "- {}\n" * 2001)[0][1] == "there are 2001 comments; 2000 are the most."


@for_each(
    ("target", "artifact"),
    [
        ("tests/a.md::test_sum", "tests/a.md"),
        ("docs/SPEC.md#sums", "docs/SPEC.md"),
        ("ledger.py", "ledger.py"),
        ("ISSUE-R1-001", ""),
        ("the whole idea", ""),
        ("../../etc/passwd.md", ""),
        ("/etc/passwd.md", ""),
        ("a//b.md", ""),
        ("./a.md", ""),
        ("-rf.md", ""),
        ("a\nb.md", ""),
    ],
)
def test_which_file_a_target_names(target: str, artifact: str) -> None:
    assert artifact_of(target) == artifact


# --- Rows -------------------------------------------------------------------------------------------------


@pytest.fixture(name="task")
def make_task(db: None) -> Task:
    return create_task(create_project("ledger"), number=247)


def say(task: Task, body: str, **kwargs: object) -> Comment:
    values = {"by_label": "dev-agent", "by_kind": "run", "target": f"{ARTIFACT}::test_sum"} | kwargs
    return Comment.objects.create(project=task.project, task=task, body=body, **values)


def test_a_task_is_exported_in_one_file_for_each_artifact(task: Task) -> None:
    root = say(task, "Wrong.\nVery wrong.")
    say(task, "Right.", parent=root, by_label="test-architect", resolution="rejected")
    say(task, "In general.", target="")

    files = export_comments(task)

    assert sorted(files) == ["ledger-247.meta.yaml", f"{ARTIFACT}.meta.yaml"]
    first, second = read_meta(files[f"{ARTIFACT}.meta.yaml"])
    assert (first.id, first.target, first.content) == ("c001", "test_sum", "Wrong.\nVery wrong.")
    assert (second.id, second.parent, second.resolution) == ("c002", "c001", "rejected")
    assert "content: |-\n" in files[f"{ARTIFACT}.meta.yaml"]


def test_a_dispute_without_end_is_flagged_in_the_file(task: Task) -> None:
    Task.objects.filter(pk=task.pk).update(status="disputed")
    task.refresh_from_db()
    root = say(task, "Wrong.", stage="dev", sends="back")
    for sends, who in (("forward", "test-architect"), ("back", "dev-agent"), ("forward", "test-architect")):
        say(task, "No.", parent=root, sends=sends, by_label=who)

    item = yaml.safe_load(export_comments(task)[f"{ARTIFACT}.meta.yaml"])

    assert (item["dispute_rounds"], item["status"]) == (3, "needs-human-review")
    assert item["dispute_agents"] == ["dev-agent", "test-architect"] * 2
    assert item["flag"] == "Agents disagree after 3 rounds - human decision needed"


def test_the_designs_file_becomes_a_thread_once(task: Task) -> None:
    said = import_comments(task, DESIGN, artifact=ARTIFACT, actor=SYSTEM)
    again = import_comments(task, DESIGN, artifact=ARTIFACT, actor=SYSTEM)

    root, reply = task.comments.order_by("pk")
    assert (said, again) == (["ledger-247: 2 comments added, 0 changed."], [])
    assert (root.by_label, root.by_kind, root.target) == (
        "dev-agent", "import", f"{ARTIFACT}::test_trade_cancellation",
    )  # fmt: skip
    assert (reply.parent, reply.status, reply.resolution, reply.sends) == (root, "resolved", "accepted", "")
    assert Event.objects.filter(kind="comments_imported").count() == 1


def test_what_was_exported_changes_nothing_when_it_comes_back(task: Task) -> None:
    root = say(task, "Wrong.\n\n  indented  \n")
    say(task, "Right: #1 & *2* {x}", parent=root)
    for name, text in export_comments(task).items():
        assert import_comments(task, text, artifact=name.removesuffix(".meta.yaml"), actor=SYSTEM) == []
    assert task.comments.count() == 2


def test_a_status_that_was_changed_in_the_file_is_taken(task: Task) -> None:
    import_comments(task, DESIGN, artifact=ARTIFACT, actor=SYSTEM)
    closed = DESIGN.replace("status: open", "status: resolved\n    resolution: rejected")

    assert import_comments(task, closed, artifact=ARTIFACT, actor=SYSTEM) == [
        "ledger-247: 0 comments added, 1 changed."
    ]
    assert task.comments.order_by("pk")[0].resolution == "rejected"


def test_a_faulty_file_changes_nothing(task: Task) -> None:
    with pytest.raises(FaultyFile):
        import_comments(task, DESIGN.replace("id: c002", "id: c001"), artifact=ARTIFACT, actor=SYSTEM)

    assert not task.comments.exists()


def test_the_commands_write_and_read_the_files(task: Task, tmp_path: Path) -> None:
    say(task, "Wrong.")
    said = StringIO()
    call_command("export_comments", "ledger-247", "--out", str(tmp_path), stdout=said)
    path = tmp_path / f"{ARTIFACT}.meta.yaml"
    other = create_task(create_project("atlas"), number=1)

    call_command("import_comments", "atlas-1", str(path), stdout=said)
    call_command("import_comments", "atlas-1", str(path), stdout=said)

    assert other.comments.get().target == f"{ARTIFACT}::test_sum"
    assert said.getvalue() == dedent(f"""\
        {path}
        atlas-1: 1 comment added, 0 changed.
        Nothing changes.
    """)


def test_the_commands_say_what_is_wrong(task: Task, tmp_path: Path) -> None:
    path = tmp_path / "x.meta.yaml"
    path.write_text("comments: 7\n")

    with pytest.raises(CommandError, match=r"x.meta.yaml:1: comments is a list"):
        call_command("import_comments", "ledger-247", str(path))
    with pytest.raises(CommandError, match="There is no task ledger-9."):
        call_command("import_comments", "ledger-9", str(path))
