"""The time of every reader grows with the length of what it reads; too long a document is refused."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from disputes.protocol.decided import read_decisions
from disputes.protocol.documents import MAX_BYTES, DocumentError
from disputes.protocol.proposals import read_proposal
from disputes.protocol.responses import read_response
from disputes.protocol.reviews import read_review
from disputes.protocol.silence import judge_silence
from disputes.protocol.suspicion import Watched
from tasks.states import Severity
from tests.adversarial import FAMILIES, word_of

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


# --- Silence: many findings against one response (§13) ------------------------------------------------------


def watched(number: int, **about: str) -> Watched:
    code = f"ISSUE-R{number // 999 + 1}-{number % 999 + 1:03d}"
    return Watched(
        code, number, Severity.HIGH, **{"title": f"word{number}", "impact": "status lock", **about}
    )


PHRASE = "This is not a real issue. "
# From a number of findings: the findings, the response, the document before it.
SILENCES: dict[str, Callable[[int], tuple[list[Watched], str, str]]] = {
    "nothing is answered": lambda n: ([watched(i) for i in range(n)], "words\n" * n, ""),
    "places in sections of one name": lambda n: (
        [watched(i, location=f"line {2 * n + 2 * i}") for i in range(n)],
        "# A\n" + "some words\n" * 2 * n,
        "# A\n" + "some words\n" * 2 * n + "# A\ntext\n" * n,
    ),
    "headings alike": lambda n: (
        [watched(i, location="a b c d e f g h i j k") for i in range(n)],
        "".join(f"# a b c d e f w{i}\nx\n" for i in range(n)),
        "".join(f"# a b c d e f w{i}\ny\n" for i in range(n)),
    ),
    "one section responds to all": lambda n: (
        [watched(i) for i in range(n)],
        "### Response to " + ", ".join(watched(i).code for i in range(n)) + "\n\n" + PHRASE * n,
        "",
    ),
    "each deflected in a row": lambda n: (
        [watched(i) for i in range(n)],
        "| Issue | Answer |\n|---|---|\n" + "".join(f"| {watched(i).code} | {PHRASE} |\n" for i in range(n)),
        "# A\n",
    ),
    "quotes": lambda n: (
        [watched(i, text=f'"a phrase that nobody says {i}" ' * 5) for i in range(n)],
        "a phrase that nobody says " * 5 * n,
        "",
    ),
    "names of the reviewer's own": lambda n: (
        [replace(watched(i), code=f"W{word_of(i)}-{i:03d}") for i in range(n)],
        "WAB WCD-001 " * 15 * n,
        "",
    ),
}


@pytest.mark.parametrize("name", SILENCES)
def test_the_time_of_silence_grows_with_the_findings(name: str) -> None:
    def judge(number: int) -> float:
        findings, response, before = SILENCES[name](number)
        codes = [each.code for each in findings]

        def read(text: str) -> object:
            return judge_silence(findings, read_response(text, codes), text, before)

        return seconds(read, response, tries=3)

    assert judge(1_200) < judge(150) * MOST
