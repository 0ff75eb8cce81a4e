"""What the fuzzer found, each as the smallest document that shows it."""

from disputes.protocol.responses.response import read_response
from disputes.protocol.reviews.review import Verdict, read_review
from disputes.protocol.rounds.check import watched_findings
from disputes.protocol.rounds.validation import parser_alarm
from disputes.protocol.silence.heuristics import judge_silence
from disputes.protocol.silence.suspicion import Watched
from disputes.protocol.text.documents import scan, tables, unclosed_fence
from tasks.states import Severity
from tests.cases import for_each


def test_a_bar_alone_is_no_row_of_a_table() -> None:
    (table,) = tables(scan("| Gap | Verdict |\n|---|---|\n| a | b |\n|"))

    assert [row.cells for row in table.rows] == [("a", "b")]


@for_each(
    ("text", "line"),
    [
        ("a\n```\nb", 2),
        ("```\na\n```\n~~~\nb\n", 4),  # one behind another
        ("```\na\n```", 0),
        ("```\na\n```\n", 0),
        ("```", 1),
        ("a", 0),
        ("", 0),
    ],
)
def test_a_fence_that_nothing_closes_is_named(text: str, line: int) -> None:
    assert unclosed_fence(scan(text)) == line


@for_each("verdict", ["APPROVED", "NO_ISSUES_FOUND", "APPROVED WITH NOTES"])
def test_nothing_is_approved_where_a_fence_is_never_closed(verdict: str) -> None:
    closed = f"## Verdict: {verdict}\n\n```python\nx = 1\n```\n"

    assert read_review(closed).verdict is not None
    assert read_review(closed.removesuffix("```\n")).verdict is None


def test_a_rejection_stands_where_a_fence_is_never_closed() -> None:
    assert read_review("## Verdict: NEEDS_REVISION\n\n```\n").verdict is Verdict.NEEDS_REVISION


@for_each(
    "line", ["`## Verdict: APPROVED` ends a good review.", "- `Verdict: APPROVED` is what it should say"]
)
def test_a_verdict_in_code_with_words_behind_it_is_an_example(line: str) -> None:
    assert read_review(line).verdict is None


@for_each("text", ["", "  \n", "\n\n", "\t"], ids=repr)
def test_a_blank_review_raises_the_alarm(text: str) -> None:
    assert "neither a verdict nor a finding" in parser_alarm(scan(text), read_review(text))


@for_each(
    ("text", "codes"),
    [
        ("| H1 | fixed |", ["H1"]),
        ("| H10 | fixed |", ["H10"]),  # the longest one counts
        ("| h1 | fixed |", ["H1"]),
        ("| Concern  #1 | fixed |", ["CONCERN #1"]),
        ("| CONCERN #12 | fixed |", []),
        ("| H1x | fixed |", []),
        ("| AH1 | fixed |", []),
    ],
)
def test_the_reviewers_own_ids_are_found_among_many(text: str, codes: list[str]) -> None:
    known = ["H1", "H10", "CONCERN #1", "  ", *(f"W{number}-001" for number in range(2_000))]

    assert [answer.code for answer in read_response(text, known).answers] == codes


def test_a_section_that_responds_to_all_shows_each_finding_only_a_few_phrases() -> None:
    watched = [Watched(f"ISSUE-R1-{number:03d}", number, Severity.HIGH) for number in range(1, 40)]
    response = "### Response to ISSUE-R1-001 through R1-039\n\n" + "This is not a real issue.\n" * 99
    read = read_response(response, [each.code for each in watched])
    flags = judge_silence(watched, read, response, "# A\n").flags

    assert len(flags) == 39
    assert all(sum(line.startswith("phrase:") for line in flag.evidence) == 8 for flag in flags)


def test_ids_are_read_in_capitals_wherever_they_stand() -> None:
    table = "| Issue | Severity | Description |\n|---|---|---|\n| Concern #1 | HIGH | The table has a bar |\n"
    row = read_review(f"## Issues\n\n{table}")
    prior = read_review("## Status of earlier issues\n\n- [x] **Concern #1**: FIXED\n")

    assert [found.code for found in row.findings] == ["CONCERN #1"]
    assert [status.code for status in prior.prior] == ["CONCERN #1"]


def test_an_id_of_the_reviewers_own_is_the_same_to_review_response_and_silence() -> None:
    review = read_review("### Concern #1: The table has a bar (HIGH)\n\n## Verdict: REJECTED\n")
    (watched,) = watched_findings(review)
    response = "| Issue | Answer |\n|---|---|\n| Concern #1 | fixed |\n"
    read = read_response(response, [watched.code])

    assert [answer.code for answer in read.answers] == [watched.code] == ["CONCERN #1"]
    assert judge_silence([watched], read, response).flags == ()


@for_each("digits", ["\uff10\uff10\uff11", "00\uff11", "\u0660\u0660\u0661"], ids=ascii)
@for_each("prefix", ["ISSUE-R1-", "CRIT-"])
def test_digits_of_other_scripts_make_no_id(prefix: str, digits: str) -> None:
    review = read_review(f"### High Priority\n\n- **{prefix}{digits}**: The table has a bar\n")
    response = read_response(f"| Issue | Answer |\n|---|---|\n| {prefix}{digits} | fixed |\n")

    assert [found.code for found in review.findings if found.code] == []
    assert response.answers == ()


def test_a_line_in_digits_of_other_scripts_is_no_place() -> None:
    (found,) = read_review("[MUST] src/login.py:\uff14\uff11 is wrong").findings

    assert found.location == ""


@for_each(
    ("text", "modes"),
    [
        ("<!--\n## Verdict: APPROVED\n-->\na", "qqqs"),
        ("<!-- ## Verdict: APPROVED -->\na", "qs"),
        ("  <!-- a\nb --> c\nd", "qqs"),
        ("<!-- a --> b", "s"),  # not only a comment
        ("a <!-- b\nc -->", "ss"),
        ("<!-- a\nb", "ss"),  # one that never ends is none
        ("```\n<!--\n```\na\n-->", "fffss"),  # nor is one that is shown
        ("<!--\n> a\n-->\nb", "qqqs"),
    ],
)
def test_a_comment_states_nothing(text: str, modes: str) -> None:
    assert "".join(line.mode.value[0] for line in scan(text)) == modes


@for_each("words", ["no3_issues_found", "no 3 issues found", "NO 2 ISSUES FOUND", "no\u0663_issues_found"])
def test_a_number_within_no_issues_found_makes_it_say_nothing(words: str) -> None:
    assert read_review(f"## Verdict: {words}\n").verdict is None


def test_a_backtick_within_the_name_of_a_file_joins_no_words() -> None:
    (found,) = read_review("[MUST] src/login`py:41 is wrong").findings

    assert "loginpy" not in found.location


@for_each("written", ["`src/login.py:41`", "`src/login.py`:41", "src/login.py:41"])
def test_a_place_may_stand_in_code(written: str) -> None:
    (found,) = read_review(f"[MUST] {written} is wrong").findings

    assert found.location == "src/login.py:41"


def test_digits_of_other_scripts_before_a_title_are_no_pictures() -> None:
    (found,) = read_review("### Minor Issues\n\n- \uff10\uff10Nothing says what happens\n").findings

    assert found.title == "\uff10\uff10Nothing says what happens"


def test_a_digit_at_the_beginning_of_a_word_is_no_line() -> None:
    (found,) = read_review("[MUST] docs/SPEC.md:7othing says what happens").findings

    assert found.location == ""
