"""Why a task does not come to an end: the classes, and when a human must look (STK-1 to STK-7)."""

from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.completion.stuck import (
    SILENT,
    Step,
    Stuck,
    Turn,
    Whose,
    cannot_do,
    diagnose,
    is_follow_up,
    is_security,
    needs_human,
    repeating_rounds,
    returns_to,
    undoes,
)
from disputes.protocol.text.diffs import Changes, read_diff
from tests.cases import for_each
from tests.own_time import linear_time

DECLINED, ADDRESSED, DEFERRED = "declined", "addressed", "deferred"


def turn(round_: int, answer: str = "", *, mandatory: bool = True, **fields: object) -> Turn:
    return Turn(round_, mandatory, answer, **fields)  # type: ignore[arg-type]


def classes(*turns: Turn, asked: bool = False) -> tuple[Stuck, Step] | None:
    found = diagnose(turns, asked=asked)
    return (found.kind, found.step) if found else None


# --- True dispute -----------------------------------------------------------------------------------------


def test_a_mandatory_finding_that_is_declined_is_a_dispute_at_once() -> None:
    """DIS-1"""
    assert classes(turn(1, DECLINED)) == (Stuck.TRUE_DISPUTE, Step.CONFLICT)


def test_an_optional_finding_that_is_declined_is_none_yet() -> None:
    assert classes(turn(1, DECLINED, mandatory=False)) is None
    assert classes(turn(1, DECLINED, mandatory=False), turn(2, mandatory=False)) is None


def test_an_optional_finding_that_comes_back_as_mandatory_after_it_was_declined_is_one() -> None:
    found = diagnose([turn(1, DECLINED, mandatory=False), turn(2)])
    assert found is not None
    assert (found.kind, found.step, found.rounds) == (Stuck.TRUE_DISPUTE, Step.CONFLICT, (1, 2))


def test_an_optional_finding_that_comes_back_as_mandatory_undeclined_is_none() -> None:
    assert classes(turn(1, ADDRESSED, mandatory=False), turn(2)) is None


# --- Silent non-compliance --------------------------------------------------------------------------------


def test_silence_at_an_untouched_place_is_asked_about_once() -> None:
    """One re-prompt that demands an answer per finding"""
    assert classes(turn(1, SILENT, touched=False), turn(2)) == (Stuck.SILENCE, Step.ASK)


def test_silence_after_the_question_is_a_conflict() -> None:
    assert classes(turn(1, SILENT, touched=False), turn(2), asked=True) == (Stuck.SILENCE, Step.CONFLICT)


@for_each(
    "before",
    [
        turn(1, SILENT, touched=True),  # the place changed: it was worked on
        turn(1, SILENT, touched=None),  # nobody can tell
        turn(1, ADDRESSED, touched=False),
        turn(1, "", touched=False),  # no answer was due
    ],
)
def test_no_silence_without_both_a_missing_answer_and_an_untouched_place(before: Turn) -> None:
    assert classes(before, turn(2)) is None


def test_a_finding_raised_once_is_not_stuck() -> None:
    assert classes(turn(1, SILENT, touched=False)) is None
    assert classes() is None


# --- Oscillation ------------------------------------------------------------------------------------------


def test_a_place_that_comes_back_to_an_earlier_content_is_a_conflict_that_shows_it() -> None:
    """A-B-A"""
    found = diagnose([turn(1, content="a"), turn(2, content="b"), turn(3, content="a")])
    assert found is not None
    assert (found.kind, found.step, found.rounds) == (Stuck.OSCILLATION, Step.CONFLICT, (1, 2, 3))
    assert found.line("ISSUE-R1-001") == (
        "ISSUE-R1-001: the place is back at what it was in round 1, since round 2. A human's turn: rule."
    )


@for_each(
    ("contents", "rounds"),
    [
        ("", None),
        ("a", None),
        ("aa", None),
        ("ab", None),
        ("aab", None),
        ("abb", None),
        ("abc", None),
        ("aba", (1, 2, 3)),
        ("abca", (1, 2, 4)),
        ("abab", (2, 3, 4)),
        ("aabba", (2, 3, 5)),
        ("abaa", None),  # it came back before, and rests since
    ],
)
def test_what_came_back_is_found(contents: str, rounds: tuple[int, int, int] | None) -> None:
    assert returns_to(list(enumerate(contents, start=1))) == rounds


