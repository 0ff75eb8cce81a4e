"""Words that take an approval back, and words around one that do not (ARB-2)."""

from disputes.protocol.reviews.verdict_words import Verdict, read_verdict
from tests.cases import for_each
from tests.fuzz_lines import DENIALS

A, C, N = Verdict.APPROVED, Verdict.APPROVED_WITH_CONDITIONS, Verdict.NEEDS_REVISION

STANDING = [
    "APPROVED: nothing blocks",
    "APPROVED, no changes requested",
    "APPROVED - not a single issue is left",
    "Approved. No further rounds are needed.",
    "APPROVED (no blocking issues)",
    "APPROVED; not blocking: the naming",
    "Ready to merge? APPROVED",
    "All three issues are fixed, so this is approved",
    "was NEEDS_REVISION, now APPROVED",
    "I approve this.",
    "Approve as is",
    "[x] APPROVED",
    "[x] APPROVED [ ] NEEDS_REVISION",
    "~~NEEDS_REVISION~~ APPROVED",
    "APPROVED <!-- NEEDS_REVISION -->",
]


@for_each("words", STANDING)
def test_an_approval_stands_among_other_words(words: str) -> None:
    assert read_verdict(words) is A


@for_each("words", DENIALS)
def test_an_approval_that_is_taken_back_is_none(words: str) -> None:
    assert read_verdict(words) in {None, N}


@for_each(
    "words",
    [
        "NEEDS_REVISION, will be approved once fixed",
        "NEEDS_REVISION until approved",
        "NEEDS_REVISION; approve after the fix",
        "NEEDS_REVISION ~~APPROVED~~",
        "[ ] APPROVED [x] NEEDS_REVISION",
        "not approved: rejected",
    ],
)
def test_a_rejection_stands_before_an_approval_that_is_awaited(words: str) -> None:
    assert read_verdict(words) is N


@for_each(
    "words",
    ["approve once the tests are green", "APPROVED if the hash is compared", "approved subject to a rename"],
)
def test_an_approval_that_is_bound_to_something_has_conditions(words: str) -> None:
    assert read_verdict(words) is C


@for_each(
    "words",
    ["APPROVED | NEEDS_REVISION", "APPROVED / APPROVED_WITH_CONDITIONS / REJECTED", "reject or approve"],
)
def test_a_choice_that_nobody_made_is_no_verdict(words: str) -> None:
    assert read_verdict(words) is None


@for_each(
    "words",
    [
        "NO \u043a\u0440\u0438\u0442\u0438\u0447\u043d\u044b\u0445 ISSUES FOUND",
        "NO_\u0131ISSUES_FOUND",
        "\u0410APPROVED",
        "approved\u00e9",
    ],
    ids=ascii,
)
def test_nothing_is_read_past_letters_of_other_alphabets(words: str) -> None:
    assert read_verdict(words) is None


@for_each(
    "words",
    ["gepr\u00fcft und f\u00fcr gut befunden: APPROVED", "\u2705 APPROVED \u2013 f\u00fcr heute"],
    ids=ascii,
)
def test_an_approval_stands_beside_words_of_other_languages(words: str) -> None:
    assert read_verdict(words) is A
