"""Diffs, the lines around a place, and the strip of rounds: no database needed."""

import subprocess
from pathlib import Path

import pytest
from django.utils.html import escape
from django.utils.safestring import SafeString

from disputes.templatetags.triage import PART_ROWS, in_parts
from disputes.web.dispute import code
from disputes.web.dispute.code import CodeLine, Pair, code_at, coloured, parse_diff, rows_of, split_rows_of
from disputes.web.dispute.round_strip import strip
from tasks.text.unseen import plain, visible
from tests.own_time import linear_time

DIFF = """\
diff --git a/src/calls.py b/src/calls.py
index 111..222 100644
--- a/src/calls.py
+++ b/src/calls.py
@@ -9,4 +9,5 @@ def call():
     one = 1
-    two = 2
+    two = "two"
+    three = 3
     four = 4
     five = 5
diff --git a/old name.py b/new name.py
similarity index 100%
rename from old name.py
rename to new name.py
diff --git "a/f\\303\\274r.py" "b/f\\303\\274r.py"
new file mode 100644
--- /dev/null
+++ "b/f\\303\\274r.py"
@@ -0,0 +1 @@
+--- a/not/a/header
\\ No newline at end of file
diff --git a/logo.png b/logo.png
Binary files a/logo.png and b/logo.png differ
diff --git a/gone.py b/gone.py
deleted file mode 100644
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x = 1
"""
EXCERPT = '    one = 1\n    two = "two"\n    three = 3\n    four = 4'


def shown(lines: list[CodeLine]) -> list[tuple[int, str, str]]:
    return [(line.number, line.sign, line.text.strip()) for line in lines]


def at(**kwargs: object) -> list[CodeLine]:
    given = {"path": "src/calls.py", "line": 11, "excerpt": EXCERPT, "start": 9, "diff": DIFF} | kwargs
    return code_at(**given)  # type: ignore[arg-type]


def test_a_diff_names_its_files_and_counts_their_lines() -> None:
    files = [(file.path, file.added, file.removed, file.note) for file in parse_diff(DIFF).files]
    assert files == [
        ("src/calls.py", 2, 1, ""),
        ("new name.py", 0, 0, "renamed from old name.py"),
        ("für.py", 1, 0, "new file"),
        ("logo.png", 0, 0, "binary"),
        ("gone.py", 0, 1, "deleted"),
    ]


def test_what_kind_of_file_is_changed_is_told_and_no_path_can_be_taken_for_another(tmp_path: Path) -> None:
    def git(*words: str, given: bytes | None = None) -> str:
        done = subprocess.run(["git", "-C", tmp_path, *words], input=given, capture_output=True, check=True)
        return done.stdout.decode()

    git("init", "-q")
    script, link, bare = tmp_path / "run.sh", tmp_path / "link", tmp_path / "tool"
    script.write_text("ls\n"), bare.write_text("ls\n"), link.symlink_to("old")
    script.chmod(0o755)
    git("add", "-A")
    before = git("write-tree").strip()
    link.unlink(), link.symlink_to("../../secret")
    script.chmod(0o644), bare.chmod(0o755)
    (tmp_path / "new.sh").write_text("ls\n")
    (tmp_path / "new.sh").chmod(0o755)
    (tmp_path / "notes").symlink_to("/etc/passwd")
    (tmp_path / "x b").mkdir()
    (tmp_path / "x b" / "README.md").touch()
    (tmp_path / 'quo"te b').mkdir()
    (tmp_path / 'quo"te b' / "safe.bin").write_bytes(b"\0")
    git("add", "-A")
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendored")
    text = git("diff", "--no-color", before, git("write-tree").strip())
    assert {file.path: file.note for file in parse_diff(text).files} == {
        "link": "link", "new.sh": "new file, executable", "notes": "new file, link",
        'quo"te b/safe.bin': "new file, binary", "run.sh": "no longer executable", "tool": "executable",
        "vendored": "new file, submodule", "x b/README.md": "new file",
    }  # fmt: skip


def test_a_line_that_looks_like_a_header_stays_a_line() -> None:
    file = parse_diff(DIFF).of("für.py")
    assert file is not None
    assert [line.text for line in file.hunks[0].lines] == ["--- a/not/a/header"]


