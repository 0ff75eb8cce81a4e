"""Was the ruling followed? (DEC-13)"""

from disputes.protocol.rulings.compliance import (
    Compliance,
    Followed,
    Order,
    Seen,
    judge,
    place_changed,
    section_changed,
)
from disputes.protocol.text.diffs import read_diff
from disputes.protocol.text.locations import paths_in, read_place
from tests.cases import for_each

WAITING, APPLIED, NOT_HONOURED, CANNOT_TELL, _ = Followed
DIFF = """\
diff --git a/src/calls.py b/src/calls.py
--- a/src/calls.py
+++ b/src/calls.py
@@ -30 +30,2 @@
-    call()
+    wait()
+    call()
diff --git a/docs/retries.md b/docs/retries.md
new file mode 100644
--- /dev/null
+++ b/docs/retries.md
@@ -0,0 +1 @@
+# Retries
diff --git a/old.py b/old.py
deleted file mode 100644
--- a/old.py
+++ /dev/null
@@ -1 +0,0 @@
-pass
diff --git a/a.py b/b.py
similarity index 100%
rename from a.py
rename to b.py
diff --git a/logo.png b/logo.png
Binary files a/logo.png and b/logo.png differ
"""
CHANGES = read_diff(DIFF)


def change(location: str = "src/calls.py:30", text: str = "") -> Order:
    return Order(expects_change=True, location=location, text=text)


def reviewed(**seen: object) -> Seen:
    return Seen(**{"reviewed": True, "changes": CHANGES, **seen})  # type: ignore[arg-type]


def state(order: Order, seen: Seen) -> Followed:
    return judge(order, seen).state


# --- The table --------------------------------------------------------------------------------------------


@for_each("expects_change", [True, False])
def test_a_ruling_waits_until_what_came_after_it_was_reviewed(expects_change: bool) -> None:
    """DEC-13"""
    assert state(Order(expects_change, "src/calls.py:30"), Seen(reviewed=False)) is WAITING


def test_a_change_at_the_place_that_is_not_raised_again_is_applied() -> None:
    """DEC-13"""
    assert state(change(), reviewed()) is APPLIED


def test_raised_again_is_not_honoured_even_if_the_place_changed() -> None:
    """DEC-13: a new conflict names the old one"""
    found = judge(change(), reviewed(raised_again=True))
    assert (found.state, found.reopens) == (NOT_HONOURED, True)


def test_a_place_that_nobody_touched_is_not_honoured() -> None:
    """DEC-13"""
    found = judge(change("src/other.py:30"), reviewed())
    assert (found.state, found.reopens) == (NOT_HONOURED, True)


def test_a_ruling_that_leaves_the_code_needs_no_change() -> None:
    """DEC-14: a ruling in own words that says "leave it" would else be broken for ever"""
    order = Order(expects_change=False, location="src/other.py:30")
    assert judge(order, reviewed()) == Compliance(APPLIED, "The reviewer did not raise it again.")


def test_what_was_settled_for_the_coder_and_is_raised_again_is_dropped() -> None:
    """DEC-13: with a note to the reviewer"""
    found = judge(Order(expects_change=False), reviewed(raised_again=True))
    assert (found.state, found.reopens) == (APPLIED, False)


@for_each("location", ["", "Section 3.2", "line 12"])
def test_without_a_file_nobody_can_tell(location: str) -> None:
    """DEC-13"""
    assert state(change(location), reviewed()) is CANNOT_TELL


def test_without_a_diff_nobody_can_tell() -> None:
    assert state(change(), Seen(reviewed=True)) is CANNOT_TELL


def test_every_state_says_why() -> None:
    seen = [Seen(reviewed=False), reviewed(), reviewed(raised_again=True), Seen(reviewed=True)]
    reasons = {judge(change(), each).why for each in seen}
    assert len(reasons) == 4
    assert all(reason.endswith(".") for reason in reasons)


# --- The place --------------------------------------------------------------------------------------------


@for_each(
    ("location", "changed"),
    [
        ("src/calls.py:30", True),
        ("src/calls.py:28-29", None),  # near it is not there
        ("src/calls.py:25-30", True),
        ("src/calls.py", True),
        ("calls.py:30", True),
        ("src/calls.py:90", None),  # elsewhere in the file: it may be done there
        ("src/calls.py, Section 3", None),
        ("src/other.py:1", False),
        ("docs/retries.md", True),
        ("old.py:1", True),
        ("a.py:1", False),  # only renamed
        ("logo.png", True),
    ],
)
def test_a_place_changed_or_not_or_nobody_can_tell(location: str, changed: bool | None) -> None:
    assert place_changed(read_place(location), CHANGES) is changed


