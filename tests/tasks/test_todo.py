"""TODO.md as text: what is read, what is refused, and that nothing is lost on the way."""

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.states import MARKERS, Severity, Status
from tasks.todo import format
from tasks.todo.format import Problem, TodoError, TodoFile, TodoSection, TodoTask, parse, render
from tests.cases import for_each
from tests.own_time import linear_time

ROOT = Path(__file__).resolve().parents[2]
CANONICAL = """\
# Ledger

What this file is for.

## Server
after: Groundwork; Read\\; write

The part that answers.

```
## not a section
- [ ] not a task
```

- [o] Refuse a wrong password <!-- t:ledger-12 -->
  source: docs/SPEC.md#login
  severity: high
  tags: login, security
  depends: Keep passwords hashed; ledger-3

  As the specification says.

  ```
  - [ ] an example
  ## another
  ```

      indented code

- [ ] Keep passwords hashed

### Tests

- [x] Test the login
  severity: low

## Groundwork

## Read; write
"""


def problems_of(text: str) -> list[Problem]:
    with pytest.raises(TodoError) as caught:
        parse(text)
    return caught.value.problems


def only_problem(text: str) -> Problem:
    problems = problems_of(text)
    assert len(problems) == 1, problems
    return problems[0]


def only_task(text: str) -> TodoTask:
    (section,) = parse(text).sections
    (task,) = section.tasks
    return task


# --- What is read -----------------------------------------------------------------------------------------


def test_a_canonical_file_is_written_as_it_was_read():
    assert render(parse(CANONICAL)) == CANONICAL


def test_the_demo_is_in_canonical_form():
    text = (ROOT / "examples" / "demo" / "TODO.md").read_text()
    assert render(parse(text)) == text


def test_every_part_of_a_task_is_read():
    task = parse(CANONICAL).sections[0].tasks[0]
    assert (task.title, task.status, task.ref) == ("Refuse a wrong password", Status.REVIEW, "ledger-12")
    assert (task.source, task.severity) == ("docs/SPEC.md#login", Severity.HIGH)
    assert task.tags == ("login", "security")
    assert task.depends == ("Keep passwords hashed", "ledger-3")
    assert task.body.startswith(
        "As the specification says.\n\n```\n- [ ] an example\n## another\n```\n\n    ind"
    )


def test_every_part_of_a_section_is_read():
    server, tests, groundwork, _ = parse(CANONICAL).sections
    assert server.after == ("Groundwork", "Read; write")
    assert server.body == "The part that answers.\n\n```\n## not a section\n- [ ] not a task\n```"
    assert (tests.level, groundwork.level) == (3, 2)
    assert parse(CANONICAL).parents() == [None, 0, None, None]


def test_the_text_above_the_first_section_is_kept():
    assert parse(CANONICAL).preamble == "# Ledger\n\nWhat this file is for."


def test_lines_are_known_but_do_not_count_in_comparisons():
    section = parse(CANONICAL).sections[0]
    assert (section.line, section.tasks[0].line) == (5, 15)
    assert section == replace(section, line=99)


@for_each(("marker", "status"), MARKERS.items())
def test_each_marker_is_read_and_written(marker, status):
    text = f"## A\n\n- [{marker}] Do it\n"
    assert only_task(text).status == status
    assert render(parse(text)) == text


def test_an_empty_file_holds_nothing():
    assert parse("") == TodoFile()
    assert render(TodoFile()) == ""


def test_tasks_above_the_first_heading_go_to_a_section_without_heading():
    text = "# Ledger\n\n- [ ] First\n\n## Later\n"
    first, later = parse(text).sections
    assert (first.title, first.level, later.level) == ("Tasks", 0, 2)
    assert render(parse(text)) == text


def test_a_task_without_severity_says_none():
    assert only_task("- [ ] Do it").severity is None


def test_equal_titles_are_fine_in_different_sections():
    assert len(parse("## A\n- [ ] Do it\n## B\n- [ ] Do it").sections) == 2


def test_equal_titles_are_fine_where_each_names_itself():
    text = "## A\n\n- [ ] Do it <!-- t:a-1 -->\n\n- [ ] Do it <!-- t:a-2 -->\n"
    assert render(parse(text)) == text


def test_equal_section_titles_are_fine_under_different_parents():
    assert len(parse("## A\n### Tests\n## B\n### Tests").sections) == 4


def test_a_title_may_hold_any_comment_before_its_identity():
    task = only_task("- [ ] Write <!-- t:x --> and <!-- y --> <!-- t:a-1 -->")
    assert (task.title, task.ref) == ("Write <!-- t:x --> and <!-- y -->", "a-1")


