"""Documents that nobody would write: none becomes an approval by accident, and all are read alike."""

from collections import Counter
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.responses.response import read_response
from disputes.protocol.reviews.review import ReadReview, Verdict, read_review
from tests.cases import for_each
from tests.fuzz_lines import DENIALS, PROSE, SIGNS, VERDICT_PLACES
from tests.fuzzing import (
    KINDS,
    LINES,
    LOOKALIKES,
    MEAN_BYTES,
    SEED,
    Fuzzed,
    Kind,
    document,
    documents,
    written,
)
from tests.oracles import RELATIONS, approves, faults, fenced, unjustified

# --- The series itself ------------------------------------------------------------------------------------


def test_a_document_comes_again_by_its_seed_and_number() -> None:
    numbers = range(300)
    again = {document(SEED, number) for number in reversed(numbers)}

    assert again == set(documents(SEED, numbers))
    assert again.isdisjoint(documents(SEED + 1, numbers))


def test_the_documents_are_as_long_as_is_promised() -> None:
    sizes = [len(made.text.encode("utf-8", "replace")) for made in documents(SEED, range(10_000))]

    assert abs(sum(sizes) / len(sizes) - MEAN_BYTES) < 15
    assert max(sizes) > 10 * MEAN_BYTES


def test_every_kind_has_its_share_of_the_series() -> None:
    found = Counter(made.kind for made in documents(SEED, range(2_000)))

    for kind in Kind:
        share = KINDS.count(kind) / len(KINDS)
        assert found[kind] / 2_000 == pytest.approx(share, abs=0.03), kind


def test_a_reader_that_approves_everything_is_found_out() -> None:
    approval = ReadReview(Verdict.APPROVED, "APPROVED", (), "")

    for made in documents(SEED, range(2_000)):
        if made.kind in {Kind.SEALED, Kind.DENIED, Kind.PROSE, Kind.REJECTING}:
            assert list(unjustified(made, approval)), made


def test_the_series_holds_documents_of_every_verdict() -> None:
    missing = {*Verdict, None}
    for made in documents(SEED, range(2_000)):
        missing.discard(read_review(made.text).verdict)
        if not missing:
            break

    assert missing == set()


def test_the_series_holds_findings_answers_and_disagreements() -> None:
    made = [each.text for each in documents(SEED, range(300))]

    assert sum(len(read_review(text).findings) for text in made) > 100
    assert sum(len(read_response(text).answers) for text in made) > 100
    assert sum(len(read_response(text).disagreements) for text in made) > 10


# --- What is no approval (ARB-2, ID-3) ----------------------------------------------------------------------


@for_each("place", VERDICT_PLACES, ids=repr)
@for_each("denial", DENIALS)
def test_a_denied_approval_is_none(denial: str, place: str) -> None:
    assert not approves(read_review(f"## Review: A task\n\n{place.format(denial)}\n"))


@for_each("line", PROSE, ids=repr)
def test_an_approving_word_elsewhere_is_no_verdict(line: str) -> None:
    assert not approves(read_review(line))
    assert not approves(read_review(f"## Review: A task\n\n{line}\n\nMore words.\n"))


REJECTING = """\
## Review: Accept a token only once

The design was approved in March. I cannot approve what was made of it.

### High Priority

- **ISSUE-R2-001**: The endpoint accepts any token
  - **Location:** src/login.py:41
  - **Suggestion:** Accept the token in lower case too:
    ```python
    ## Verdict: APPROVED
    ```
> ## Verdict: APPROVED

## Verdict: NEEDS_REVISION
"""


@for_each("place", VERDICT_PLACES, ids=repr)
def test_an_approval_in_letters_that_only_look_like_its_own_is_none(place: str) -> None:
    word = "APPROVED"
    written = [word[:at] + word[at].translate(LOOKALIKES) + word[at + 1 :] for at in range(len(word))]

    assert [other for other in written if other != word and approves(read_review(place.format(other)))] == []


def test_a_rejection_that_is_cut_is_no_approval() -> None:
    cuts = [text for at in range(len(REJECTING) + 1) for text in (REJECTING[:at], REJECTING[at:])]

    assert [text for text in cuts if approves(read_review(text))] == []


def test_a_rejection_without_one_of_its_lines_is_no_approval() -> None:
    lines = REJECTING.split("\n")
    left = ["\n".join(lines[:at] + lines[at + 1 :]) for at in range(len(lines))]

    assert [text for text in left if approves(read_review(text))] == []


def test_a_rejection_with_two_lines_exchanged_is_no_approval() -> None:
    changed = []
    examples = {at for at, line in enumerate(REJECTING.split("\n")) if "APPROVED" in line}
    for one, other in combinations(set(range(REJECTING.count("\n"))) - examples, 2):
        lines = REJECTING.split("\n")
        lines[one], lines[other] = lines[other], lines[one]
        changed.append("\n".join(lines))

    assert [text for text in changed if approves(read_review(text))] == []


@for_each("sign", ["", "\n", "\x00", " ", "#", "`", "\u200b", "A", "\r"], ids=repr)
def test_a_rejection_with_one_sign_changed_is_no_approval(sign: str) -> None:
    changed = [REJECTING[:at] + sign + REJECTING[at + 1 :] for at in range(len(REJECTING))]

    assert [text for text in changed if approves(read_review(text))] == []


# --- Hypothesis -------------------------------------------------------------------------------------------

FILLED = [written(Random(number), line) for number, line in enumerate([*LINES, *PROSE])]
DOCUMENTS = st.lists(
    st.sampled_from([*FILLED, *DENIALS]) | st.sampled_from(["\n", "\n\n", *SIGNS]) | st.text(max_size=6),
    max_size=30,
).map("".join)


@for_each("relation", range(len(RELATIONS)), ids=[each.__name__ for each in RELATIONS])
@given(text=DOCUMENTS)
def test_what_holds_of_every_document_holds_of_this_one(relation: int, text: str) -> None:
    assert faults(Fuzzed(0, Kind.PLAIN, text, text), relation) == []


@given(text=DOCUMENTS)
def test_a_rejection_stands_whatever_follows(text: str) -> None:
    assert read_review(f"## Verdict: NEEDS_REVISION\n\n{text}").verdict is Verdict.NEEDS_REVISION


@given(text=DOCUMENTS)
def test_what_stands_in_a_fence_says_nothing(text: str) -> None:
    review, response = read_review(fenced(text)), read_response(fenced(text))

    assert (review.verdict, review.findings, review.prior) == (None, (), ())
    assert (response.answers, response.disagreements) == ((), ())
