"""What the readers do grows with the length of what they read; too long a document is refused.

Nothing here is timed: calls are counted, of Python and of C. bench/growth.py measures the time.
"""

import cProfile
from collections.abc import Callable

import pytest

from bench.growth import SILENCES
from disputes.protocol.responses.response import read_response
from disputes.protocol.reviews.review import read_review
from disputes.protocol.rounds.proposals import read_proposal
from disputes.protocol.rulings.decision_files import read_decisions
from disputes.protocol.silence.heuristics import judge_silence
from disputes.protocol.text.documents import MAX_BYTES, DocumentError
from tests.adversarial import FAMILIES
from tests.cases import for_each

Reader = Callable[[str], object]
READERS: dict[str, Reader] = {
    "review": read_review,
    "response": read_response,
    "decisions": read_decisions,
    "proposal": read_proposal,
}
SMALL, DOUBLINGS = 2 * 1024, 2
MOST = 2.5**DOUBLINGS
# Calls that every document costs, however short it is.
FIXED = 500


def calls(read: Callable[[], object]) -> int:
    """How many functions this calls."""
    profile = cProfile.Profile()
    profile.runcall(read)
    return sum(entry.callcount for entry in profile.getstats())


@for_each("reader", READERS)
def test_a_reader_calls_no_more_than_the_length_allows(reader: str) -> None:
    read = READERS[reader]
    grown = {
        family: (calls(lambda: read(make(SMALL))), calls(lambda: read(make(SMALL << DOUBLINGS))))  # noqa: B023
        for family, make in FAMILIES.items()
    }

    assert {name: pair for name, pair in grown.items() if pair[1] > (pair[0] + FIXED) * MOST} == {}


@for_each("reader", READERS)
def test_a_document_of_the_full_length_is_read(reader: str) -> None:
    assert READERS[reader]("a" * MAX_BYTES) is not None


@for_each(
    ("text", "size"),
    [
        ("a" * (MAX_BYTES + 1), MAX_BYTES + 1),
        ("é" * (MAX_BYTES // 2 + 1), MAX_BYTES + 2),
        ("\n" * 10**6, 10**6),
    ],
    ids=["one byte more", "bytes count, not letters", "a million lines"],
)
@for_each("reader", READERS)
def test_a_larger_document_is_refused_with_its_size(reader: str, text: str, size: int) -> None:
    with pytest.raises(DocumentError, match=f"has {size} bytes; {MAX_BYTES} are the limit") as refusal:
        READERS[reader](text)

    assert refusal.value.code == "too_large"


@for_each("name", SILENCES)
def test_silence_calls_no_more_than_the_findings_allow(name: str) -> None:
    def judged(number: int) -> int:
        findings, response, before = SILENCES[name](number)
        read = read_response(response, [each.code for each in findings])
        return calls(lambda: judge_silence(findings, read, response, before))

    judged(1)  # the patterns are compiled when they are first used
    assert judged(200) < (judged(50) + FIXED) * MOST