def test_a_key_after_the_blank_line_is_text():
    task = only_task("- [ ] Do it\n\n  severity: high\n  owner: nobody")
    assert (task.severity, task.body) == (None, "severity: high\nowner: nobody")


def test_text_directly_below_a_task_begins_its_description():
    task = only_task("- [ ] Do it\n  source: SPEC.md\n  https://example.org says how.\n  tags: a")
    assert (task.source, task.tags) == ("SPEC.md", ())
    assert task.body == "https://example.org says how.\ntags: a"


def test_a_checklist_in_a_description_is_text():
    task = only_task("- [ ] Do it\n\n  - [ ] first this\n  - [ ] then that")
    assert task.body == "- [ ] first this\n- [ ] then that"


def test_blank_lines_and_indents_inside_a_description_are_kept():
    text = "- [ ] Do it\n\n    four\n\n\n   \n  \ttab\n"
    assert only_task(text).body == "  four\n\n\n \n\ttab"
    assert render(parse(text)) == text


@for_each("line", ["- [docs](https://example.org)", "- [1]: note", "* [a][b]", "# One", "  ## in"])
def test_what_only_resembles_a_task_or_heading_is_text_of_its_section(line):
    assert parse(f"## A\n\n{line}\n").sections == (TodoSection("A", body=line),)


@for_each("line", ["## B", "- [ ] Do it", "* [x] Done", "##", "\\## B", "- [?] What"])
def test_a_backslash_keeps_a_line_as_text_of_its_section(line):
    text = f"## A\n\n\\{line}\n"
    assert parse(text).sections == (TodoSection("A", body=line),)
    assert render(parse(text)) == text


def test_a_fence_ends_only_with_its_own_kind_and_length():
    body = "````\n```\n## B\n~~~~\n````` \n~~~"
    assert only_problem(f"## A\n\n{body}").line == 8
    assert parse("## A\n\n````\n```\n## B\n`````").sections[0].body.endswith("## B\n`````")


def test_after_counts_only_directly_below_its_heading():
    section = parse("## A\n\nafter: B").sections[0]
    assert (section.after, section.body) == ((), "after: B")


def test_several_lines_of_after_are_one_list():
    assert parse("## A\nafter: B; C\nAfter: D\nText").sections == (
        TodoSection("A", 2, ("B", "C", "D"), "Text"),
    )


# --- What is normalised -----------------------------------------------------------------------------------


@for_each(
    ("loose", "canonical"),
    [
        ("- [X] Do it", "- [x] Do it\n"),
        ("* [ ] Do it", "- [ ] Do it\n"),
        ("-[ ]Do it  ", "- [ ] Do it\n"),
        ("- [ ] Do it <!--t:a-1-->", "- [ ] Do it <!-- t:a-1 -->\n"),
        ("\ufeff- [ ] Do it\r\n  Source:x\r\n", "- [ ] Do it\n  source: x\n"),
        ("- [ ] Do it\n\ttags: a,,b ,\n\n\tText\n \tMore", "- [ ] Do it\n  tags: a, b\n\n  Text\n  More\n"),
        ("- [ ] Do it\n    severity: HIGH", "- [ ] Do it\n  severity: high\n"),
        ("- [ ] Do it\n  tags: a\n  source: x\n  depends:", "- [ ] Do it\n  source: x\n  tags: a\n"),
        ("##A\nText\n- [ ] Do it\n- [ ] More", "## A\n\nText\n\n- [ ] Do it\n\n- [ ] More\n"),
        ("\n\n# T\n\n\n\n## A\n\n\n", "# T\n\n## A\n"),
        ("- [ ] Do it\n  depends: a\\b;c\\;d", "- [ ] Do it\n  depends: a\\\\b; c\\;d\n"),
    ],
)
def test_loose_spelling_becomes_canonical(loose, canonical):
    assert render(parse(loose)) == canonical
    assert parse(loose) == parse(canonical)


# --- What is refused --------------------------------------------------------------------------------------


