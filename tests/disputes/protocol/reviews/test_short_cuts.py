"""Short cuts of the readers: what they pass over, or read at one look, is what the long way finds."""

from disputes.protocol.reviews.fields import LINE_NUMBER, place
from disputes.protocol.reviews.first_lines.kinds_of_lines import read_start
from disputes.protocol.reviews.first_lines.titles import BOLD_FIELDS
from disputes.protocol.reviews.statuses import STATUS_STARTS, Status, status_of
from disputes.protocol.reviews.verdict_words import (
    ONLY_ALONE,
    STEMS,
    STEMS_ALONE,
    VERDICT_WORDS,
    verdict_alone,
)
from disputes.protocol.text.documents import STATED, Line
from disputes.protocol.text.identifiers import first_gap, gaps_in
from tests.cases import for_each


@for_each("before", ["", "  ", "- ", "    - ", "1. "])
@for_each("behind", ["", " a", " a (HIGH)", "* a", " **b**", " - HIGH", " src/a.py:4"])
def test_a_part_in_bold_is_the_same_as_one_underlined(before: str, behind: str) -> None:
    for label in BOLD_FIELDS:
        for words in (label, label.title(), label.upper()):
            bold, underlined = (
                read_start(Line(1, f"{before}{mark}{words}:{mark}{behind}", STATED)) for mark in ("**", "__")
            )
            assert bold is not None
            assert bold == underlined


@for_each("phrase", sorted(VERDICT_WORDS))
def test_every_verdict_holds_a_stem(phrase: str) -> None:
    assert any(stem in phrase for stem in STEMS_ALONE)
    assert phrase in ONLY_ALONE or any(stem in phrase for stem in STEMS)
    assert verdict_alone(phrase.upper()) is VERDICT_WORDS[phrase]


@for_each(
    ("words", "status"),
    [
        ("mostly done", Status.PARTIAL),
        ("in progress", Status.PARTIAL),
        ("outstanding", Status.UNRESOLVED),
        ("ignored", Status.UNRESOLVED),
        ("retracted", Status.WITHDRAWN),
        ("satisfactorily addressed", Status.RESOLVED),
        ("well implemented", Status.RESOLVED),
        ("ſtill open", Status.UNRESOLVED),  # a letter that is another one in capitals
        ("quite resolved", None),
    ],
)
def test_a_status_is_known_by_its_first_letters(words: str, status: Status | None) -> None:
    assert status_of(words) is status
    assert status is None or not words.isascii() or words[:2] in STATUS_STARTS


@for_each("text", ["src/a.py:12", "`src/a.py`:12", "src/a:1", "a: src/a.py", "at 12:30", "a.py"])
def test_a_place_with_a_line_is_seen_at_once(text: str) -> None:
    assert place(text)[1] is None or LINE_NUMBER.search(text)


@for_each(
    "text", ["", "GAP-", "xGAP-AB-001", "GAP-AB-0011 GAP-AB-001", "a GAP-AB-001, GAP-CD-002", "-GAP-AB-001"]
)
def test_the_first_gap_is_the_first_of_all(text: str) -> None:
    assert first_gap(text) == next(iter(gaps_in(text)), "")
