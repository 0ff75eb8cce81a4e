"""Which lines a unified diff changed."""

from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.text.diffs import Edit, FileChange, read_diff, unquoted_path
from tests.cases import for_each
from tests.own_time import linear_time

DIFF = """\
diff --git a/src/calls.py b/src/calls.py
index 1..2 100644
--- a/src/calls.py
+++ b/src/calls.py
@@ -1,6 +1,6 @@ def call():
 one
-two
+2
+two and a half
 three
 four
-five
 six
@@ -20,3 +20,4 @@
 twenty
+twenty and a half
 twenty-one
 twenty-two
diff --git a/docs/new.md b/docs/new.md
new file mode 100644
--- /dev/null
+++ b/docs/new.md
@@ -0,0 +1,2 @@
+# New
+--- not a header
diff --git a/old.txt b/old.txt
deleted file mode 100644
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
\\ No newline at end of file
diff --git a/a.py b/b.py
similarity index 100%
rename from a.py
rename to b.py
diff --git a/logo.png b/logo.png
Binary files a/logo.png and b/logo.png differ
"""


def calls() -> FileChange:
    found = read_diff(DIFF).of("src/calls.py")
    assert found is not None
    return found


def test_every_file_of_a_diff_is_found_by_its_path() -> None:
    changes = read_diff(DIFF)
    assert list(changes.files) == ["src/calls.py", "docs/new.md", "old.txt", "b.py", "logo.png"]
    assert changes.is_cut is False


def test_an_edit_says_what_became_of_which_lines() -> None:
    assert calls().edits == [Edit(2, 1, 2, 2), Edit(5, 1, 6, 0), Edit(21, 0, 21, 1)]


def test_what_looks_like_a_header_inside_a_hunk_is_a_line() -> None:
    change = read_diff(DIFF).of("docs/new.md")
    assert change is not None
    assert (change.is_new, change.edits) == (True, [Edit(1, 0, 1, 2)])


def test_a_deleted_file_keeps_its_name() -> None:
    change = read_diff(DIFF).of("old.txt")
    assert change is not None
    assert (change.is_deleted, change.edits) == (True, [Edit(1, 1, 1, 0)])


@for_each("path", ["a.py", "b.py"])
def test_a_renamed_file_is_found_by_both_names(path: str) -> None:
    change = read_diff(DIFF).of(path)
    assert change is not None
    assert (change.old_path, change.path, change.edits) == ("a.py", "b.py", [])


def test_a_binary_file_says_so() -> None:
    change = read_diff(DIFF).of("logo.png")
    assert change is not None
    assert change.is_binary is True


def test_a_file_is_found_by_the_end_of_its_path() -> None:
    assert read_diff(DIFF).of("calls.py") is not None
    assert read_diff(DIFF).of("alls.py") is None


@for_each(
    ("first", "last", "near", "touched"),
    [
        (2, 2, 0, True),
        (3, 3, 0, True),
        (1, 1, 0, False),
        (4, 4, 0, False),
        (5, 5, 0, True),  # the line before it went away
        (6, 6, 0, True),  # and the one behind the gap
        (7, 20, 0, False),
        (9, 9, 3, True),
        (10, 10, 3, False),
        (1, 400, 0, True),
    ],
)
def test_lines_of_the_new_file_are_touched_or_not(first: int, last: int, near: int, touched: bool) -> None:
    assert calls().touches(first, last, near) is touched


@for_each(("line", "touched"), [(1, False), (2, True), (3, False), (5, True), (20, True)])
def test_lines_of_the_old_file_were_touched_or_not(line: int, touched: bool) -> None:
    assert calls().touched(line, line) is touched


def test_a_diff_without_git_has_files_as_well() -> None:
    text = "--- a/x.c\t2026-01-01\n+++ b/x.c\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n"
    text += "--- y.c\n+++ y.c\n@@ -3,0 +4 @@\n+c"
    changes = read_diff(text)
    assert {path: change.edits for path, change in changes.files.items()} == {
        "x.c": [Edit(1, 1, 1, 1)], "y.c": [Edit(4, 0, 4, 1)],
    }  # fmt: skip


def test_a_cut_diff_says_so_and_keeps_what_it_has() -> None:
    changes = read_diff(DIFF[: DIFF.index(" three")])
    assert changes.is_cut is True
    assert [change.edits for change in changes.files.values()] == [[Edit(2, 1, 2, 2)]]


def test_a_hunk_that_breaks_off_does_not_swallow_the_next_file() -> None:
    changes = read_diff("--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\ndiff --git a/y b/y\n@@ -1 +1 @@\n-a\n+b\n")
    assert (list(changes.files), changes.is_cut) == (["x", "y"], True)


@for_each(
    ("printed", "path"),
    [
        ("src/a.py", "src/a.py"),
        ('"src/\\303\\244.py"', "src/ä.py"),
        ('"a\\tb\\"c"', 'a\tb"c'),
        ("with blank.py\t", "with blank.py"),
    ],
)
def test_a_path_is_read_as_git_prints_it(printed: str, path: str) -> None:
    assert unquoted_path(printed) == path


@for_each("text", ["", "no diff", "@@ -1 +1 @@\n-a\n+b", "\n\n", "+++ b/x\n"])
def test_what_is_no_diff_has_no_files(text: str) -> None:
    assert read_diff(text).files == {}


@given(st.text(alphabet='-+@ ab/\n,012\\"d'))
def test_no_text_breaks_the_reader(text: str) -> None:
    changes = read_diff(f"--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n{text}")
    assert all(edit.removed or edit.added for file in changes.files.values() for edit in file.edits)


def test_a_diff_of_the_greatest_size_is_read_in_linear_time() -> None:
    pieces = ["@@ -1,9 +1,9 @@\n", "-a\n", "diff --git a/x b/y\n", " b/", '"\\303', "--- a\n"]
    texts = [piece * (1024 * 1024 // len(piece)) for piece in pieces]
    texts.append("@@ -1,999999 +1,999999 @@\n" + " same\n-a\n+b\n" * 80_000)
    for text in texts:
        with linear_time():
            read_diff(f"--- a/x\n+++ b/x\n{text}")
