"""What a reviewer says about earlier findings (FND-4): no finding is raised by it, and none is lost."""

from disputes.protocol.reviews.review import read_review
from disputes.protocol.reviews.statuses import Status, status_of
from tests.cases import for_each

R, P, U, D, W = Status.RESOLVED, Status.PARTIAL, Status.UNRESOLVED, Status.DEFERRED, Status.WITHDRAWN
ONE = "ISSUE-R1-001"
HEAD = "| Issue | Status |\n|---|---|\n"
YES_NO = "| Issue | Resolved? |\n|---|---|\n"


def prior(text: str) -> list[tuple[str, Status]]:
    return [(each.code, each.status) for each in read_review(text).prior]


@for_each(
    ("words", "status"),
    [
        ("RESOLVED", R), ("**RESOLVED**", R), ("Fixed in v2", R), ("FULLY ADDRESSED", R), ("Closed.", R),
        ("✅ Resolved", R), ("✅", R), ("PARTIALLY_RESOLVED", P), ("Partially addressed, see below", P),
        ("NOT FULLY ADDRESSED", P), ("NOT RESOLVED", U), ("not yet fixed", U), ("Unresolved", U),
        ("STILL OPEN", U),
        ("❌", U), ("Open", U), ("DEFERRED to round 4", D), ("Withdrawn", W),
        ("Fixed timeouts are too short", None),  # a title
        ("ACCEPTED -> RESOLVED is ambiguous", None),  # a transition
        ("mostly done", P), ("in progress", P), ("outstanding", U), ("retracted", W), ("well implemented", R),
        ("ſtill open", U),  # a letter that is another one in capitals
        ("quite resolved", None), ("Resolvers are slow", None), ("", None), ("text", None),
    ],
)  # fmt: skip
def test_the_words_of_a_status_are_understood(words: str, status: Status | None) -> None:
    assert status_of(words) is status


SHAPES = [
    # table cell, bold or not
    (f"{HEAD}| {ONE} | RESOLVED |\n| ISSUE-R1-002 | **FIXED** |", [(ONE, R), ("ISSUE-R1-002", R)]),
    (f"| Issue | Severity | Status |\n|---|---|---|\n| {ONE}: a | HIGH | ADDRESSED |", [(ONE, R)]),
    (f"{HEAD}| H1: the door | RESOLVED |\n| M2 | PARTIAL |", [("H1", R), ("M2", P)]),
    # YES/NO tables
    (f"{YES_NO}| {ONE} | YES |\n| ISSUE-R1-002 | NO |", [(ONE, R), ("ISSUE-R1-002", U)]),
    # a checkbox
    (f"- [x] **{ONE}** - FIXED", [(ONE, R)]),
    (f"- [x] **ADDRESSES {ONE}**: the limit is there now", [(ONE, R)]),
    (f"- [ ] **PARTIAL**: {ONE} (the limit) still needs a test", [(ONE, P)]),
    # a heading with its state, and a line below it
    (f"#### {ONE}: The sum is wrong - RESOLVED\n\n**Status: FULLY ADDRESSED**\n\nWords.", [(ONE, R)]),
    (f"## Previous Issues\n\n### {ONE}: The sum\n\n**Verdict:** RESOLVED. It adds up.", [(ONE, R)]),
    (f"## Round 1 Issue Resolution\n\n#### {ONE}: The sum\n\n**Status:** PARTIALLY ADDRESSED", [(ONE, P)]),
    # a bullet with its state
    ("- **[CRIT-001] No lock**: **PARTIALLY_RESOLVED**", [("CRIT-001", P)]),
    (f"- {ONE}: FIXED", [(ONE, R)]),
    (f"- **{ONE}**: RESOLVED in this round", [(ONE, R)]),
    # the heading of a table says it
    (f"### Additional Issues Addressed\n\n| Issue | Resolution |\n|---|---|\n| {ONE} | Line 3 |", [(ONE, R)]),
]  # fmt: skip


@for_each(("text", "expected"), SHAPES, ids=[text for text, _ in SHAPES])
def test_the_status_of_an_earlier_finding_is_read(text: str, expected: list[tuple[str, Status]]) -> None:
    assert prior(text) == expected


@for_each("text", [text for text, _ in SHAPES])
def test_a_status_raises_nothing(text: str) -> None:
    assert read_review(text).findings == ()


@for_each(
    "text",
    [
        f"- **{ONE}**: The sum is wrong",
        f"### {ONE}: The sum is wrong\n\n**Status:** OPEN",
        f"## Critical Issues\n\n### {ONE}: The sum\n\n## Appendix\n\n{HEAD}| {ONE} | OPEN |",
        f"- **{ONE}**: ACCEPTED -> RESOLVED has no trigger",
        f"- **{ONE}**: Fixed timeouts are too short",
    ],
)
def test_a_finding_that_stands_is_none_of_an_earlier_round(text: str) -> None:
    read = read_review(text)

    assert [found.code for found in read.findings] == [ONE]
    assert read.prior == ()


def test_what_is_not_fixed_stands() -> None:
    # Nothing that fails to be fixed gets lost: it is raised again.
    read = read_review(f"- **{ONE}**: NOT FIXED, the sum is still wrong\n")

    assert [found.code for found in read.findings] == [ONE]
    assert prior(read.text) == [(ONE, U)]


def test_a_verdict_about_an_earlier_finding_is_none_of_the_review() -> None:
    earlier = f"## Previous Issues\n\n### {ONE}: a\n\n**Verdict:** RESOLVED. I accept it."
    text = f"{earlier}\n\n## Verdict: NEEDS_REVISION"

    assert [each.raw for each in read_review(text).verdicts] == ["NEEDS_REVISION"]


@for_each("text", [f"```\n- {ONE}: FIXED\n```", f"> - {ONE}: FIXED"])
def test_an_example_is_no_status(text: str) -> None:
    # ID-3
    assert prior(text) == []


def test_a_native_id_may_come_again_with_another_meaning() -> None:
    # ID-2: L1 of the last round is done, another one is new.
    read = read_review(
        f"### Previous Issues\n\n{HEAD}| L1: old | RESOLVED |\n\n### New Issues\n\n**L1: new**\n"
    )

    assert [(found.code, found.title) for found in read.findings] == [("L1", "new")]
    assert [(each.code, each.status) for each in read.prior] == [("L1", R)]
