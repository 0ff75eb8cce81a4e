"""Is a finding an earlier one, raised again? (ID-2)"""

from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.reviews.identity import Match, Raised, same_finding
from tests.cases import for_each
from tests.own_time import linear_time

RETRY = Raised("Retry without a pause hammers the server", "src/calls.py:11", "ISSUE-R1-001", "ISSUE-R1-001")
TABLE = Raised("Table has no index on owner", "src/rows.py:40", "ISSUE-R1-002", "ISSUE-R1-002")
EARLIER = [TABLE, RETRY]


def match(title: str, location: str = "", code: str = "", text: str = "", **kwargs: float) -> Match | None:
    return same_finding(Raised(title, location, code, text=text), EARLIER, **kwargs)


def index(title: str, location: str = "", code: str = "", text: str = "") -> int | None:
    found = match(title, location, code, text)
    return found.index if found else None


# --- By its code ------------------------------------------------------------------------------------------


@for_each("code", ["ISSUE-R1-001", "issue-r1-001"])
def test_a_code_that_this_program_gave_is_the_same_finding(code: str) -> None:
    """The id where the reviewer repeats it"""
    found = match("Other words", "other/place.c:3", code)
    assert found is not None
    assert (found.index, found.sure, found.by_code) == (1, True, True)


def test_a_code_goes_before_the_place_and_the_words() -> None:
    assert index(TABLE.title, TABLE.location, "ISSUE-R1-001") == 1


def test_a_code_that_nobody_used_decides_nothing() -> None:
    assert index("Other words", "other.py:1", "ISSUE-R1-009") is None
    assert index(RETRY.title, RETRY.location, "ISSUE-R2-001") == 1


@for_each(
    ("title", "location", "sure"),
    [
        ("Hammers the server", "", True),  # the words are alike
        ("Still wrong", "src/calls.py:14", True),  # the same place
        ("Colour of the button", "web/page.css:9", None),  # ID-2: nothing in common
        ("Colour of the button", "", None),
        ("The server is a word in many findings of this and that kind", "", False),  # something in common
    ],
)
def test_a_reviewers_own_code_needs_more_than_itself(title: str, location: str, sure: bool | None) -> None:
    """ID-2: native codes are used again with a new meaning"""
    earlier = Raised(RETRY.title, RETRY.location, "ISSUE-R1-001", "H1")
    found = same_finding(Raised(title, location, "H1"), [TABLE, earlier])
    assert (found and found.sure) == sure


def test_lines_of_no_file_do_not_make_a_code_of_its_own_the_same() -> None:
    """ID-2: in documents `L1` of the next review stands near, and means something else"""
    earlier = Raised("Tab keybinding scope unclear", "Line 196", "ISSUE-R2-006", "L1")
    found = same_finding(Raised("Cancelling while it validates", "Lines 185-189", "L1"), [earlier])
    assert not (found and found.sure)


def test_of_two_findings_printed_with_one_code_the_words_choose() -> None:
    """ID-5: two reviewers of one round both print ISSUE-R1-001"""
    second = Raised("Names are unclear", "src/names.py:4", "ISSUE-R1-002", "ISSUE-R1-001")
    found = same_finding(Raised("Names are unclear", "src/names.py:4", "ISSUE-R1-001"), [RETRY, second])
    assert found is not None
    assert found.index == 1


def test_two_findings_without_a_code_do_not_share_one() -> None:
    assert same_finding(Raised("One thing"), [Raised("Quite another")]) is None


# --- By place and words -----------------------------------------------------------------------------------


@for_each(
    ("title", "location", "expected"),
    [
        ("Retry without a pause hammers the server", "src/calls.py:11", (1, True)),
        ("Retries hammer the server", "src/calls.py:15", (1, True)),  # moved a little, other endings
        ("Retries hammer the server", "calls.py:11", (1, True)),
        ("Retries still come with no delay", "src/calls.py:11", None),  # 0.25 alike
        ("Retries come without rest at all times and days", "src/calls.py:11", (1, False)),
        ("Retry without a pause hammers the server", "src/other.py:11", None),  # another file
        ("Retry without a pause hammers the server", "src/calls.py:400", None),  # another place in it
        ("Retry without a pause hammers the server", "src/calls.py", (1, True)),
        ("Retries hammer the server", "", (1, False)),  # no place: a human must confirm
        ("Retries are slow", "", None),
    ],
)
def test_a_finding_without_its_code_is_known_by_place_and_words(
    title: str, location: str, expected: tuple[int, bool] | None
) -> None:
    """Same file and place and words at least 0.3 alike; below 0.5 it is possibly the same"""
    found = match(title, location)
    assert (found and (found.index, found.sure)) == expected


def test_a_file_is_the_same_however_much_of_its_path_is_named() -> None:
    for location in ("calls.py:12", "./src/calls.py:12", "deep/down/src/calls.py:12", ""):
        assert index(RETRY.title, location) == 1, location
    for location in ("recalls.py:12", "src/calls.pyi:12", "src/calls.py/__init__.py:12", "other/calls.py:12"):
        assert index(RETRY.title, location) is None, location


def test_the_likeness_that_is_needed_is_a_setting() -> None:
    """The setting same_finding_minimum"""
    title = "Retries still come with no delay"
    assert match(title, "src/calls.py:11", minimum=0.3) is None
    assert match(title, "src/calls.py:11", minimum=0.2) is not None


def test_the_text_counts_where_the_title_was_written_anew() -> None:
    old = Raised("Backoff", "a.py:3", text="The loop calls again at once and hammers a dead server.")
    new = Raised(
        "No pause between tries", "a.py:3", text="The loop calls again at once; a dead server is hammered."
    )
    found = same_finding(new, [old])
    assert found is not None
    assert found.sure is True


def test_of_several_the_most_alike_is_taken() -> None:
    earlier = [
        Raised("Names of tests are unclear", "a.py:1"),
        Raised("Names of tests are long", "a.py:1"),
        Raised("Names of tests", "a.py:1"),
    ]
    found = same_finding(Raised("Names of tests are too long", "a.py:1"), earlier)
    assert found is not None
    assert found.index == 1


def test_a_sure_one_goes_before_a_likely_one() -> None:
    nowhere = Raised("Retry without a pause hammers the server")
    there = Raised("Retry hammers the server", "a.py:3")
    found = same_finding(Raised("Retry without a pause hammers the server", "a.py:3"), [nowhere, there])
    assert found == Match(1, found.score if found else 0, sure=True)


def test_a_section_is_a_place() -> None:
    old = Raised("Defaults are missing", "Section 3.2: Retries")
    assert same_finding(Raised("Missing default", "§3.2"), [old]) is not None
    assert same_finding(Raised("Missing default", "§3.3"), [old]) is None


def test_nothing_earlier_matches_nothing() -> None:
    assert same_finding(RETRY, []) is None


@given(st.text(max_size=40), st.text(max_size=20), st.text(max_size=12))
def test_no_finding_breaks_the_comparison(title: str, location: str, code: str) -> None:
    found = match(title, location, code)
    assert found is None or 0 <= found.score <= 1


def test_long_findings_are_compared_in_no_time() -> None:
    long = Raised("word " * 50_000, "a/" * 50_000, "H1", "H1", "other " * 50_000)
    with linear_time():
        same_finding(long, [long] * 20)
