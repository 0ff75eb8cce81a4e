"""Words as rules compare them: their stems, what is no keyword, and how alike two texts are."""

from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.text.keywords import STOP_WORDS, keywords, likeness, overlap, stem, tokens
from tests.cases import for_each


@for_each(
    "words",
    [
        "retry retries retried retrying",
        "validate validates validated validating",
        "stop stops stopped stopping",
        "limit limits limited limiting",
        "cache caches cached caching",
        "process processes processed processing",
        "add adds added adding",
        "call calls called calling",
    ],
)
def test_all_forms_of_a_word_have_one_stem(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1


@for_each("word", ["class", "string", "thing", "bed", "bus", "need", "red"])
def test_what_only_looks_like_an_ending_stays(word: str) -> None:
    assert stem(word) == word


def test_different_words_keep_different_stems() -> None:
    words = ["limit", "limitation", "retry", "return", "default", "fault", "test", "text", "complex"]
    assert len({stem(word) for word in words}) == len(words)


def test_words_are_parted_by_every_mark() -> None:
    assert tokens("Retry_Count: a.py, 3×") == ["retry", "count", "a", "py", "3"]


def test_words_of_every_text_and_single_letters_are_no_keywords() -> None:
    assert keywords("This is what it should do: x, y and 7 retries") == {"7", "retry"}


def test_stop_words_are_in_small_letters() -> None:
    assert all(word == word.lower() for word in STOP_WORDS)


def test_an_overlap_is_the_share_of_what_is_wanted() -> None:
    assert overlap({"a", "b", "c", "d"}, {"a", "x"}) == 0.25


def test_nothing_wanted_is_no_overlap() -> None:
    """An empty set of keywords must not divide by zero"""
    assert overlap(set(), {"a"}) is None


def test_nothing_is_like_nothing() -> None:
    assert likeness(set(), set()) == 0


@given(st.text(), st.text())
def test_likeness_has_no_direction_and_stays_between_0_and_1(one: str, other: str) -> None:
    first, second = keywords(one), keywords(other)
    assert 0 <= likeness(first, second) == likeness(second, first) <= 1


@given(st.text())
def test_a_text_is_wholly_like_itself(text: str) -> None:
    words = keywords(text)
    assert likeness(words, words) == bool(words)
