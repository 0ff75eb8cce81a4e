"""The scanner below the parsers: what a line states, what it only quotes or shows, what is too large."""

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.text.documents import MAX_BYTES, DocumentError, Line, Mode, Problem, joined, scan
from tests.cases import for_each

S, Q, F = Mode.STATED, Mode.QUOTED, Mode.FENCED


def modes(text: str) -> str:
    """One letter a line: s, q or f."""
    return "".join(line.mode.value[0] for line in scan(text))


TIMES = 8
QUADRATIC = TIMES * TIMES  # what `growth` would be where each part is read again for every other part


def growth(read: Callable[[str], Any], make: Callable[[int], str], size: int) -> float:
    """How many times longer `read` takes for an input that is `TIMES` as large. Linear work gives `TIMES`.

    The least of several looks, in each of which both are measured one right after the other: a machine that
    turns slower for a while slows both. Nothing below a millisecond counts.
    """
    few, many = make(size), make(size * TIMES)

    def timed(text: str) -> float:
        start = time.process_time()
        read(text)
        return time.process_time() - start

    least = float("inf")
    for _ in range(6):
        small = max(min(timed(few) for _ in range(3)), 0.001)
        least = min(least, timed(many) / small)
        if least < 1.5 * TIMES:
            break
    return least


# --- Fences (ID-3) ----------------------------------------------------------------------------------------

FENCES = [
    ("a", "s"),  # no fence at all
    ("", "s"),  # an empty document has one empty line
    ("```\na\n```\nb", "fffs"),  # the plain case: the marks belong to it
    ("~~~\na\n~~~\nb", "fffs"),  # the other character
    ("```python\na\n```\nb", "fffs"),  # an info string opens
    ("```python title=x\na\n```\nb", "fffs"),  # of several words
    ("``` python\na\n```\nb", "fffs"),  # after a space
    ("~~~python\na\n~~~\nb", "fffs"),
    ("```\n```python\n```\nb", "fffs"),  # an info string does not close
    ("```\na\n``` \nb", "fffs"),  # trailing blanks are no info string
    ("```\na\n~~~\nb\n```\nc", "fffffs"),  # the other character does not close
    ("~~~\na\n```\nb\n~~~\nc", "fffffs"),
    ("````\n```\na\n```\n````\nb", "fffffs"),  # a longer fence holds a shorter one
    ("````\n```\n````\nb", "fffs"),  # shorter does not close
    ("```\na\n````\nb", "fffs"),  # longer does
    ("~~~~\n~~~\n~~~~~\nb", "fffs"),
    ("``\na\n``", "sss"),  # two are too few
    ("```a``` b", "s"),  # code in a line is no fence
    ("``` a`b\nc", "ss"),  # nor is an info string with a backtick in it
    ("   ```\na\n   ```\nb", "fffs"),  # up to three blanks before it
    ("```\na\n  ```\nb", "fffs"),  # also before the closing one
    ("text ```\na", "ss"),  # not at the start of the line
    ("```\na", "ff"),  # one that is never closed reaches to the end
    ("```\na\n\n\nb", "fffff"),
    ("a\n```\nb\n```\nc\n~~~\nd\n~~~\ne", "sfffsfffs"),  # one after the other
    ("```\n> a\n```\n> b", "fffq"),  # a quote in a fence is fenced
    ("```\n# a\n```\n# b", "fffs"),
    ("````markdown\n```python\na\n```\n```\nb\n````\nc", "fffffffs"),  # nested, with a stray mark inside
]


@for_each(("text", "expected"), FENCES, ids=repr)
def test_a_fence_holds_until_it_is_closed(text: str, expected: str) -> None:
    assert modes(text) == expected


@for_each(
    ("text", "expected"),
    [
        ("~~~ a`b\nc\n~~~\nd", "fffs"),  # only a fence of backticks may have none in its info string
        ("- a\n\n    ```\n    b\n    ```\nc", "ssfffs"),  # below a list item, four blanks deep
        ("- a\n  - b\n\n      ```\n      c\n      ```\nd", "sssfffs"),  # below a nested one, six deep
    ],
    ids=repr,
)
def test_every_fence_of_markdown_is_one(text: str, expected: str) -> None:
    assert modes(text) == expected


@for_each("size", range(3, 9))
@for_each("mark", ["`", "~"])
def test_a_fence_is_closed_by_as_many_or_more(mark: str, size: int) -> None:
    assert modes(f"{mark * size}\na\n{mark * (size - 1)}\n{mark * size}\nb") == "ffffs"
    assert modes(f"{mark * size}\na\n{mark * (size + 1)}\nb") == "fffs"


@for_each("depth", range(1, 8))
def test_fences_nest_to_any_depth(depth: int) -> None:
    sizes = [depth + 3 - level for level in range(depth)]
    lines = [*("`" * size for size in sizes), "in", *("`" * size for size in reversed(sizes)), "out"]

    assert modes("\n".join(lines)) == "f" * (2 * depth + 1) + "s"


