"""Turning a finding away: the phrases of H5, in the section that responds to the finding."""

from disputes.protocol.responses.response import read_response
from disputes.protocol.silence.deflection import deflections, response_section
from disputes.protocol.text.documents import scan
from tests.cases import for_each
from tests.disputes.protocol.text.test_documents import QUADRATIC, growth


def phrases(text: str) -> list[str]:
    return deflections(scan(text))


@for_each(
    ("text", "phrase"),
    [
        ("The reviewer misunderstands the rule.", "reviewer misunderstands the rule"),
        ("The reviewer misunderstood.", "reviewer misunderstood"),
        ("REVIEWER MISREADS section 3.", "REVIEWER MISREADS section 3"),
        ("The reviewer has misread it.", "reviewer has misread it"),
        ("The reviewer clearly misinterprets.", "reviewer clearly misinterprets"),
        ("This is not a real issue.", "not a real issue"),
        ("That is not really a genuine problem", "not really a genuine problem"),
        ("Not an actual concern.", "Not an actual concern"),
        ("The reviewer's suggestion would actually break the API.",
         "reviewer's suggestion would actually break the API"),
        ("This suggestion would break.", "suggestion would break"),
        ("This finding does not apply: nobody calls it.", "finding does not apply"),
        ("I don't see how this can happen.", "don't see how this can happen"),
        ("Looked again. The current behaviour is right.", "current behaviour is right"),
        ("Unfortunately this cannot be changed.", "this cannot be changed"),
        ("I kept the loop, which is clearer.", "I kept the loop"),
    ],
)  # fmt: skip
def test_a_deflecting_phrase_is_found_whatever_its_case_and_ending(text: str, phrase: str) -> None:
    assert phrases(text) == [phrase]


@for_each(
    "text",
    [
        "The reviewer understands the rule.",
        "A real issue, and it is mended.",
        "The change would not break anything.",
        "The finding applies, and I see why this can happen.",
        "The current behaviour is documented now, and the lock is kept.",
        "> The reviewer misunderstands.",
        "```\nnot a real issue\n```",
        "",
    ],
)
def test_ordinary_words_are_no_deflection(text: str) -> None:
    assert phrases(text) == []


@for_each(
    "alternative",
    [
        "**Alternative:** a table",
        "Alternative: a table",
        "- **Alternative Approach (if any):** a table",
        "We see it otherwise. Alternative: a table",
        "#### Instead: a table",
        "### An alternative",
        "**We propose** a table.",
        "We do **this instead**.",
    ],
)
def test_an_alternative_makes_it_a_critique(alternative: str) -> None:
    assert phrases(f"The reviewer misunderstands.\n\n{alternative}") == []


def test_the_word_in_a_sentence_offers_nothing() -> None:
    assert phrases("Not a real issue. There is no alternative to it.") == ["Not a real issue"]


# --- The section ------------------------------------------------------------------------------------------


@for_each(
    ("text", "first", "last"),
    [
        ("## Response to ISSUE-R1-001\n\na\n\n### Detail\n\nb\n\n## Next\n\nc", 1, 8),
        ("| ISSUE-R1-001 | fixed |\n| ISSUE-R1-002 | not a real issue |", 1, 1),
        ("x\n\n- ISSUE-R1-001: a\n  b\n- ISSUE-R1-002: c", 3, 4),
        ("**ISSUE-R1-001:** a\n\nb\n\n## Next", 1, 4),
    ],
)
def test_a_response_section_goes_to_the_next_one(text: str, first: int, last: int) -> None:
    answer = read_response(text).answers[0]
    section = response_section(scan(text), answer)

    assert (section[0].number, section[-1].number) == (first, last)


@for_each(
    "make",
    [
        lambda n: "reviewer " * n,
        lambda n: "not a real " * n,
        lambda n: "suggests would " * n,
        lambda n: "*" * n,
        lambda n: "alternative " * n,
    ],
)
def test_the_work_grows_with_the_length(make: object) -> None:
    assert growth(phrases, make, 2000) < QUADRATIC / 2  # type: ignore[arg-type]