@for_each(
    ("text", "line", "reason"),
    [
        ("## A\n\n- [?] Do it", 3, "[?] is not a marker; known are [ ] [-] [o] [x] [!] [F] [>] [~]."),
        ("- [] Do it", 1, "[] is not a marker"),
        ("- [ x] Do it", 1, "[ x] is not a marker"),
        ("- [O] Do it", 1, "[O] is not a marker"),
        ("- [ ]", 1, "A task needs a title."),
        ("- [ ] <!-- t:a-1 -->", 1, "A task needs a title."),
        (
            "- [ ] Do it\n  owner: Lea",
            2,
            "owner is not an attribute; known are source, severity, tags, depends.",
        ),
        ("- [ ] Do it\n  tags: a\n  tags: b", 3, "tags is given twice"),
        (
            "- [ ] Do it\n  severity: urgent",
            2,
            "urgent is not a severity; known are critical, high, medium, low.",
        ),
        ("- [ ] Do it\n  severity:", 2, "Nothing is not a severity"),
        ("- [ ] Do it\n\nText", 3, "Text below a task is indented by two spaces."),
        (
            "- [ ] Do it\n- Then that",
            2,
            "A task begins with a dash and a box: `- [ ] Then that`. "
            "Text below a task is indented by two spaces.",
        ),
        (
            "- [ ] Do it\n2. [ ] Then that",
            2,
            "A task begins with a dash and a box: `- [ ] Then that`. "
            "Text below a task is indented by two spaces.",
        ),
        ("- [ ] Do it\n source: x", 2, "Text below a task is indented by two spaces."),
        ("- [ ] Do it\n# Title", 2, "Text below a task is indented by two spaces."),
        ("## A\n## B\n## A", 3, "A section “A” is already in line 1, under the same parent."),
        ("- [ ] Do it\n## Tasks", 2, "A section “Tasks” is already in line 1"),
        ("- [ ] Do it\n- [x] Do it <!-- t:a-1 -->", 2, "“Do it” is already in line 1, in the same section."),
        ("- [ ] One <!-- t:a-1 -->\n- [ ] Two <!-- t:a-1 -->", 2, "a-1 is already in line 1."),
        (
            "- [ ] Do it <!-- t:a -->",
            1,
            "An identity comment ends the line and looks like <!-- t:ledger-12 -->.",
        ),
        ("- [ ] Do it <!-- t:a-01 -->", 1, "An identity comment"),
        ("- [ ] Do it <!-- t:a-1", 1, "An identity comment"),
        ("- [ ] Do <!-- t:a-1 --> it", 1, "An identity comment"),
        ("## A\n#### B", 2, "A heading with #### needs one with ### above it."),
        ("### A", 1, "A heading with ### needs one with ## above it."),
        ("##", 1, "A heading needs a title."),
        ("- [ ] " + "x" * 301, 1, "The title of a task has at most 300 characters."),
        ("## " + "x" * 201, 1, "The title of a section has at most 200 characters."),
        ("- [ ] Do it\n  source: " + "x" * 301, 2, "A source has at most 300 characters."),
        ("# T\n```\n- [ ] Do it", 2, "This fence is never closed"),
        ("- [ ] Do\0 it", 1, "The line holds the control character U+0000."),
        ("- [ ] Do it\n\n  \x1b[31mred", 3, "The line holds the control character U+001B."),
        ("- [ ] Do it\rnow", 1, "The line holds the control character U+000D."),
    ],
)
def test_it_is_refused_with_line_and_reason(text, line, reason):
    problem = only_problem(text)
    assert problem.line == line
    assert problem.reason.startswith(reason)


def test_all_problems_are_reported_at_once_and_in_order():
    problems = problems_of("## A\n- [?] One\n  owner: x\ntext\n#### B\n- [ ]\n## A\n")
    assert [problem.line for problem in problems] == [2, 3, 4, 5, 6, 7]
    assert all(problem.reason.endswith(".") for problem in problems)


def test_a_heading_has_at_most_six_number_signs():
    text = "".join(f"{'#' * level} {level}\n" for level in range(2, 9))
    assert [problem.line for problem in problems_of(text)] == [6, 7]


def test_a_problem_shows_the_line_cut_and_without_control_characters():
    problem = only_problem("- [?] \t" + "x" * 250)
    assert problem.text == "- [?] \t" + "x" * 193
    assert only_problem("- [ ] a\x1bb").text == "- [ ] a\N{REPLACEMENT CHARACTER}b"


def test_the_error_says_all_problems_in_words():
    with pytest.raises(TodoError, match=r"line 1: A task needs a title.\nline 2: "):
        parse("- [ ]\n- [?] x")


