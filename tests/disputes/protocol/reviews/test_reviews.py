"""Reading a review: the canonical form, tags, JSON; and that nothing becomes an approval by accident."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.reviews.fields import asked_in
from disputes.protocol.reviews.review import (
    VERDICT_WORDS,
    Found,
    ReadReview,
    Verdict,
    place,
    read_review,
    read_verdict,
)
from disputes.protocol.reviews.severity import SEVERITY_WORDS, read_severity
from disputes.protocol.text.documents import MAX_BYTES, DocumentError, Mode, scan
from disputes.protocol.text.locations import Place, read_place
from tasks.states import Severity, severity_rank
from tasks.text.places import location_of
from tests.cases import for_each
from tests.disputes.protocol.text.test_documents import QUADRATIC, growth

A, C, N = Verdict.APPROVED, Verdict.APPROVED_WITH_CONDITIONS, Verdict.NEEDS_REVISION
CRITICAL, HIGH, MEDIUM, LOW = Severity
CANONICAL = """\
## Review: Refuse a wrong password

Two points, one of them in the way.

### High Priority

- **ISSUE-R2-001**: The password is compared in plain text
  - **Location:** src/login.py:41
  - **Impact:** Whoever reads the table can log in.
  - **Suggestion:** Compare the hashes:
    ```python
    ## Verdict: APPROVED
    - **ISSUE-R2-009**: not one
    ```

### Low Priority

- **ISSUE-R2-002**: The message has a slip of the pen