def test_a_cut_diff_is_read_as_far_as_it_goes() -> None:
    for end in range(len(DIFF)):
        assert len(parse_diff(DIFF[:end]).files) <= 5


def test_a_long_diff_is_cut_and_says_so() -> None:
    diff = parse_diff(DIFF, max_lines=8)
    assert diff.is_cut
    assert [len(hunk.lines) for file in diff.files for hunk in file.hunks] == [3]


def test_the_excerpt_carries_the_signs_of_the_diff() -> None:
    lines = at()
    assert shown(lines) == [
        (9, " ", "one = 1"),
        (10, "-", "two = 2"),
        (10, "+", 'two = "two"'),
        (11, "+", "three = 3"),
        (12, " ", "four = 4"),
    ]
    assert [line.number for line in lines if line.is_place] == [11]


def test_a_diff_of_other_code_signs_nothing() -> None:
    lines = at(excerpt="a = 1\nb = 2", start=11)
    assert [line.sign for line in lines] == [" ", " "]


def test_without_an_excerpt_the_hunk_serves() -> None:
    assert shown(at(excerpt="", start=None))[3] == (11, "+", "three = 3")
    assert at(excerpt="", start=None, line=400) == []
    assert at(excerpt="", start=None, path="elsewhere.py") == []


def test_code_is_coloured_by_classes_and_escaped() -> None:
    html = at(excerpt='x = "<b>"  # &', start=11, diff="")[0].html
    assert '<span class="s2">' in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


def test_a_string_over_several_lines_is_coloured_on_each() -> None:
    lines = at(excerpt='"""One\ntwo\nthree"""', start=10, diff="")
    assert ['class="sd"' in line.html or 'class="s2"' in line.html for line in lines] == [True] * 3


def test_an_unknown_language_is_plain() -> None:
    assert at(path="notes.unknown", excerpt="a < b", start=11, diff="")[0].html == "a &lt; b"


