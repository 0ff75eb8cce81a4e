"""The soft match, which is only a sign (SIL-8), and whether two findings raise the same concern (SIL-9)."""

import pytest

from disputes.protocol.silence.matching import Concern, Haystack, same_concern
from tests.cases import for_each

TITLE = "Upload limits undefined for guest accounts"  # five keywords


@for_each(
    ("document", "matches"),
    [
        ("The upload limits of guests are a table.", True),  # three of them
        ("The upload limits are a table.", False),  # two
        ("Nothing.", False),
        ("", False),
        ("```\nupload limits of guests\n```", False),  # ID-3
        ("> upload limits of guests", False),
    ],
)
def test_half_of_the_words_match(document: str, matches: bool) -> None:
    found = Haystack(document).match(TITLE, "", "")

    assert (found is not None) is matches
    if found:
        assert found.overlap == pytest.approx(3 / 5)


def test_how_many_words_match_is_a_setting() -> None:
    assert Haystack("The upload limits.").match(TITLE, "", "", minimum=0.4)


def test_a_phrase_that_the_finding_quotes_matches() -> None:
    text = 'It says "no more than a few" and leaves it there.'

    assert Haystack("No more   than **a few**: that is three.").match("Vague", text, "") is not None
    assert Haystack("Three.").match("Vague", text, "") is None


def test_the_place_of_the_finding_matches() -> None:
    assert Haystack("In Section 3.2, Limits there is a table.").match("Vague", "", "section 3.2, limits")


@for_each(("title", "text", "location"), [("", "", ""), ("", '""', " "), ("of the", "", "a")])
def test_nothing_matches_nothing(title: str, text: str, location: str) -> None:
    """An empty place or phrase is in every text."""
    assert Haystack("Some text of the document.").match(title, text, location) is None


def test_what_stood_there_before_does_not_match() -> None:
    text = "The upload limits of guests are vague."

    assert Haystack(text, previous=text).match(TITLE, "", "") is None
    assert Haystack(f"{text}\n\nGuests have upload limits.", previous=text).match(TITLE, "", "") is not None


# --- The same concern -------------------------------------------------------------------------------------

NEW = Concern("ISSUE-R3-002", "Upload limits undefined", "GAP-FLOW-001")


@for_each(
    ("earlier", "same"),
    [
        (Concern("ISSUE-R3-002", "Colours"), True),  # the id carried over
        (Concern("ISSUE-R2-001", "Undefined limits of uploads", "GAP-FLOW-001"), True),
        (Concern("ISSUE-R2-001", "Undefined limits of uploads", "GAP-FLOW-002"), False),  # another gap
        (Concern("ISSUE-R2-001", "Upload colours", "GAP-FLOW-001"), False),  # one word of three
        (Concern("", "", "GAP-FLOW-001"), False),
    ],
)
def test_a_concern_comes_again_by_id_or_by_words_on_the_same_gap(earlier: Concern, same: bool) -> None:
    assert same_concern(NEW, earlier) is same


def test_a_code_of_the_reviewers_own_is_no_identity() -> None:
    """ID-2."""
    assert not same_concern(Concern("H1", "Upload limits"), Concern("H1", "Colours of buttons"))
    assert same_concern(Concern("H1", "Upload limits"), Concern("H1", "Limits of uploads"))