## Verdict: NEEDS_REVISION
"""


def one(text: str) -> Found:
    """The one finding in this text."""
    (found,) = read_review(text).findings
    return found


def severities(text: str) -> list[str | None]:
    return [found.severity and found.severity.value for found in read_review(text).findings]


# --- The canonical form -----------------------------------------------------------------------------------


def test_the_canonical_form_is_read() -> None:
    read = read_review(CANONICAL)
    first, second = read.findings

    assert (read.verdict, read.raw_verdict, read.text) == (N, "NEEDS_REVISION", CANONICAL)
    assert (first.code, first.severity, first.line) == ("ISSUE-R2-001", HIGH, 7)
    assert first.title == "The password is compared in plain text"
    assert (first.location, first.impact) == ("src/login.py:41", "Whoever reads the table can log in.")
    assert first.suggestion.startswith("Compare the hashes:\n```python\n")
    assert (second.code, second.severity, second.line) == ("ISSUE-R2-002", LOW, 18)


def test_a_finding_keeps_its_own_words() -> None:
    first, second = read_review(CANONICAL).findings

    assert first.text == "\n".join(CANONICAL.splitlines()[6:14])
    assert second.text == "- **ISSUE-R2-002**: The message has a slip of the pen"


def test_what_a_finding_asks_for_is_told_without_its_frame() -> None:
    prose = "It is read at each call. Keep it in memory."
    heading = "### 1. Use a cache in `rate.py:1`\n\n"
    for text, asked in (
        (f"{heading}**Severity:** high\n**Location:** rate.py:1\n\n{prose}", prose),
        (f"{heading}**Problem:** {prose}\n- **Priority:** P1", f"**Problem:** {prose}"),
        (f"{heading}**Severity:** high", ""),
        (f"- [HIGH] {prose}\n  severity: high", f"- [HIGH] {prose}\n  severity: high"),
        ("", ""),
    ):
        assert asked_in(text) == asked, text


def test_windows_line_ends_make_no_difference() -> None:
    unix, windows = read_review(CANONICAL), read_review(CANONICAL.replace("\n", "\r\n"))

    assert windows.findings == unix.findings
    assert windows.verdict is unix.verdict


def test_an_empty_review_says_nothing() -> None:
    assert read_review("") == ReadReview(None, "", (), "")


def test_a_review_that_is_too_large_is_refused() -> None:
    with pytest.raises(DocumentError, match="bytes") as refusal:
        read_review("a" * (MAX_BYTES + 1))

    assert refusal.value.code == "too_large"


# --- Where a verdict stands -------------------------------------------------------------------------------

STANDS = [
    ("## Verdict: APPROVED", A),  # the canonical place
    ("### Verdict: NEEDS_REVISION", N),
    ("# Verdict: APPROVED", A),
    ("## Verdict\n\n**APPROVED**", A),  # a heading, the word below it
    ("## Verdict\nNEEDS_REVISION", N),
    ("## Verdict:\n\n\n\nAPPROVED", A),
    ("### Verdict: GAP-FLOW-001 - APPROVED", A),  # about a named thing
    ("**Verdict:** APPROVED", A),
    ("**Verdict**: APPROVED", A),
    ("**VERDICT: NEEDS_REVISION**", N),
    ("Verdict: APPROVED", A),
    ("verdict: approved", A),
    ("VERDICT APPROVED", A),
    ("- Verdict: APPROVED", A),  # a list item
    ("- **Verdict:** APPROVED", A),
    ("* **Verdict: APPROVED**", A),
    ("  Verdict: APPROVED", A),
    ("text\n\n## Verdict: APPROVED\n\nmore", A),  # anywhere
    ("## Verdict: APPROVED #", A),  # a closed heading
    ("## Verdict: NEEDS_REVISION\n## Verdict: APPROVED", N),  # several: the worst one counts
    ("## Verdict: APPROVED\n## Verdict: NEEDS_REVISION", N),
    ("## Verdict: APPROVED\n## Verdict: APPROVED WITH NOTES", C),
    ("## Verdict: APPROVED WITH NOTES\n## Verdict: NEEDS WORK", N),
    ("## Verdict: lovely\n## Verdict: APPROVED", A),  # one that can't be read does not count
    ("", None),  # nothing is never an approval
    ("APPROVED", None),  # the word alone states no verdict
    ("I approved it.", None),
    ("The verdict is APPROVED", None),  # prose
    ("LGTM", None),
    ("## Verdict", None),  # nothing below it
    ("## Verdict:", None),
    ("## Verdict: lovely", None),  # no word that is known
    ("## Verdict: not approved", Verdict.NEEDS_REVISION),  # refused, but with what?
    ("## Verdict: no NEEDS_CHANGES found", None),  # ARB-2
    ("Verdicts: APPROVED", None),  # another word
    ("Verdictapproved", None),
    ("> Verdict: APPROVED", None),  # ID-3: somebody else's words
    ("> > ## Verdict: APPROVED", None),
    ("```\nVerdict: APPROVED\n```", None),  # ID-3: an example
    ("~~~\n## Verdict: APPROVED\n~~~", None),
    ("````\n```\n```\nVerdict: APPROVED\n````", None),  # ID-3: fences nest
    ("```\nVerdict: APPROVED", None),  # a fence that is never closed
    ("```\nVerdict: APPROVED\n```\nVerdict: NEEDS_REVISION", N),
    ("> Verdict: NEEDS_REVISION\n\nVerdict: APPROVED", A),  # the quote does not count
    ("## Verdict\n\n```\nAPPROVED\n```", None),
    ("## Verdict\n\n> APPROVED", None),
    ("## Verdict\n\n```approved\n```", None),
    ("## Verdict\n\n## Accepted risks: approved", None),
    ("- a\n\n    ```\n    Verdict: APPROVED\n    ```", None),
    ("## Overall Assessment: APPROVED", A),  # the other places (VER-1)
    ("**Status:** APPROVED", A),
    ("## Recommendation: APPROVE", A),
]


@for_each(("text", "verdict"), STANDS, ids=repr)
def test_a_verdict_is_found_where_it_is_stated(text: str, verdict: Verdict | None) -> None:
    assert read_review(text).verdict is verdict


@for_each(
    ("text", "raw"),
    [
        ("## Verdict: APPROVED with minor observation", "APPROVED with minor observation"),
        ("**Verdict:** needs work, sorry", "needs work, sorry"),
        ("## Verdict\n\n**APPROVED**", "APPROVED"),
        ("## Verdict: NEEDS WORK\n## Verdict: APPROVED", "NEEDS WORK"),  # the words of the one that counts
        ("## Verdict: lovely", ""),  # what can't be read is no verdict
        ("## Verdict: APPROVED " + "x" * 200, ("APPROVED " + "x" * 200)[:80]),  # it fits its column
    ],
    ids=repr,
)
def test_the_words_of_the_verdict_are_kept(text: str, raw: str) -> None:
    assert read_review(text).raw_verdict == raw


# --- The words of a verdict (ARB-2) -----------------------------------------------------------------------

WORDS = [
    ("APPROVED", A),
    ("APPROVE", A),
    ("ACCEPT", A),
    ("ACCEPTED", A),
    ("APPROVED with minor observation", A),
    ("NO_ISSUES_FOUND", Verdict.NO_ISSUES_FOUND),
    ("No issues found.", Verdict.NO_ISSUES_FOUND),
    ("✓ APPROVED", A),
    ("**APPROVED**", A),
    ("`APPROVED`", A),
    ("approved!", A),
    ("APPROVED_WITH_NOTES", C),
    ("APPROVED_WITH_CONDITIONS", C),
    ("APPROVED WITH MODIFICATIONS", C),
    ("APPROVED WITH MINOR ISSUES", C),
    ("ACCEPT_WITH_MINOR", C),
    ("CONDITIONAL APPROVAL", C),
    ("Conditional   approval", C),
    ("NEEDS_REVISION", N),
    ("NEEDS REVISION", N),
    ("Needs-Revision", N),
    ("NEEDS WORK", N),
    ("NEEDS_CHANGES", N),
    ("REJECT", N),
    ("REJECTED", N),
    ("CHANGES REQUESTED", N),
    ("CHANGES_REQUESTED", N),
    # ARB-2: the last verdict word counts.
    ("APPROVED, then NEEDS_REVISION", N),
    ("was NEEDS_REVISION, now APPROVED", A),
    ("APPROVED in round 1; REJECTED in round 2", N),
    ("REJECTED in round 1; APPROVED in round 2", A),
    ("NEEDS_CHANGES or APPROVED WITH NOTES", None),  # a choice that nobody made
    # ARB-2: a denied word is none.
    ("no NEEDS_CHANGES found", None),
    ("APPROVED: no NEEDS_CHANGES found", A),
    ("APPROVED, no changes requested", A),
    ("not approved", None),
    ("NOT APPROVED: needs work", N),
    ("needs work, not approved", N),
    ("not rejected", None),
    # No verdict at all.
    ("", None),
    ("lovely", None),
    ("?", None),
    ("PENDING", None),
    ("disapproved", None),  # no part of a word is that word
    ("unapproved", None),
    ("approvedness", None),
    ("revision", None),
    ("work", None),
    ("needs", None),
    ("no issues", None),
    ("genehmigt", None),
    ("APPROVED" * 2, None),
    # A denial may stand some words before; a footnote mark or words in parentheses are conditions.
    ("cannot be approved", None),
    ("can't be approved yet", None),
    ("not yet approved", None),
    ("not to be accepted", None),
    ("never approve", None),
    ("isn't approved", None),
    ("NEEDS_CHANGES; no NEEDS_CHANGES in tests", N),
    ("APPROVED*", C),
    ("APPROVED (with two notes)", C),
]


@for_each(("words", "verdict"), WORDS, ids=repr)
def test_the_words_of_a_verdict_are_understood(words: str, verdict: Verdict | None) -> None:
    assert read_verdict(words) is verdict


@for_each(("phrase", "verdict"), VERDICT_WORDS.items(), ids=str)
@for_each("write", [str, str.upper, str.title, lambda phrase: phrase.replace(" ", "_")])
def test_every_phrase_is_understood_however_it_is_written(
    phrase: str, verdict: Verdict, write: Callable[[str], str]
) -> None:
    assert read_review(f"## Verdict: {write(phrase)}").verdict is verdict


@for_each(("phrase", "verdict"), VERDICT_WORDS.items(), ids=str)
@for_each("denial", ["not", "no"])
def test_a_denied_phrase_is_no_verdict(phrase: str, verdict: Verdict, denial: str) -> None:
    longer = [other for other in VERDICT_WORDS if other != phrase and f" {other} " in f" {phrase} "]

    assert read_verdict(f"{denial} {phrase}") is None or longer


def test_the_verdicts_are_ordered_from_best_to_worst() -> None:
    assert list(Verdict) == [A, Verdict.NO_ISSUES_FOUND, C, N]


# --- Shapes of a finding (FND-1) --------------------------------------------------------------------------

SHAPES = [
    ("- **ISSUE-R1-001**: text", ("ISSUE-R1-001", "text", None)),  # 1
    ("* **ISSUE-R1-001**: text", ("ISSUE-R1-001", "text", None)),
    ("- ISSUE-R1-001: text", ("ISSUE-R1-001", "text", None)),
    ("- **ISSUE-R1-001:** text", ("ISSUE-R1-001", "text", None)),
    ("ISSUE-R1-001: text", ("ISSUE-R1-001", "text", None)),
    ("**ISSUE-R1-001** text", ("ISSUE-R1-001", "text", None)),
    ("1. **ISSUE-R7-001 (LOW):** text", ("ISSUE-R7-001", "text", "low")),  # 2
    ("12. ISSUE-R7-001 (CRITICAL): text", ("ISSUE-R7-001", "text", "critical")),
    ("### ISSUE-R8-001 (LOW): text", ("ISSUE-R8-001", "text", "low")),  # 3
    ("#### ISSUE-R8-001 (high): text", ("ISSUE-R8-001", "text", "high")),
    ("### ISSUE-R8-001 (Nice to have): text", ("ISSUE-R8-001", "text", "low")),  # SEV-9
    ("### [ISSUE-R1-001]: text", ("ISSUE-R1-001", "text", None)),  # 4
    ("- **[ISSUE-R1-001]**: text", ("ISSUE-R1-001", "text", None)),
    ("### ISSUE-R9-001: text\n**Severity:** HIGH", ("ISSUE-R9-001", "text", "high")),  # 6
    ("### ISSUE-R9-001: text\n**Severity**: low", ("ISSUE-R9-001", "text", "low")),
    ("### ISSUE-R9-001: text\n- Severity: Major", ("ISSUE-R9-001", "text", "high")),
    ("**ISSUE-R7-001: text**", ("ISSUE-R7-001", "text", None)),  # 7
    ("## Critical Issues\n### ISSUE-R1-001: text", ("ISSUE-R1-001", "text", "critical")),  # 8
    ("- **ISSUE-R1-1**: text", ("ISSUE-R1-1", "text", None)),  # tolerated short numbers
    ("- **ISSUE-R100-100**: text", ("ISSUE-R100-100", "text", None)),
    ("### ISSUE-R1-001", ("ISSUE-R1-001", "ISSUE-R1-001", None)),  # without a title: its code
    ("### ISSUE-R1-001\n- Impact: boo", ("ISSUE-R1-001", "boo", None)),  # or what it does
    ("### ISSUE-R11-001: text (Medium)", ("ISSUE-R11-001", "text", "medium")),
    ("### ISSUE-R11-001: text (High)", ("ISSUE-R11-001", "text", "high")),
    ("- **ISSUE-R1-001** (HIGH): text", ("ISSUE-R1-001", "text", "high")),
    ("- **ISSUE-R1-001** [HIGH]: text", ("ISSUE-R1-001", "text", "high")),
]


@for_each(("text", "expected"), SHAPES, ids=repr)
def test_a_finding_is_read_in_its_shape(text: str, expected: tuple[str, str, str | None]) -> None:
    found = one(text)

    assert (found.code, found.title, found.severity and found.severity.value) == expected


@for_each(
    "text",
    [
        "See ISSUE-R1-001: text",  # prose about one
        "As ISSUE-R1-001 says",
        "| ISSUE-R1-001 | text |",  # a table is the coder's form
        "- issue-r1-001: text",  # ID-1: no canonical id
        "- ISSUE-1: text",
        "- ISSUE-R1: text",
        "- ISSUE-RX-001: text",
        "- XISSUE-R1-001: text",
        "- [x] **ISSUE-R1-001** - FIXED",  # FND-4: the state of an earlier one
        "> - **ISSUE-R1-001**: text",  # ID-3
        "```\n- **ISSUE-R1-001**: text\n```",
        "~~~\n### ISSUE-R1-001: text\n~~~",
        "````\n```\n```\n- ISSUE-R1-001: text\n````",
        "    - ISSUE-R1-001: text",  # indented code
        "None.",  # an empty section
        "### High Priority\n\nNone identified.",
        "",
    ],
    ids=repr,
)
def test_what_is_no_statement_is_no_finding(text: str) -> None:
    assert read_review(text).findings == ()


@for_each(
    "text",
    [
        "#### ISSUE-R1-001: The sum is wrong - RESOLVED",  # a heading with its state
        "- ISSUE-R1-001: FIXED",  # a list of states
        "- **ISSUE-R1-001**: RESOLVED in this round",
    ],
    ids=repr,
)
def test_a_finding_that_is_called_resolved_is_not_raised_again(text: str) -> None:
    assert read_review(text).findings == ()


@for_each(
    ("text", "codes"),
    [
        # a number of four digits is no id
        ("- ISSUE-R1-0012: text", []),
        # ID-4: a range is several findings
        (
            "- ISSUE-R1-001 through ISSUE-R1-003: text",
            ["ISSUE-R1-001", "ISSUE-R1-002", "ISSUE-R1-003"],
        ),
    ],
    ids=repr,
)
def test_a_code_is_read_to_its_end(text: str, codes: list[str]) -> None:
    assert [found.code for found in read_review(text).findings] == codes


def test_one_code_may_stand_twice() -> None:
    # ID-2: nothing is merged by id alone.
    assert len(read_review("- ISSUE-R1-001: a\n- ISSUE-R1-001: b").findings) == 2


# --- Tags (ARB-1) -----------------------------------------------------------------------------------------

TAGS = [("MUST", "high"), ("SHOULD", "medium"), ("CRITICAL", "critical"), ("HIGH", "high"),
        ("MEDIUM", "medium"), ("LOW", "low")]  # fmt: skip


@for_each(("tag", "severity"), TAGS)
@for_each("form", ["[{}] text", "- [{}] text", "* [{}] text", "3. [{}] text", "**[{}]** text",
                                  "**[{}] text**", "- **[{}]** text", "[{}]text"])  # fmt: skip
def test_a_tag_at_the_start_of_a_line_is_a_finding(form: str, tag: str, severity: str) -> None:
    found = one(form.format(tag))

    assert (found.title, found.severity.value, found.raw_severity) == ("text", severity, tag)
    assert found.code == ""


@for_each(
    "text",
    [
        "text [MUST] more",  # not at the start
        "[must] text",  # a tag is in capitals
        "[NEVER] text",  # no tag that is known
        "MUST text",  # no brackets
        "(MUST) text",
        "> [MUST] text",  # ID-3
        "```\n[MUST] text\n```",
        "    [MUST] text",  # indented code
    ],
    ids=repr,
)
def test_a_tag_elsewhere_is_none(text: str) -> None:
    assert read_review(text).findings == ()


def test_tagged_lines_follow_each_other() -> None:
    found = read_review("[MUST] a\n[SHOULD] b\nmore of b\n\n- [LOW] c").findings

    assert [(item.title, item.severity.value, item.line) for item in found] == [
        ("a", "high", 1), ("b", "medium", 2), ("c", "low", 5),
    ]  # fmt: skip
    assert found[1].text == "[SHOULD] b\nmore of b"


@for_each(
    ("text", "location"),
    [
        ("[MUST] src/calls.py:41 retries at once", "src/calls.py:41"),  # ARB-1: path:line anywhere
        ("[MUST] It retries at once (src/calls.py:41)", "src/calls.py:41"),
        ("[MUST] It retries at once - see `src/calls.py:41`", "src/calls.py:41"),
        ("[MUST] src/calls.py retries at once", ""),  # without a line it may be any word with a dot
        ("[MUST] It takes 1.5 seconds", ""),
        ("[MUST] a.py:1 is wrong\nLocation: b.py:2", "b.py:2"),  # a field is more precise
    ],
    ids=repr,
)
def test_the_place_is_found_anywhere_in_the_line(text: str, location: str) -> None:
    assert one(text).location == location


def test_a_place_is_the_same_in_prose_and_data_whatever_the_file_is_called() -> None:
    for path in (
        "src/a.py", "app/[id]/page.tsx", "app/(shop)/$slug.tsx", "über uns/ü ber.md", ".gitmodules",
        ".docker/gitpod/Dockerfile", "my.pkg/Makefile", "messages.properties", "@a/cli/b.js", "src/@a/b.js",
    ):  # fmt: skip
        entry = {"title": "Lock it", "severity": "high", "file": path, "line": 7}
        data = json.dumps({"verdict": "needs_revision", "findings": [entry]})
        for text in (data, f"- [HIGH] `{path}:7` - Lock it", f"- [HIGH] Lock it\n  **Location:** `{path}:7`"):
            (found,) = read_review(text).findings
            assert place(found.location) == (path, 7), text
            assert read_place(location_of(path, 7)) == Place(path, 7, 7)


@for_each(
    ("text", "title", "severity"),
    [
        ("[MUST] It adds twice - see the loop", "It adds twice", "high"),
        ("[MUST]: It adds twice", "It adds twice", "high"),
        ("- **[LOW]**: It adds twice", "It adds twice", "low"),
    ],
)
def test_the_title_of_a_tagged_line_is_its_words(text: str, title: str, severity: str) -> None:
    found = one(text)

    assert (found.title, found.severity.value) == (title, severity)


# --- Severity (SEV-9, SEV-10) -----------------------------------------------------------------------------

SEVERITIES = [
    ("CRITICAL", CRITICAL),
    ("High", HIGH),
    ("medium", MEDIUM),
    (" low ", LOW),
    ("**HIGH**", HIGH),  # marks around it
    ("`LOW`", LOW),
    ("HIGH.", HIGH),
    ("MAJOR", HIGH),  # SEV-9: foreign words
    ("MUST", HIGH),
    ("Important", HIGH),
    ("MODERATE", MEDIUM),
    ("SHOULD", MEDIUM),
    ("MINOR", LOW),
    ("NIT", LOW),
    ("Nice to have", LOW),
    ("", None),  # none is unknown
    ("urgent", None),
    ("highest", None),  # no part of a word
    ("not high", None),
    ("3", None),
    ("High Risk", HIGH),
    ("LOW-MEDIUM", MEDIUM),
]


@for_each(("words", "severity"), SEVERITIES, ids=repr)
def test_the_words_of_a_severity_are_understood(words: str, severity: Severity | None) -> None:
    assert read_severity(words) is severity


@for_each(("word", "severity"), SEVERITY_WORDS.items(), ids=str)
def test_every_word_of_a_severity_is_understood_in_a_field(word: str, severity: Severity) -> None:
    assert one(f"### ISSUE-R1-001: text\n**Severity:** {word.upper()}").severity is severity


SECTIONS = [
    ("### Critical Issues", "critical"),
    ("## Critical Issues", "critical"),
    ("#### HIGH Priority", "high"),
    ("### High Priority", "high"),
    ("### High Priority Issues", "high"),
    ("### Hohe Priorität", "high"),
    ("### Kritische Probleme", "critical"),
    ("### Priorité haute", "high"),
    ("### Problemas menores", "low"),
    ("### HIGH", "high"),
    ("### Medium", "medium"),
    ("### Medium Priority", "medium"),
    ("### Low Priority", "low"),
    ("### Low:", "low"),
    ("### Low Severity", "low"),
    ("### Nits", "low"),  # SEV-9: a foreign word
    ("### **High**", "high"),
    ("###### High Priority ######", "high"),
    ("### Highlights", None),  # another word
    ("### High hopes", None),
    ("### Notes", None),  # SEV-9: no marker, no severity
    ("> ### High Priority", None),  # ID-3
    ("```\n### High Priority\n```", None),
    ("### Issues: LOW", "low"),
    ("### Medium/Low Priority", "low"),
    ("### Low Priority / Nits", "low"),
    ("### Minor Issues (Non-Blocking)", "low"),
    ("### Critical Issues (Must Fix)", "critical"),
]


@for_each(("heading", "severity"), SECTIONS, ids=repr)
def test_a_section_gives_its_findings_a_severity(heading: str, severity: str | None) -> None:
    assert severities(f"{heading}\n\n- **ISSUE-R1-001**: text") == [severity]


@for_each(
    ("text", "expected"),
    [
        # a section holds until the next one
        ("### High\n- ISSUE-R1-001: a\n- ISSUE-R1-002: b\n### Low\n- ISSUE-R1-003: c", "high high low"),
        # a heading of level 2 ends it
        ("### High\n- ISSUE-R1-001: a\n## Other\n- ISSUE-R1-002: b", "high -"),
        # findings that are headings stand below it
        ("## High\n### ISSUE-R1-001: a\n### ISSUE-R1-002: b", "high high"),
        # prose and blank lines do not end it
        ("### High\n\nText.\n\n- ISSUE-R1-001: a\n\nText.\n\n- ISSUE-R1-002: b", "high high"),
        # the section at the start of the finding counts, not the one that follows
        ("### Low\n- ISSUE-R1-001: a\n### High", "low"),
        # a lower heading inside a section of level 2 does not end it
        ("## High\n### Details\n- ISSUE-R1-001: a", "high"),
        ("### High Priority\n- ISSUE-R1-001: a\n### Remarks\n- ISSUE-R1-002: b", "high -"),
        ("### High Priority\n- ISSUE-R1-001: a\n### Medium/Low Priority\n- ISSUE-R1-002: b", "high low"),
    ],
    ids=repr,
)
def test_a_section_ends_where_the_next_begins(text: str, expected: str) -> None:
    assert [severity or "-" for severity in severities(text)] == expected.split()


# SEV-10: heading, parenthesis and field disagree: the higher one counts.
DISAGREEING = [
    ("### {}\n- **ISSUE-R1-001 ({})**: text", "heading and parenthesis"),
    ("- **ISSUE-R1-001 ({})**: text\n  - **Severity:** {}", "parenthesis and field"),
    ("### {}\n- **ISSUE-R1-001**: text\n  - Severity: {}", "heading and field"),
    ("### {}\n[{}] text", "heading and tag"),
    ("[{}] text\nSeverity: {}", "tag and field"),
]


@for_each("one_word", Severity)
@for_each("other_word", Severity)
@for_each("form", [form for form, _ in DISAGREEING], ids=[name for _, name in DISAGREEING])
def test_where_severities_disagree_the_higher_one_counts(
    form: str, one_word: Severity, other_word: Severity
) -> None:
    text = form.format(one_word.upper(), other_word.upper())

    assert one(text).severity is max(one_word, other_word, key=severity_rank)


@for_each(
    ("text", "raw"),
    [
        ("- **ISSUE-R1-001 (Major)**: text", "Major"),  # the word as written
        ("### High Priority\n- ISSUE-R1-001: text", "high"),  # from the section
        ("[MUST] text", "MUST"),
        ("- ISSUE-R1-001: text", ""),  # none
        ("- ISSUE-R1-001: text\n  - Severity: tremendous", "tremendous"),  # an unknown one is kept
        ("- ISSUE-R1-001: text\n  - Severity: " + "x" * 90, "x" * 40),  # it fits its column
    ],
    ids=repr,
)
def test_the_word_of_the_severity_is_kept(text: str, raw: str) -> None:
    assert one(text).raw_severity == raw


@for_each(
    "text",
    [
        "### ISSUE-R1-001: text\n**Severity:** HIGH\n\nThe loop never ends.",  # the usual way to write one
        "- **ISSUE-R1-001**: text\n  - **Severity:** HIGH\n    It blocks the release.",
        "- **ISSUE-R1-001**: text\n  - **Severity:** HIGH (blocks the release)",
        "- **ISSUE-R1-001**: text\n  - **Severity:** HIGH - blocks the release",
    ],
    ids=repr,
)
def test_a_severity_is_read_though_words_follow(text: str) -> None:
    assert one(text).severity is HIGH


# --- Fields -----------------------------------------------------------------------------------------------


@for_each(
    ("label", "field"),
    [
        ("Location", "location"),
        ("Section", "location"),
        ("Line", "location"),
        ("Lines", "location"),
        ("Where", "location"),
        ("File", "location"),
        ("Impact", "impact"),
        ("Risk", "impact"),
        ("Why it matters", "impact"),
        ("Suggestion", "suggestion"),
        ("Suggested fix", "suggestion"),
        ("Recommendation", "suggestion"),
        ("Fix", "suggestion"),
        ("Required change", "suggestion"),
    ],
)
@for_each("form", ["- {}: word", "**{}:** word", "**{}**: word", "  - **{}:** word", "{}: word"])
def test_a_field_is_read_under_each_of_its_labels(label: str, field: str, form: str) -> None:
    found = one(f"- **ISSUE-R1-001**: text\n{form.format(label)}")

    assert getattr(found, field) == "word"


@for_each(
    ("body", "suggestion"),
    [
        ("Suggestion: a\n  b", "a\nb"),  # it goes on below
        ("Suggestion: a\n\nb", "a\nb"),  # also after a blank line
        ("Suggestion:\n  a", "a"),  # or begins there
        ("Suggestion: a\nImpact: b", "a"),  # until the next field
        ("Suggestion: a\nSuggestion: b", "a\nb"),  # said twice
        ("Suggestion: a\n```\nImpact: b\n```", "a\n```\nImpact: b\n```"),  # code is no field
        ("Suggestion: a\n> Impact: b", "a\n> Impact: b"),  # nor is a quote
        ("Note: a", "a"),
        ("Suggestion: a\nNote: b", "a"),  # beside a suggestion it is none
        ("Remark: a", ""),  # no field that is known
        ("SUGGESTION: a", "a"),
        ("", ""),
    ],
    ids=repr,
)
def test_a_field_goes_on_until_the_next_one(body: str, suggestion: str) -> None:
    assert one(f"- **ISSUE-R1-001**: text\n{body}").suggestion == suggestion


@for_each(
    ("after", "ends"),
    [
        ("### Other", True),  # any heading
        ("###### Other", True),
        ("- ISSUE-R1-002: next", True),  # the next finding
        ("[LOW] next", True),
        ("```\n### Other\n```", False),  # but not one that is only shown
        ("> ### Other", False),
        ("- another point", False),
    ],
    ids=repr,
)
def test_a_finding_ends_at_the_next_heading_or_finding(after: str, ends: bool) -> None:
    first = read_review(f"- ISSUE-R1-001: text\n{after}\nlast line").findings[0]

    assert first.text.endswith("last line") is not ends


def test_a_title_fits_its_column() -> None:
    assert one("[MUST] " + "x " * 400).title == ("x " * 400)[:500]


PLACES = [
    ("src/a.py:41", ("src/a.py", 41)),
    ("src/a.py", ("src/a.py", None)),
    ("`src/a.py:41`", ("src/a.py", 41)),
    ("`src/a.py`:41", ("src/a.py", 41)),
    ("a.py", ("a.py", None)),
    ("see src/a.py:12 and b.py:3", ("src/a.py", 12)),  # the first one
    ("src/a-b_c+d.tsx:7", ("src/a-b_c+d.tsx", 7)),
    ("docs/guide", ("docs/guide", None)),
    (".github/workflows/ci.yml:3", (".github/workflows/ci.yml", 3)),
    ("src/a.py line 41", ("src/a.py", 41)),
    ("(src/a.py:41)", ("src/a.py", 41)),
    ("In @commitlint/cli/a.js:41, twice", ("@commitlint/cli/a.js", 41)),
    ("./src/a.py:41", ("src/a.py", 41)),
    ("src/a.py:41-50", ("src/a.py", 41)),  # a range begins there
    ("a.py:", ("a.py", None)),
    ("größe.py:3", ("größe.py", 3)),
    ("Makefile", ("", None)),  # a word alone may be any word
    ("section three", ("", None)),
    ("", ("", None)),
    ("a/" + "b" * 400, (("a/" + "b" * 400)[:300], None)),  # it fits its column
]


@for_each(("location", "expected"), PLACES, ids=lambda value: repr(value)[:40])
def test_a_place_is_a_path_and_a_line(location: str, expected: tuple[str, int | None]) -> None:
    assert place(location) == expected


# --- JSON -------------------------------------------------------------------------------------------------


def test_the_structured_form_is_read() -> None:
    entry = {
        "title": " The sum is wrong ", "severity": "MUST", "code": "issue-r1-001", "location": "a.py:3",
        "impact": "b", "suggestion": "c", "text": "d",
    }  # fmt: skip
    read = read_review({"verdict": "NEEDS_CHANGES", "findings": [entry], "text": "All of it."})

    assert (read.verdict, read.raw_verdict, read.text) == (N, "NEEDS_CHANGES", "All of it.")
    assert read.findings == (
        Found(
            "The sum is wrong",
            HIGH,
            "MUST",
            "ISSUE-R1-001",
            "a.py:3",
            "b",
            "c",
            "d",
            ordinal=1,
            format="structure",
        ),  # fmt: skip
    )


@for_each(
    ("document", "verdict"),
    [
        ({}, None),  # an empty one is no approval
        ({"verdict": ""}, None),
        ({"verdict": None}, None),
        ({"verdict": "APPROVED"}, A),
        ({"verdict": "approved"}, A),
        ({"verdict": "APPROVED_WITH_CONDITIONS"}, C),
        ({"verdict": "NEEDS_REVISION"}, N),
        ({"verdict": "REJECTED", "findings": []}, N),
        ({"text": "Verdict: APPROVED"}, None),  # the text is only kept
        ({"Verdict": "APPROVED"}, None),
    ],
    ids=str,
)
def test_a_structured_verdict_is_read(document: dict[str, Any], verdict: Verdict | None) -> None:
    assert read_review(document).verdict is verdict


HIGH_ONE = {"title": "a", "severity": "high"}
MALFORMED = [
    ({"verdict": "lovely"}, [(0, "verdict 'lovely' is not known")]),
    ({"verdict": "not approved"}, [(0, "verdict 'not approved' is not known")]),
    ({"verdict": 1}, [(0, "verdict '1' is not known")]),
    ({"verdict": True}, [(0, "verdict 'True' is not known")]),
    ({"verdict": {"a": 1}}, [(0, "verdict \"{'a': 1}\" is not known")]),
    ({"verdict": "x" * 99}, [(0, f"verdict {'x' * 60!r} is not known")]),  # not all of it
    ({"findings": None}, [(0, "findings must be a list")]),
    ({"findings": {}}, [(0, "findings must be a list")]),
    ({"findings": "a"}, [(0, "findings must be a list")]),
    ({"findings": [1]}, [(1, "finding 1 needs a title")]),
    ({"findings": [None]}, [(1, "finding 1 needs a title")]),
    ({"findings": [{}]}, [(1, "finding 1 needs a title")]),
    ({"findings": [{"title": "  ", "severity": "high"}]}, [(1, "finding 1 needs a title")]),
    (
        {"findings": [{"title": "a"}]},
        [(1, "finding 1 needs a severity: critical, high, medium or low")],
    ),
    (
        {"findings": [HIGH_ONE, {"title": "a", "severity": "urgent"}]},
        [(2, "finding 2 needs a severity: critical, high, medium or low")],
    ),
    (
        {"findings": [{"title": "a", "severity": None}]},
        [(1, "finding 1 needs a severity: critical, high, medium or low")],
    ),
    # every fault at once, not only the first
    (
        {"verdict": "x", "findings": ["y", HIGH_ONE, {"title": "z"}]},
        [
            (0, "verdict 'x' is not known"),
            (1, "finding 1 needs a title"),
            (3, "finding 3 needs a severity: critical, high, medium or low"),
        ],
    ),
    ({"findings": [{"title": None, "severity": "high"}]}, [(1, "finding 1 needs a title")]),
]


@for_each(("document", "problems"), MALFORMED, ids=lambda value: str(value)[:60])
def test_a_malformed_structure_is_refused_with_every_fault(
    document: dict[str, Any], problems: list[tuple[int, str]]
) -> None:
    with pytest.raises(DocumentError) as refusal:
        read_review(document)

    assert refusal.value.code == "malformed_review"
    assert [(problem.line, problem.reason) for problem in refusal.value.problems] == problems


@for_each("key", ["code", "location", "impact", "suggestion", "text"])
@for_each("nothing", ["", None, "absent"])
def test_what_a_structured_finding_does_not_say_is_empty(key: str, nothing: str | None) -> None:
    entry = HIGH_ONE if nothing == "absent" else {**HIGH_ONE, key: nothing}
    (found,) = read_review({"findings": [entry]}).findings

    assert getattr(found, key) == ""


@for_each(("key", "limit"), [("title", 500), ("code", 24)])
def test_a_structured_field_fits_its_column(key: str, limit: int) -> None:
    (found,) = read_review({"findings": [{**HIGH_ONE, key: "X" * 999}]}).findings

    assert getattr(found, key) == "X" * limit


# --- Garbage is never an approval (ARB-2) -----------------------------------------------------------------

PIECES = st.sampled_from([
    "Verdict", "verdict:", "VERDICT", "## ", "**", "- ", "> ", "```", "~~~", "\n", "\n\n", " ", ":",
    "APPROVED", "approve", "NEEDS_REVISION", "not ", "no ", "accepted", "rejected", "[MUST]",
    "ISSUE-R1-001", "Severity: ", "HIGH", "### High Priority\n", "Location: a.py:3", "text", "\r\n", "\t",
    "\x00", "\ud800", "é", "(LOW)",
])  # fmt: skip
GARBAGE = st.text() | st.lists(PIECES | st.text(max_size=5), max_size=40).map("".join)


def states_a_verdict(text: str) -> bool:
    """Whether some line that states something begins, marks aside, with the word `verdict`."""
    plain = (re.sub(r"[#\s*\-]", "", line.text).lower() for line in scan(text) if line.mode is Mode.STATED)
    return any(line.startswith("verdict") for line in plain)


@given(GARBAGE)
def test_an_approval_is_justified_by_a_line_that_states_a_verdict(text: str) -> None:
    # A refusal may stand anywhere: the safe side.
    assert read_review(text).verdict in {None, N} or states_a_verdict(text)


@given(GARBAGE)
def test_an_approval_has_its_word_in_the_text(text: str) -> None:
    read = read_review(text)

    assert read.verdict not in {A, C} or re.search("approv|accept|no.issues.found", text.lower())
    assert read.verdict is None or read_verdict(read.raw_verdict) is not None or len(read.raw_verdict) == 80


@given(GARBAGE)
def test_a_stated_rejection_is_never_lost(text: str) -> None:
    assert read_review(f"## Verdict: REJECTED\n\n{text}").verdict is N


@given(GARBAGE)
def test_whatever_the_text_it_is_read_and_kept(text: str) -> None:
    read = read_review(text)

    assert read.text == text
    for found in read.findings:
        assert found.title
        assert len(found.title) <= 500
        assert found.severity is None or found.severity in Severity
        assert scan(text)[found.line - 1].mode is Mode.STATED


@given(GARBAGE)
def test_what_stands_in_a_fence_is_an_example(text: str) -> None:
    read = read_review(f"{'`' * 99}\n{text}\n{'`' * 99}")

    assert (read.verdict, read.findings) == (None, ())


@given(GARBAGE)
def test_what_is_quoted_is_no_statement(text: str) -> None:
    read = read_review("\n".join(f"> {line}" for line in re.split(r"\r\n|\r|\n", text)))

    assert (read.verdict, read.findings) == (None, ())


@given(GARBAGE)
def test_the_words_of_a_verdict_are_words(words: str) -> None:
    found = read_verdict(words)
    plain = re.sub("[^a-z]+", " ", words.lower())

    assert found is None or any(
        phrase in plain for phrase, verdict in VERDICT_WORDS.items() if verdict is found
    )


KEYS = st.sampled_from(["verdict", "findings", "title", "severity", "code", "text"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.sampled_from(["high", "APPROVED"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, ANY_JSON))
def test_any_json_object_is_read_or_refused(document: dict[str, Any]) -> None:
    try:
        read = read_review(document)
    except DocumentError as refusal:
        read, problems = None, refusal.problems
    else:
        problems = []

    assert (read is None) is bool(problems)
    assert read is None or read.verdict is read_verdict(read.raw_verdict)


# --- There and back ---------------------------------------------------------------------------------------

WORDING = st.from_regex(r"[A-Za-z][a-z ,;]{0,60}[a-z]", fullmatch=True)
WRITTEN = st.lists(
    st.tuples(
        st.integers(1, 999),
        st.sampled_from(list(Severity)),
        WORDING,
        st.from_regex(r"[a-z]{1,9}/[a-z]{1,9}\.py:[1-9][0-9]{0,4}", fullmatch=True),
        WORDING,
    ),
    max_size=8,
)


@given(WRITTEN, st.sampled_from(list(Verdict)))
def test_what_is_written_in_the_canonical_form_is_read_back(
    written: list[tuple[int, Severity, str, str, str]], verdict: Verdict
) -> None:
    parts = [
        f"### {severity.capitalize()} Priority\n\n- **ISSUE-R3-{number:03d}**: {title}\n"
        f"  - **Location:** {location}\n  - **Suggestion:** {suggestion}\n"
        for number, severity, title, location, suggestion in written
    ]
    read = read_review("\n".join(["## Review: A task\n", *parts, f"## Verdict: {verdict}"]))

    grave = any(severity in {CRITICAL, HIGH} for _, severity, *_ in written)
    plain = verdict in {A, Verdict.NO_ISSUES_FOUND}
    assert read.verdict is (C if plain and grave else verdict)
    assert [(f.code, f.severity, f.title, f.location, f.suggestion) for f in read.findings] == [
        (f"ISSUE-R3-{number:03d}", *rest) for number, *rest in written
    ]


@given(st.lists(st.tuples(st.sampled_from(TAGS), WORDING), max_size=8))
def test_what_is_written_with_tags_is_read_back(written: list[tuple[tuple[str, str], str]]) -> None:
    read = read_review("\n".join(f"- [{tag}] {title}" for (tag, _), title in written))

    assert [(found.severity.value, found.title) for found in read.findings] == [
        (severity, title) for (_, severity), title in written
    ]


# --- Work -------------------------------------------------------------------------------------------------

LINEAR = {
    "prose": (lambda n: "Some ordinary words of a review.\n" * n, 300),
    "findings": (lambda n: "- **ISSUE-R1-001**: text\n  - Impact: words\n" * n, 200),
    "one long finding": (lambda n: "[MUST] text\n" + "words\n" * n, 1300),
    "verdicts": (lambda n: "Verdict: APPROVED\n" * n, 500),
    "headings": (lambda n: "### High Priority\n" * n, 500),
    "words of a verdict": (lambda n: "Verdict: " + "approved not " * n, 800),
    "marks before a verdict": (lambda n: "# *-" * n, 1700),
    "colons after a verdict": (lambda n: "Verdict" + " :*" * n, 1700),
    "blanks before a field": (lambda n: "[MUST] a\n" + " " * n + "- " + " " * n, 5000),
    "letters of a label": (lambda n: "[MUST] a\n" + "ab " * n, 3300),
    "parentheses": (lambda n: "ISSUE-R1-001 (" + "a " * n, 5000),
    "paragraphs": (lambda n: "`a.py:3` Take the lock (high). It leaks.\n\n" * n, 200),
    "sentences": (lambda n: "It leaks (see below). " * n + "(high).", 500),
    "counted sentences": (lambda n: "Request changes.\n\nFirst, `a.py:3` leaks.\n\n" * n, 200),
    "blanks below a sentence": (lambda n: "Request changes.\n" + "\n" * n, 1000),
    "parts of a place": (lambda n: "a/" * n + ":1\n", 2000),
    "clauses": (lambda n: "LGTM, " + "but it leaks, " * n + "but it leaks (high), please fix.", 500),
    "parts that fold": (lambda n: "<details>\n<summary>High</summary>\n\n- **a b**\n\n</details>\n" * n, 200),
    "a scale": (lambda n: "- **S1** it leaks\n" * n, 200),
    "refusals": (lambda n: "I " * n + "I cannot approve this", 1500),
    "bold places": (lambda n: "**a.py:3**\n\n" * n, 500),
    "code blocks": (lambda n: "```\n[MUST] text\n```\n" * n, 500),
}


@for_each("name", LINEAR)
def test_the_work_grows_with_the_length(name: str) -> None:
    make, size = LINEAR[name]

    assert growth(read_review, make, size) < QUADRATIC / 2


@for_each(
    ("make", "size"),
    [
        (lambda n: "[MUST] " + "a" * n, 700),  # the place is sought in the title from every letter on
        (lambda n: "[MUST] text\nLocation: " + "a" * n, 700),
        (lambda n: "[MUST] " + "." * n, 700),
    ],
    ids=["a long word", "a long location", "dots"],
)
def test_the_work_on_a_place_grows_with_its_length(make: Callable[[int], str], size: int) -> None:
    assert (
        growth(lambda text: [place(f.location) for f in read_review(text).findings], make, size)
        < QUADRATIC / 2
    )


# --- YAML front matter ------------------------------------------------------------------------------------

FRONT = """\
---
verdict: NEEDS_REVISION
findings:
  - code: ISSUE-R1-001
    severity: high
    title: "Failed calls: retried at once"
    location: src/calls.py:12
    impact: A dead server is hammered.
    suggestion: |
      Wait between tries.
      Twice as long each time.
  - {severity: low, title: A name is vague}
