"""Whether anything of substance was done: the table of H4, and which section a location names."""

import pytest

from disputes.protocol.silence.substance import Change, Comparison, Outline, judged
from disputes.protocol.text.keywords import keywords
from tests.cases import for_each
from tests.disputes.protocol.text.test_documents import QUADRATIC, growth

IMPACT = "Large uploads exhaust memory and the server crashes"
SPEC = """\
# Engineer Round 2

## Gap Resolution: GAP-FLOW-001

### Limits

There are limits of uploads.

```
## Not a heading
limit = "none at all"
```

### 2.1 Retry Strategy

Three times.

## Gap Resolution: GAP-FLOW-002

### Limits

There are limits of rounds.
"""


def change(location: str, new: str, impact: str = IMPACT, old: str = SPEC) -> Change:
    return Comparison(old, new).change(location, impact)


# --- The table --------------------------------------------------------------------------------------------


def test_a_section_that_is_missing_is_unknown() -> None:
    assert change("Retry Strategy", SPEC.replace("### 2.1 Retry Strategy", "")).substance == "unknown"


def test_an_unchanged_section_is_no_change() -> None:
    found = change("Retry Strategy", SPEC.replace("limits of rounds", "other limits"))

    assert (found.substance, found.section, found.overlap, found.flags) == (
        "no", "2.1 Retry Strategy", 0.0, True,
    )  # fmt: skip


@for_each("new", ["  Three   times.\t", "\n\nThree times.\n\n\n", "Three\u00a0times."])
def test_blanks_make_no_change(new: str) -> None:
    assert change("Retry Strategy", SPEC.replace("Three times.", new)).substance == "no"


@for_each(
    ("words", "share", "expected"),
    [(2, 0.2, "partial"), (3, 0.3, "yes"), (0, 0.0, "partial"), (10, 1.0, "yes")],
)
def test_the_share_of_the_impacts_keywords_in_what_changed_decides(
    words: int, share: float, expected: str
) -> None:
    """Ten keywords, two or three of them in the change."""
    impact = frozenset(f"word{number}" for number in range(10))
    changed = frozenset(f"word{number}" for number in range(words)) | {"other"}
    found = judged(impact, changed, "Limits")

    assert (found.substance, found.overlap) == (expected, pytest.approx(share))
    assert found.flags is (expected == "partial")


def test_the_share_that_is_enough_is_a_setting() -> None:
    impact, changed = frozenset("abcd"), frozenset("a")

    assert judged(impact, changed, "", 0.2).substance == "yes"
    assert judged(impact, changed, "", 0.3).substance == "partial"


def test_removed_words_are_a_change_as_added_ones_are() -> None:
    old = SPEC.replace("There are limits of uploads.", "Large uploads exhaust memory.")

    assert change("Limits", SPEC, old=old).substance == "yes"


@for_each(
    ("location", "impact"),
    [("", IMPACT), ("   ", IMPACT), ("Nowhere at all", IMPACT), ("Limits", ""), ("Limits", "and the of")],
)
def test_without_a_place_or_an_impact_it_is_not_applicable(location: str, impact: str) -> None:
    found = change(location, SPEC.replace("limits of uploads", "other limits"), impact)

    assert (found.substance, found.flags, found.overlap) == ("not applicable", False, None)


def test_an_unchanged_section_needs_no_impact() -> None:
    assert change("Retry Strategy", SPEC, impact="").substance == "no"


def test_a_section_belongs_to_its_gap() -> None:
    new = SPEC.replace("limits of rounds", "large uploads that exhaust memory")

    assert change("GAP-FLOW-002 Limits", new).substance == "yes"
    assert change("GAP-FLOW-001 Limits", new).substance == "no"


def test_a_document_about_another_gap_has_not_the_section() -> None:
    new = "## Gap Resolution: GAP-FLOW-009\n\n### Limits\n\nLarge uploads exhaust memory."

    assert change("GAP-FLOW-001 Limits", new).substance == "unknown"


def test_a_heading_may_get_a_remark_or_another_number() -> None:
    new = SPEC.replace("### 2.1 Retry Strategy", "### 3.4 Retry Strategy (Revised)")

    assert change("Retry Strategy", new).substance == "no"


# --- Locations --------------------------------------------------------------------------------------------

PLACES = [
    ("Limits", "Limits"),
    ("the limits section", "Limits"),
    ("Limits table, row 2", "Limits"),
    ("Retry Strategy", "2.1 Retry Strategy"),
    ("Retry", "2.1 Retry Strategy"),
    ("Section 2.1, the method", "2.1 Retry Strategy"),
    ("§2.1", "2.1 Retry Strategy"),
    ("Counting and Retry Strategy", "2.1 Retry Strategy"),
    ("Line 16", "2.1 Retry Strategy"),
    ("lines 16-18", "2.1 Retry Strategy"),
    ("engineer.md:16", "2.1 Retry Strategy"),
    ("line 1", "Engineer Round 2"),
    ('"Three times." in the text', "2.1 Retry Strategy"),
    ('`limit = "none at all"`', "Limits"),
    ("GAP-FLOW-002", "Gap Resolution: GAP-FLOW-002"),
    ("the end of GAP-FLOW-002", "Gap Resolution: GAP-FLOW-002"),
    ("Not a heading", None),  # ID-3
    ("Somewhere else", None),
    ("Section 9.9", None),
    ("", None),
    ("...", None),
]


@for_each(("location", "title"), PLACES)
def test_a_location_names_a_section(location: str, title: str | None) -> None:
    outline = Outline(SPEC)
    found = outline.find(location)

    assert (outline.sections[found].title if found is not None else None) == title


def test_the_line_of_a_location_may_lie_outside() -> None:
    assert Outline("text before\n\n# A").find("line 1") is None
    assert Outline("# A").find("line 99") is None


def test_keywords_are_stems() -> None:
    assert keywords("Uploads exhausted") == keywords("upload exhausting")


@for_each(
    "make",
    [
        lambda n: "# Limits\n" * n,
        lambda n: "".join(f"{'#' * (i % 6 + 1)} Limits {i}\n" for i in range(n)),
        lambda n: "## Limits\n" + "words\n" * n,
        lambda n: "# " + "Limits " * n,
    ],
)
def test_the_work_grows_with_the_length(make: object) -> None:
    def compare(text: str) -> None:
        comparison = Comparison(text, text + "\nmore")
        for location in ("Limits", "line 7", "limits 3", '"words and more"'):
            comparison.change(location, IMPACT)

    assert growth(compare, make, 400) < QUADRATIC / 2  # type: ignore[arg-type]