def test_a_file_over_the_limit_is_refused():
    text = "é" * (format.MAX_BYTES // 2)
    assert parse(text).preamble == text
    assert only_problem(text + "x").reason == "The file has 8388609 bytes; 8388608 are the limit. Divide it."


@for_each(
    "text",
    [
        "- [ ] Do it\n" + "x\n" * 200_000,
        "## A\n" + "after:\n" * 100_000,
        "- [ ] x " + "<!-- t:" * 100_000,
        "- [ ] <!-- t:" + "a-1" * 300_000,
        "- [" + " " * 1_000_000,
        "- [ ] x\n  depends: " + "\\;" * 300_000,
        "`" * 1_000_000,
        "".join(f"{'#' * level} x\n" for level in range(2, 1400)),
    ],
)
def test_no_file_takes_long(text):
    with linear_time(), suppress(TodoError):
        parse(text)


@for_each(
    "file",
    [
        TodoFile(sections=(TodoSection("A", tasks=(TodoTask(""),)),)),
        TodoFile(sections=(TodoSection("A", tasks=(TodoTask("Do\nit"),)),)),
        TodoFile(sections=(TodoSection("A", tasks=(TodoTask("Do it", body="\n\nText"),)),)),
        TodoFile(sections=(TodoSection("A", body="```"), TodoSection("B"))),
        TodoFile(sections=(TodoSection("A"), TodoSection("Tasks", level=0))),
        TodoFile(sections=(TodoSection("A", level=7),)),
        TodoFile(preamble="- [ ] Do it\r"),
    ],
)
def test_a_value_that_would_change_on_the_way_is_not_written(file):
    with pytest.raises(TodoError):
        render(file)


def test_the_module_needs_no_django():
    code = "import sys; sys.modules['django'] = None; import tasks.todo.format"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=dict(os.environ), capture_output=True)
    assert result.returncode == 0, result.stderr


# --- Values from elsewhere --------------------------------------------------------------------------------


def test_foreign_values_are_made_fit_for_the_file():
    assert format.as_line(" Do\r\nit\x00 ") == "Do it\N{REPLACEMENT CHARACTER}"
    assert format.as_text("\r\n  \n  Text\r\n\rMore\n\n") == "  Text\n\nMore"


def test_a_fence_that_a_section_leaves_open_is_closed():
    assert format.as_section_text("Text\n~~~~ py\n```") == "Text\n~~~~ py\n```\n~~~~"
    assert format.as_section_text("```\n```") == "```\n```"


# --- Any file ---------------------------------------------------------------------------------------------

TRICKY = [
    "## A", "## B", "### C", "##", "# t", "\\## x", "\\\\- [x] q", "after: b", "```", "````", "~~~~ py",
    "- [ ] y", "-[o]z", "* [X] s", "-[o] v <!-- t:a-1 -->", "<!-- t:", "a;b", "a\\", ";", "\\",
    "  Tags: a,,b", "    severity: HIGH", "  depends: x; y\\;", "severity: high", "word: x", "source:x",
    "  body", "\tbody", "  ", "\t", " ", "",
]  # fmt: skip
lines = st.sampled_from(TRICKY) | st.text(max_size=12)
titles = lines.map(format.as_line).filter(lambda title: title and "<!--" not in title)
names = st.lists(titles, max_size=3).map(tuple)
texts = st.lists(lines, max_size=6).map("\n".join)
todo_tasks = st.builds(
    TodoTask,
    title=titles,
    status=st.sampled_from(Status),
    source=lines.map(format.as_line),
    severity=st.none() | st.sampled_from(Severity),
    tags=names,
    depends=names,
    body=texts.map(format.as_text),
)


@st.composite
def todo_files(draw):
    """Any file whose titles and refs are unique, which a counter sees to."""
    sections = []
    level, count = 1, 0
    for index in range(draw(st.integers(0, 4))):
        implied = index == 0 and draw(st.booleans())
        tasks = []
        for task in draw(st.lists(todo_tasks, min_size=1 if implied else 0, max_size=3)):
            count += 1
            named = draw(st.booleans())
            tasks.append(
                replace(task, ref=f"p-{count}") if named else replace(task, title=f"{count} {task.title}")
            )
        if implied:
            sections.append(TodoSection(format.FIRST_SECTION, level=0, tasks=tuple(tasks)))
            continue
        level = draw(st.integers(2, min(level + 1, format.MAX_LEVEL)))
        body = format.as_section_text(draw(texts))
        sections.append(TodoSection(f"{draw(titles)} {index}", level, draw(names), body, tuple(tasks)))
    return TodoFile(format.as_section_text(draw(texts)), tuple(sections))


@settings(deadline=None)
@given(todo_files())
def test_what_is_written_is_read_back_the_same(file):
    text = render(file)
    assert parse(text) == file
    assert render(parse(text)) == text


@settings(deadline=None)
@given(st.lists(lines, max_size=10).map("\n".join))
def test_any_text_is_either_refused_or_survives_in_canonical_form(text):
    try:
        file = parse(text)
    except TodoError:
        return
    assert parse(render(file)) == file