# --- Quotes (ID-3) ----------------------------------------------------------------------------------------


@for_each(
    ("text", "expected"),
    [
        ("> a", "q"),  # the plain case
        (">a", "q"),  # without a blank
        (">", "q"),  # an empty line of a quote
        (">> a", "q"),  # a quote in a quote
        ("  > a", "q"),  # indented
        ("    > a", "q"),  # as below a list item
        ("\t> a", "q"),
        ("a > b", "s"),  # a comparison
        ("- > a", "s"),  # a list item comes first
        ("&gt; a", "s"),  # no character reference
        ("> ```\na", "qs"),  # a fence in a quote ends with it
        ("> a\nb", "qs"),  # what follows states something
        ("> a\n\n> b", "qsq"),
    ],
    ids=repr,
)
def test_a_quote_quotes(text: str, expected: str) -> None:
    assert modes(text) == expected


# --- Lines ------------------------------------------------------------------------------------------------


@for_each(
    ("text", "lines"),
    [
        ("", [""]),  # one empty line
        ("a", ["a"]),
        ("a\n", ["a", ""]),  # the line end at the end leaves an empty line
        ("a\nb", ["a", "b"]),
        ("a\r\nb", ["a", "b"]),  # Windows
        ("a\rb", ["a", "b"]),  # very old
        ("a\r\n\r\nb", ["a", "", "b"]),
        ("a\r\rb", ["a", "", "b"]),
        ("a\n\rb", ["a", "", "b"]),  # two ends, not one
        ("a\r\nb\rc\nd", ["a", "b", "c", "d"]),  # all of them in one document
        ("a\x0bb\x0cc\x85d\u2028e", ["a\x0bb\x0cc\x85d\u2028e"]),  # these end no line
        ("  a  ", ["  a  "]),  # blanks are kept
        ("a\tb", ["a\tb"]),
        ("a\x00b", ["a\x00b"]),
    ],
    ids=repr,
)
def test_lines_are_numbered_from_one_and_kept_as_they_are(text: str, lines: list[str]) -> None:
    found = scan(text)

    assert [line.text for line in found] == lines
    assert [line.number for line in found] == list(range(1, len(lines) + 1))


@for_each("end", ["\n", "\r\n", "\r"])
def test_the_line_end_makes_no_difference(end: str) -> None:
    text = "# a\n\n> b\n\n```\nc\n```\nd"

    assert scan(text.replace("\n", end)) == scan(text)


def test_a_line_is_one_value() -> None:
    with pytest.raises(AttributeError):
        Line(1, "a", S).text = "b"  # type: ignore[misc]


# --- Headings ---------------------------------------------------------------------------------------------

HEADINGS = [
    ("# a", (1, "a")),
    ("###### a", (6, "a")),  # six levels
    ("####### a", None),  # not seven
    ("#a", None),  # a tag
    ("# ", (1, "")),  # an empty one
    ("#  a", (1, "a")),
    ("#\ta", (1, "a")),
    ("# a #", (1, "a")),  # the closed form
    ("## a ##", (2, "a")),
    ("## a ####", (2, "a")),  # however long
    ("# a b", (1, "a b")),
    ("# a  ", (1, "a")),  # blanks at the end
    ("   # a", (1, "a")),  # up to three blanks before it
    ("    # a", None),  # four are code
    ("\t# a", None),
    ("a # b", None),
    ("## **a**", (2, "**a**")),  # marks are kept
    ("# Ü", (1, "Ü")),
]


@for_each(("text", "heading"), HEADINGS, ids=repr)
def test_a_heading_has_a_level_and_a_text(text: str, heading: tuple[int, str] | None) -> None:
    assert scan(text)[0].heading == heading


@for_each("text", ["```\n# a\n```", "> # a", "````\n```\n# a\n````"], ids=repr)
def test_a_heading_that_is_only_shown_is_none(text: str) -> None:
    assert [line.heading for line in scan(text)] == [None] * len(scan(text))


# --- Size -------------------------------------------------------------------------------------------------