def test_in_a_cut_diff_a_missing_file_may_have_changed() -> None:
    cut = read_diff(DIFF, is_cut=True)
    assert place_changed(read_place("src/other.py:1"), cut) is None
    assert place_changed(read_place("src/calls.py:30"), cut) is True


# --- What the ruling names --------------------------------------------------------------------------------


def test_a_file_that_the_ruling_names_and_that_came_in_is_applied() -> None:
    """DEC-13: the place changed, or the named artifact exists"""
    assert state(change("src/other.py:1", "Describe it in docs/retries.md."), reviewed()) is APPLIED


def test_a_file_that_the_ruling_names_is_no_proof_if_it_was_there_or_was_not_asked_for() -> None:
    for text in (
        "Use `src/backoff.py`.",  # it did not come or change
        "Leave docs/retries.md as it is.", "Write it here instead of in docs/retries.md.",
        "Back off as docs/retries.md says.", "Don't write to docs/retries.md!",
    ):  # fmt: skip
        assert state(change("src/other.py:1", text), reviewed()) is NOT_HONOURED, text
    forbidden = change("src/calls.py:90", "Never call `wait()` here.")
    assert state(forbidden, reviewed()) is CANNOT_TELL
    assert state(change("src/calls.py:90", "Call `wait()` first."), reviewed()) is APPLIED


def test_blanks_change_nothing() -> None:
    for old, new, found in [
        ("call(a,b)", "call(a,b)  ", NOT_HONOURED), ("a = 1", "a  =  1", NOT_HONOURED),
        ("    call()", "call()", APPLIED),  # it is no longer in the block above it
    ]:  # fmt: skip
        text = f"--- a/src/calls.py\n+++ b/src/calls.py\n@@ -30 +30 @@\n-{old}\n+{new}\n"
        assert state(change(), reviewed(changes=read_diff(text))) is found, old


def test_naming_the_disputed_file_is_no_proof_that_it_changed() -> None:
    order = change("src/other.py:1", "Change src/other.py as asked.")
    assert state(order, reviewed()) is NOT_HONOURED


def test_a_file_that_was_deleted_is_not_there() -> None:
    assert state(change("src/other.py:1", "Put it into old.py."), reviewed()) is NOT_HONOURED


def test_the_files_in_a_text_are_found_once_each() -> None:
    text = "See ./docs/a.md, `docs/a.md` and src/b.py:3, e.g. version 1.2."
    assert paths_in(text) == ["docs/a.md", "src/b.py"]


# --- Documents --------------------------------------------------------------------------------------------

BEFORE = "# Spec\n\n## 3.2 Retries\n\nThree tries.\n\n### Pause\n\nNone.\n\n## 3.3 Timeouts\n\nTen seconds.\n"


@for_each(
    ("after", "changed"),
    [
        (BEFORE, False),
        (BEFORE.replace("Three tries.", "Three\n  tries."), False),  # only blanks
        (BEFORE.replace("Three", "Five"), True),
        (BEFORE.replace("None.", "1s, 2s, 4s."), True),  # below a heading of its own
        (BEFORE.replace("Ten", "Nine"), False),
        ("# Spec\n", True),  # gone
    ],
)
def test_a_section_of_a_document_changed_or_not(after: str, changed: bool) -> None:
    assert section_changed(BEFORE, after, "Section 3.2") is changed


def test_a_section_that_is_nowhere_tells_nothing() -> None:
    assert section_changed(BEFORE, BEFORE, "Section 9") is None
    assert section_changed(BEFORE, BEFORE, "") is None


def test_a_heading_in_a_fence_is_no_section() -> None:
    """ID-3"""
    text = "```\n## 3.2 Retries\nold\n```\n"
    assert section_changed(text, text.replace("old", "new"), "Section 3.2") is None


@for_each(("changed", "expected"), [(True, APPLIED), (False, NOT_HONOURED), (None, CANNOT_TELL)])
def test_a_section_decides_where_lines_do_not(changed: bool | None, expected: Followed) -> None:
    seen = Seen(reviewed=True, section_changed=changed)
    assert state(change("Section 3.2"), seen) is expected