def test_an_unknown_content_is_no_return() -> None:
    turns = [turn(1, content="a"), turn(2, content=""), turn(3, content="a")]
    assert diagnose(turns) is None
    assert diagnose([turn(1), turn(2, content="b"), turn(3)]) is None


@for_each(
    ("earlier", "request_"),
    [
        ("Add a cache for the rates.", "Remove the cache for the rates."),
        ("Extract the loop into a helper function.", "Inline the helper function of the loop."),
        ("Lower the timeout of calls to 5 s.", "Raise the timeout of calls to 30 s."),
        ("Use a lock around the counter.", "Avoid the lock around the counter."),
        ("Rename calls to requests.", "Revert the rename of calls to requests."),
        ("Sort the rows by name.", "Restore the previous order of the rows by name."),
    ],
)
def test_a_reviewer_may_take_back_its_own_request(earlier: str, request_: str) -> None:
    assert undoes(request_, earlier) is True


@for_each(
    ("earlier", "request_"),
    [
        ("Add a cache for the rates.", "Add a test for the cache of the rates."),
        ("Add a cache for the rates.", "Remove the dead code in the parser."),
        ("Check the amount.", "Roll back the transaction when the insert fails."),
        ("Roll back the transaction on errors.", "The transaction is not rolled back on errors."),
        ("Add a cache for the rates.", "Add the cache for the rates, and remove nothing."),
        ("", "Remove it."),
        ("Remove it.", ""),
    ],
)
def test_a_request_on_another_subject_takes_nothing_back(earlier: str, request_: str) -> None:
    assert undoes(request_, earlier) is False


def test_taking_back_a_request_that_was_carried_out_is_a_conflict() -> None:
    add = turn(1, ADDRESSED, touched=True, request="Add a cache for the rates.")
    found = diagnose([add, turn(2, request="Remove the cache for the rates.")])
    assert found is not None
    assert (found.kind, found.rounds) == (Stuck.OSCILLATION, (1, 2))


def test_changing_a_request_that_nobody_carried_out_is_none() -> None:
    add = turn(1, ADDRESSED, touched=False, request="Add a cache for the rates.")
    assert diagnose([add, turn(2, request="Remove the cache for the rates.")]) is None


# --- Goalposts --------------------------------------------------------------------------------------------

CHANGES = read_diff("--- a/src/a.py\n+++ b/src/a.py\n@@ -10,2 +10,3 @@\n one\n+one and a half\n two\n")


def follow_up(
    location: str = "src/a.py:40", *, is_new: bool = True, severity: str | None = "high",
    text: str = "Unclear name", changes: Changes | None = CHANGES,
) -> bool:  # fmt: skip
    return is_follow_up(
        is_new=is_new, severity=severity, text=text, location=location, since_last_review=changes
    )


@for_each(
    ("location", "expected"),
    [
        ("src/a.py:40", True),
        ("src/a.py:11", False),  # the line that came in
        ("src/a.py:14", False),  # beside it
        ("src/a.py:15", True),
        ("src/a.py:5-20", False),  # around it
        ("src/b.py:3", True),  # a file that nobody touched
        ("src/b.py", True),
        ("src/a.py", False),  # somewhere in a file that changed
        ("Section 3", False),
        ("", False),
    ],
)
def test_a_new_finding_on_lines_unchanged_since_the_last_review_is_a_follow_up(
    location: str, expected: bool
) -> None:
    assert follow_up(location) is expected


@for_each(
    "fields",
    [
        {"is_new": False},
        {"severity": "critical"},
        {"text": "SQL injection in the filter"},
        {"changes": None},  # the first review
        {"changes": read_diff("", is_cut=True)},  # what changed is not known
    ],
)
def test_some_findings_block_wherever_they_are(fields: dict[str, object]) -> None:
    """Unless CRITICAL or security"""
    assert follow_up("src/b.py:40") is True
    assert follow_up("src/b.py:40", **fields) is False  # type: ignore[arg-type]


@for_each("severity", ["high", "medium", "low", None])
def test_every_other_severity_may_become_a_follow_up(severity: str | None) -> None:
    assert follow_up(severity=severity) is True


def test_a_file_that_was_only_renamed_is_unchanged() -> None:
    changes = read_diff("diff --git a/x.py b/y.py\nrename from x.py\nrename to y.py\n")
    assert follow_up("y.py:3", changes=changes) is True