@for_each(
    "text",
    [
        "a" * MAX_BYTES,  # exactly the limit
        "ü" * (MAX_BYTES // 2),  # bytes count, not characters
        "\n" * MAX_BYTES,  # many lines
        "😀" * (MAX_BYTES // 4),
    ],
    ids=["letters", "umlauts", "lines", "faces"],
)
def test_a_document_may_be_as_large_as_the_limit(text: str) -> None:
    assert sum(len(line.text) for line in scan(text)) == len(text.replace("\n", ""))


@for_each(
    ("text", "size"),
    [
        ("a" * (MAX_BYTES + 1), MAX_BYTES + 1),  # one byte more
        ("ü" * (MAX_BYTES // 2) + "a", MAX_BYTES + 1),  # fewer characters than the limit, more bytes
        ("\ud800" * (MAX_BYTES + 1), MAX_BYTES + 1),  # what is no character counts as one byte
        ("\r\n" * MAX_BYTES, 2 * MAX_BYTES),  # as it was sent
    ],
    ids=["letters", "umlauts", "surrogates", "line ends"],
)
def test_a_larger_one_is_refused_with_its_size(text: str, size: int) -> None:
    with pytest.raises(DocumentError) as refusal:
        scan(text)

    assert refusal.value.code == "too_large"
    assert refusal.value.problems == [Problem(1, f"the document has {size} bytes; {MAX_BYTES} are the limit")]


def test_the_limit_is_a_quarter_of_a_mebibyte() -> None:
    assert MAX_BYTES == 262_144


# --- Errors -----------------------------------------------------------------------------------------------


def test_an_error_names_every_line_at_fault_and_why() -> None:
    error = DocumentError("malformed_response", [Problem(3, "no rationale"), Problem(7, "no concern")])

    assert str(error) == "line 3: no rationale; line 7: no concern"
    assert error.code == "malformed_response"
    assert isinstance(error, ValueError)


# --- joined -----------------------------------------------------------------------------------------------


@for_each(
    ("texts", "expected"),
    [
        ([], ""),
        (["a"], "a"),
        (["", "a", "", "b", ""], "a\n\nb"),  # blank lines around it go, those inside stay
        (["  a", "b  "], "  a\nb  "),  # blanks stay
        (["", ""], ""),
    ],
    ids=repr,
)
def test_lines_are_joined_as_written(texts: list[str], expected: str) -> None:
    assert joined([Line(number, text, S) for number, text in enumerate(texts, start=1)]) == expected


# --- What always holds ------------------------------------------------------------------------------------

FRAGMENTS = st.lists(
    st.sampled_from(["```", "````", "~~~", "``` x", "~~~ x", "> a", "a", "", "# a", "   ```", "> ```"])
    | st.text(max_size=20),
    max_size=30,
).map("\n".join)


@given(FRAGMENTS)
def test_no_line_is_lost_added_or_changed(text: str) -> None:
    assert [line.text for line in scan(text)] == re.split(r"\r\n|\r|\n", text)


@given(FRAGMENTS)
def test_a_longer_fence_holds_any_document(text: str) -> None:
    mark = "`" * (1 + max(2, *map(len, re.findall("`*", text))))
    found = scan(f"{mark}\n{text}\n{mark}\nafter")

    assert {line.mode for line in found[:-1]} == {F}
    assert found[-1] == Line(len(found), "after", S)


@given(FRAGMENTS)
def test_a_quoted_document_states_nothing(text: str) -> None:
    quoted = "\n".join(f"> {line}" for line in re.split(r"\r\n|\r|\n", text))

    assert {line.mode for line in scan(quoted)} == {Q}


@given(FRAGMENTS)
def test_the_first_line_of_a_fenced_part_opens_it(text: str) -> None:
    before = S
    for line in scan(text):
        if line.mode is F and before is not F:
            assert line.text.lstrip().startswith(("```", "~~~"))
        before = line.mode


@given(FRAGMENTS)
def test_only_what_is_stated_is_a_heading(text: str) -> None:
    assert all(line.mode is S for line in scan(text) if line.heading)


# --- Work -------------------------------------------------------------------------------------------------


def headings(text: str) -> None:
    """Scan, and ask every line whether it is a heading, as the parsers do."""
    for line in scan(text):
        line.heading  # noqa: B018


@for_each(
    ("make", "size"),
    [
        (lambda n: "a line of ordinary length, with words\n" * n, 600),  # prose
        (lambda n: "> a\n" * n, 6000),  # one long quote
        (lambda n: "```\na\n" * n, 4000),  # fences, open and closed in turn
        (lambda n: "`" * n, 30_000),  # one very long mark
        (lambda n: " " * n, 30_000),  # one very long blank line
        (lambda n: "#" * n, 30_000),
        (lambda n: "# " + "a" * n, 3_000),  # one very long heading
    ],
    ids=["prose", "quote", "fences", "mark", "blanks", "hashes", "long heading"],
)
def test_the_work_grows_with_the_length(make: Callable[[int], str], size: int) -> None:
    assert growth(headings, make, size) < QUADRATIC / 2


@for_each(
    ("make", "size"),
    [
        (lambda n: "# a" + " " * n + "b", 100),  # cubic: 800 blanks take half a second, 10,000 a quarter hour
        (lambda n: "# a" + "#" * n + "b", 800),  # quadratic
    ],
    ids=["blanks", "hashes"],
)
def test_the_work_on_a_heading_grows_with_its_length(make: Callable[[int], str], size: int) -> None:
    assert growth(headings, make, size) < QUADRATIC / 2