def test_no_name_of_a_file_and_no_line_makes_the_colours_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some readers never end on the first three; a page shows each of them without colours instead."""
    hostile = {"x.mcschema": "<!--" * 10, "x.ly": "a" * 2_000, "x.isa": "1e" * 5_000, "x.py": "x = 1 " * 100}
    monkeypatch.setattr(code, "COLOURED_MAX", 40_000)
    with linear_time():
        for path, line in hostile.items():
            shown = at(path=path, excerpt=line, start=11, diff="")[0]
            assert shown.html == escape(line), path
        for path, line in (("x.java", "a " * 249), ("x.rst", " \t" * 249), ("x.cs", "a " * 249)):
            files = [f"--- a/{path}\n+++ b/{path}\n@@ -0,0 +1,1500 @@\n" + f"+{line}\n" * 1500] * 20
            assert len(coloured(parse_diff("".join(files), 40_000)).files) == 20
    assert all("<span" in at(path=f"x.{end}")[0].html for end in ("py", "ts", "java", "go", "rs", "c", "sql"))


def test_characters_that_deceive_are_named_in_code_and_dropped_from_words() -> None:
    assert "\u27e8U+202E\u27e9" in at(excerpt="x = '\u202e'", start=11, diff="")[0].html
    assert visible("a\x1b[2Jb") == "a\u27e8U+001B\u27e9[2Jb"
    assert plain("a\x1b\u2066b\u200b\tc\n") == "ab\tc\n"
    # A blank that is a letter, tag letters, selectors that carry bytes, and joiners that join nothing.
    for unseen in "\xad\u034f\u115f\u2060\u2065\u3164\uffa0\ufe00\U000e0101\U000e0041\u200c\u200d\ufe0f":
        assert visible(f"a{unseen}b") == f"a\u27e8U+{ord(unseen):04X}\u27e9b"
        assert plain(f"a{unseen}b") == (f"a{unseen}b" if unseen in "\u200c\u200d\ufe0f" else "ab")
    for seen in (
        "\u2764\ufe0f\u200d\U0001f525",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "1\ufe0f\u20e3",
    ):
        assert visible(seen) == plain(seen) == seen
    assert visible("\u2764\ufe0f\ufe0f") == "\u2764\ufe0f\u27e8U+FE0F\u27e9"


def test_the_strip_tells_a_b_a() -> None:
    steps = strip(4, [2, 4], {3: "declined"})
    assert [(step.round, step.mark, step.word) for step in steps] == [
        (1, "–", "not seen"),
        (2, "A", "raised"),
        (3, "B", "declined"),
        (4, "A", "again"),
    ]


def test_an_answer_comes_before_the_review_of_its_round() -> None:
    steps = strip(3, [1, 2], {2: "silent", 3: "addressed"})
    assert [(step.round, step.mark) for step in steps] == [(1, "A"), (2, "?"), (2, "A"), (3, "✓")]


def test_a_long_strip_shows_its_end() -> None:
    assert [step.round for step in strip(40, [1], {})] == [36, 37, 38, 39, 40]


# --- Side by side -------------------------------------------------------------------------------------------


def test_removed_lines_stand_beside_the_added_ones() -> None:
    text = (
        "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -10,5 +20,5 @@ def f():\n same\n-old 1\n"
        "-old 2\n+new 1\n between\n-gone\n+come 1\n+come 2\n"
    )
    [hunk] = parse_diff(text).files[0].hunks
    rows = [
        tuple((line.number, line.text, line.change) if line else None for line in (pair.old, pair.new))
        for pair in hunk.pairs()
    ]
    assert rows == [
        ((10, "same", ""), (20, "same", "")),
        ((11, "old 1", "removed"), (21, "new 1", "added")),
        ((12, "old 2", "removed"), None),
        ((13, "between", ""), (22, "between", "")),
        ((14, "gone", "removed"), (23, "come 1", "added")),
        (None, (24, "come 2", "added")),
    ]


def test_a_long_diff_has_its_colours_at_the_top_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "COLOURED_MAX", 3)
    text = "".join(
        f"diff --git a/{name}.py b/{name}.py\n--- a/{name}.py\n+++ b/{name}.py\n"
        "@@ -1,1 +1,1 @@\n-import a\n+import b\n"
        for name in ("first", "second")
    )
    first, second = coloured(parse_diff(text)).files
    assert "<span" in first.hunks[0].lines[0].html
    assert second.hunks[0].lines[0].html == ""


def test_a_row_of_code_names_its_change_and_shows_markup_and_hidden_characters_as_text() -> None:
    added = CodeLine(7, "+", "a < \u202eb", is_place=True)
    removed = CodeLine(6, "-", "a", html=SafeString("<i>a</i>"))
    rows = rows_of([removed, added, CodeLine(8, " ", "c")], pin="F-1 <points> here.")
    for part in (
        '<tr class="removed"><td class="code-number">6</td>',
        '<span aria-hidden="true">-</span><span class="for-readers">removed</span>',
        "<code><i>a</i></code>",
        '<tr class="added is-place"><td class="code-number">7</td>',
        "<code>a &lt; \u27e8U+202E\u27e9b</code>",
        '<tr class="code-pin"><td></td><td></td><td>F-1 &lt;points&gt; here.</td></tr>',
        '<tr class=""><td class="code-number">8</td><td class="code-sign"></td>',
    ):
        assert part in rows
    assert rows_of([added]).count("<tr") == 1, "nothing points at it"
    halves = split_rows_of([Pair(removed, added), Pair(None, added)])
    for part in (
        '<td class="code-number removed">6</td><td class="code-text removed">'
        '<span class="for-readers">removed</span><code><i>a</i></code></td>',
        "<code>a &lt; \u27e8U+202E\u27e9b</code>",
        '<td class="code-text is-none"><code></code></td><td class="code-number added">7</td>',
    ):
        assert part in halves


def test_long_code_is_laid_out_in_parts_that_leave_nothing_out() -> None:
    rows = [CodeLine(number, "+", f"line {number}") for number in range(4000)]
    parts = in_parts(rows)
    assert max(map(len, parts)) == PART_ROWS
    assert [row for part in parts for row in part] == rows
    assert in_parts([]) == []