@for_each(
    "text",
    ["Insecure default", "vulnerability", "Passwords in the log", "path traversal", "CSRF", "CVE-2026-1",
     "API key in the URL", "missing authorization", "unsanitised HTML"],
)  # fmt: skip
def test_security_has_many_words(text: str) -> None:
    assert is_security(text) is True


@for_each("text", ["The author is missing", "Rename the key", "A source of noise", "slow"])
def test_other_words_are_no_security(text: str) -> None:
    assert is_security(text) is False


# --- Cannot do --------------------------------------------------------------------------------------------


@for_each(
    "text",
    [
        "I cannot reach the registry: no network access.",
        "We do not have credentials for the staging account.",
        "I don’t have the tool.",
        "We need access to the billing repository first.",
        "Agreed, but I lack information on the tariff.",
        "No access to the device.",
        "BLOCKED_NEEDS_INPUT: GAP-FLOW-001",
        "I agree, but I am unable to run it without a licence",
    ],
)
def test_a_coder_may_say_that_it_lacks_what_it_takes(text: str) -> None:
    assert cannot_do(text) is True


@for_each(
    "text",
    [
        "",
        "Added a check for missing credentials.",
        "The tool cannot parse the token.",
        "I cannot see why this would help.",
        "We need a lock here.",
        "Access is checked twice.",
    ],
)
def test_talk_of_access_is_not_a_lack_of_it(text: str) -> None:
    assert cannot_do(text) is False


def test_what_the_coder_cannot_do_asks_for_help() -> None:
    """No A-D"""
    found = diagnose([turn(1, DEFERRED, answer_text="I have no access to the device.")])
    assert found is not None
    assert (found.kind, found.step, found.whose) == (Stuck.CANNOT_DO, Step.HELP, Whose.HELP)


def test_a_coder_that_disagrees_is_in_a_dispute_whatever_it_lacks() -> None:
    """The coder agrees, but lacks access"""
    lacks = turn(1, DECLINED, answer_text="I have no access to the device, and need none.")
    assert classes(lacks) == (Stuck.TRUE_DISPUTE, Step.CONFLICT)


# --- Rounds that repeat -----------------------------------------------------------------------------------


@for_each(
    ("rounds", "count"),
    [
        ([], 0),
        ([{1}], 1),
        ([{1}, {1}], 2),
        ([{1}, {1, 2}, {2}], 3),
        ([{1}, {2}, {3}], 1),  # always new ones
        ([{1}, {2}, {1}], 2),
        ([{1}, {1}, {1}, {2}], 1),
        ([{1}, {2}, {2}, {2}], 3),
        ([{1}, set()], 1),
    ],
)
def test_rejections_in_a_row_that_repeat_findings_are_counted(rounds: list[set[int]], count: int) -> None:
    assert repeating_rounds(rounds) == count


def test_findings_that_repeat_over_three_rounds_go_to_a_human() -> None:
    """The setting rounds_to_human"""
    assert needs_human([{1}, {1}], 3) is False
    assert needs_human([{1}, {1}, {1}], 3) is True
    assert needs_human([{1}, {2}, {3}, {4}], 3) is False


def test_one_rejection_alone_never_goes_to_a_human() -> None:
    assert needs_human([{1}], 1) is False


# --- All of it --------------------------------------------------------------------------------------------


def test_every_class_says_whose_turn_it_is() -> None:
    found = [
        diagnose([turn(1, DECLINED)]),
        diagnose([turn(1, SILENT, touched=False), turn(2)]),
        diagnose([turn(1, "", answer_text="I have no access.")]),
    ]
    lines = [each.line("demo-1") for each in found if each]
    assert [line.partition(". ")[2] for line in lines] == [
        "A human's turn: rule.", "The coder's turn.", "A human's turn: lend a hand.",
    ]  # fmt: skip
    assert all(", since round 1. " in line for line in lines)


@given(st.text(alphabet=" iweadoncks'nthv.;\n"))
def test_no_text_breaks_the_words(text: str) -> None:
    assert {cannot_do(text), is_security(text), undoes(text, text)} <= {True, False}


def test_long_texts_are_read_in_no_time() -> None:
    for piece in ("i ", "i cannot ", "we do not have ", "roll ", "back to the ", "path ", "api_", "a" * 99):
        text = piece * (256 * 1024 // len(piece))
        with linear_time():
            cannot_do(text)
            is_security(text)
            undoes(text, text)
