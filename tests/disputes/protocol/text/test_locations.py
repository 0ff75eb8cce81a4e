"""Where a finding points: what a location names, and whether two locations mean the same place."""

from disputes.protocol.text.locations import NEAR, Place, read_place, same_file, same_place
from tests.cases import for_each
from tests.own_time import linear_time


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@for_each(
    ("location", "path", "first", "last", "section"),
    [
        ("src/a.py:10", "src/a.py", 10, 10, ""),
        ("src/a.py:10-20", "src/a.py", 10, 20, ""),
        ("`src/a.py:10–20`", "src/a.py", 10, 20, ""),
        ("./src/a.py", "src/a.py", None, None, ""),
        ("a.py, line 7", "a.py", 7, 7, ""),
        ("a.py lines 7 to 9", "a.py", 7, 9, ""),
        ("a.py#L7-L9", "a.py", 7, 9, ""),
        ("docs/spec.md, Section 3.2", "docs/spec.md", None, None, "3.2"),
        ("docs/spec.md#back-off", "docs/spec.md", None, None, "back off"),
        ("**docs/spec.md** (Retries, line 12)", "docs/spec.md", 12, 12, "retries"),
        ("src\\win\\a.py:3", "src/win/a.py", 3, 3, ""),
        ("Section 4.1: Retry semantics", "", None, None, "4.1 retry semantics"),
        ("§4.1", "", None, None, "4.1"),
        ("Lines 40-44", "", 40, 44, ""),
        ("src/calls.py, function retry()", "src/calls.py", None, None, "retry"),
        ("Makefile", "", None, None, "makefile"),
        ("messages.properties:3", "messages.properties", 3, 3, ""),
        ("`Makefile:3`", "Makefile", 3, 3, ""),
        ("`app/[id]/page.tsx:12-14`, function save", "app/[id]/page.tsx", 12, 14, "save"),
        ("./app/(shop)/$id.tsx:12", "app/(shop)/$id.tsx", 12, 12, ""),
        ("**`app/[id]/page.tsx`**", "app/[id]/page.tsx", None, None, ""),
        ("`über uns/ü ber.md:2`", "über uns/ü ber.md", 2, 2, ""),
        ("`.gitmodules#L2-L4`", ".gitmodules", 2, 4, ""),
        ("nfd-e\u0301.md:2:7", "nfd-e\u0301.md", 2, 2, ""),
        ("https://example.org/a b:80", "", 80, 80, "https example org b"),
        ("3.2:4, “Retry”/“Timeout”", "", 4, 4, "3.2 retry timeout"),
        ("", "", None, None, ""),
    ],
)
def test_a_location_names_a_place(
    location: str, path: str, first: int | None, last: int | None, section: str
) -> None:
    assert read_place(location) == Place(path, first, last, words(section))


def test_lines_that_run_backwards_are_one_line() -> None:
    assert read_place("a.py:20-10") == Place("a.py", 20, 20)


def test_a_number_of_a_section_is_no_file() -> None:
    assert read_place("Section 3.2").path == ""


@for_each(
    ("one", "other", "same"),
    [
        ("src/a.py", "src/a.py", True),
        ("a.py", "src/a.py", True),
        ("./src/a.py", "app/src/a.py", True),
        ("ba.py", "src/a.py", False),
        ("src/a.py", "lib/a.py", False),
        ("", "a.py", False),
    ],
)
def test_a_path_may_be_the_end_of_another(one: str, other: str, same: bool) -> None:
    assert same_file(one, other) is same
    assert same_file(other, one) is same


@for_each(
    ("one", "other", "same"),
    [
        ("a.py:10", "a.py:10", True),
        ("a.py:10", f"a.py:{10 + NEAR}", True),
        ("a.py:10", f"a.py:{11 + NEAR}", False),
        ("a.py:10-30", "a.py:38", True),  # near the end of the range
        ("a.py:10", "b.py:10", False),
        ("a.py:10", "src/a.py:12", True),
        ("a.py:10", "a.py", None),  # the same file; where in it is not said
        ("a.py:10", "Section 3", None),
        ("a.py, function retry, line 10", "a.py, retry(), line 400", True),  # moved as a whole
        ("docs/s.md, Section 3.2", "docs/s.md, Section 3.2 Retries", True),
        ("docs/s.md, Section 3", "docs/s.md, Section 3.2", False),
        ("Retries", "Timeouts", False),
        ("Retries", "Section: Retries", True),
        ("", "", None),
        ("", "a.py:10", None),
    ],
)
def test_two_places_are_the_same_or_not_or_nobody_can_tell(one: str, other: str, same: bool | None) -> None:
    """Same file and place"""
    assert same_place(read_place(one), read_place(other)) is same
    assert same_place(read_place(other), read_place(one)) is same


def test_a_long_location_is_read_in_no_time() -> None:
    for piece in ("a/", "a.", "lines 1-", "#a", "a.b/", "-", "1."):
        with linear_time():
            read_place(piece * (256 * 1024 // len(piece)))