---
# Review

ISSUE-R1-001 is what I worry about. The rest is fine.
"""


def test_front_matter_is_the_structured_form_and_the_markdown_below_it_prose() -> None:
    as_json = {
        "verdict": "NEEDS_REVISION",
        "findings": [
            {
                "code": "ISSUE-R1-001", "severity": "high", "title": "Failed calls: retried at once",
                "location": "src/calls.py:12", "impact": "A dead server is hammered.",
                "suggestion": "Wait between tries.\nTwice as long each time.\n",
            },
            {"severity": "low", "title": "A name is vague"},
        ],
    }  # fmt: skip
    read, same = read_review(FRONT), read_review(as_json)
    assert [replace(found, line=0) for found in read.findings] == list(same.findings)
    assert [found.line for found in read.findings] == [4, 12]
    assert (read.verdict, read.warnings) == (same.verdict, ())
    assert read.text.startswith("# Review\n\nISSUE-R1-001 is what")
    assert read_review(FRONT.replace("\n", "\r\n")).findings == read.findings


def test_prose_below_front_matter_approves_nothing_and_loses_nothing() -> None:
    more = "\n## Verdict: NEEDS_REVISION\n\n- **ISSUE-R1-009** (HIGH): Passwords are logged\n"
    read = read_review(FRONT.replace("verdict: NEEDS_REVISION", "verdict: APPROVED") + more)
    assert read.verdict is Verdict.NEEDS_REVISION
    assert [(each.line, "Passwords are logged" in each.reason) for each in read.warnings] == [(20, True)]


def test_front_matter_that_cannot_be_taken_is_refused_with_its_line() -> None:
    deep = "verdict: APPROVED\nfindings: " + "[" * 10 + "]" * 10
    faults = {
        FRONT.replace("severity: low", "servity: low"): (12, "servity"),
        FRONT.replace("findings:", "issues: []\nfindings:"): (2, "issues"),
        FRONT.replace("code: ISSUE-R1-001", "code: &a ISSUE-R1-001"): (4, "anchors and aliases"),
        "---\nverdict: *a\n---\n": (2, "anchors and aliases"),
        "---\nverdict: [\n---\n": (3, "no YAML"),
        f"---\nverdict: {'[' * 50_000}\n---\n": (2, "too deeply"),
        f"---\nverdict: {'x' * 70_000}\n---\n": (2, "are the most"),
        "---\nverdict: a\nverdict: b\n---\n": (3, "twice"),
        f"---\n{deep}\n---\n": (3, "nested"),
        "---\nverdict: !!python/name:os.getcwd boo\n---\n": (0, "not known"),
        FRONT.replace("title: A name is vague", "title: ''"): (2, "needs a title"),
    }
    for text, (line, reason) in faults.items():
        with pytest.raises(DocumentError) as caught:
            read_review(text)
        assert reason in str(caught.value), text
        assert caught.value.problems[0].line == line, text


def test_other_front_matter_and_a_rule_at_the_top_are_markdown() -> None:
    counts = "---\nreviewed: today\nfindings:\n  critical: 0\n  high: 1\nstatus: issues_found\n---\n"
    noted = "---\nreviewer: R\nverdict: needs revision\nfiles: 3\n---\n"
    for top in ("---\ntitle: Review of today\n---\n", counts, noted, "---\n\n", "---\n"):
        read = read_review(f"{top}\n- **ISSUE-R1-001** (HIGH): It leaks\n\nVerdict: NEEDS_REVISION\n")
        assert [found.code for found in read.findings] == ["ISSUE-R1-001"]
