"""The time of every reader grows with the length of what it reads; too long a document is refused."""

import time
from collections.abc import Callable

import pytest

from disputes.protocol.decided import read_decisions
from disputes.protocol.documents import MAX_BYTES, DocumentError
from disputes.protocol.proposals import read_proposal
from disputes.protocol.responses import read_response
from disputes.protocol.reviews import read_review
from tests.adversarial import FAMILIES

Reader = Callable[[str], object]
READERS: dict[str, Reader] = {
    "review": read_review,
    "response": read_response,
    "decisions": read_decisions,
    "proposal": read_proposal,
}
SMALL, DOUBLINGS = 8 * 1024, 3
# For each doubling; two and a half times the time for twice the length is still linear to a busy clock.
MOST = 2.5**DOUBLINGS


def seconds(read: Reader, text: str, tries: int, enough: float = 0) -> float:
    """The shortest time of this process over some tries; no more of them where one is short enough."""
    found = float("inf")
    for _ in range(tries):
        start = time.process_time()
        read(text)
        found = min(found, time.process_time() - start)
        if found < enough:
            break
    return max(found, 0.001)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("reader", READERS)
def test_the_time_grows_with_the_length(reader: str, family: str) -> None:
    read, make = READERS[reader], FAMILIES[family]
    short = seconds(read, make(SMALL), tries=4)

    assert seconds(read, make(SMALL << DOUBLINGS), tries=5, enough=short * MOST) < short * MOST


@pytest.mark.parametrize("reader", READERS)
def test_a_document_of_the_full_length_is_read(reader: str) -> None:
    assert READERS[reader]("a" * MAX_BYTES) is not None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("a" * (MAX_BYTES + 1), MAX_BYTES + 1),
        ("é" * (MAX_BYTES // 2 + 1), MAX_BYTES + 2),
        ("\n" * 10**6, 10**6),
    ],
    ids=["one byte more", "bytes count, not letters", "a million lines"],
)
@pytest.mark.parametrize("reader", READERS)
def test_a_larger_document_is_refused_with_its_size(reader: str, text: str, size: int) -> None:
    with pytest.raises(DocumentError, match=f"has {size} bytes; {MAX_BYTES} are the limit") as refusal:
        READERS[reader](text)

    assert refusal.value.code == "too_large"
