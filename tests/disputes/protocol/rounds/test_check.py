"""One round explained by `check_round`: from the texts alone, for people and as JSON."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from disputes.protocol.rounds.check import as_json, check_round, explain
from disputes.protocol.text.documents import MAX_BYTES, DocumentError
from tests.cases import for_each

REVIEW = """\
## Review: GAP-PAY-001

### High Priority

- **ISSUE-R1-001**: Refunds are paid twice
  - Location: Refunds
  - Impact: Every refund of a cancelled order is booked a second time by the nightly run.
- **ISSUE-R1-002**: Nobody may cancel a refund
  - Location: Rights
  - Impact: A wrong refund cannot be stopped by the clerk.

### Low Priority

- **ISSUE-R1-003**: A slip of the pen

## Verdict: NEEDS_REVISION
"""
BEFORE = """\
## Gap Resolution: GAP-PAY-001

### Refunds

The run pays them.

### Rights

Nobody.
"""
RESPONSE = """\
## Gap Resolution: GAP-PAY-001

### Refunds

The nightly run books a refund of a cancelled order once: it marks what is booked.

### Rights

Nobody.

## Response to Reviewer Issues

| Issue | Answer |
|---|---|
| ISSUE-R1-001 | addressed: a mark for booked refunds |

## DISAGREE: ISSUE-R1-003

**Reviewer Concern:** A slip of the pen

**Engineer Position:** There is none.

**Rationale:** The word is a name.

**Alternative Approach:** Quote it.
"""
KEYS = [
    "verdict",
    "verdicts",
    "findings",
    "prior_findings",
    "answers",
    "disagreements",
    "flags",
    "alerts",
    "warnings",
]


def told(review: str, response: str | None = None, before: str = "") -> dict[str, Any]:
    return as_json(check_round(review, response, before))


# --- As JSON ----------------------------------------------------------------------------------------------


def test_a_round_is_told_in_full() -> None:
    found = told(REVIEW, RESPONSE, BEFORE)

    assert list(found) == KEYS
    assert found["verdict"] == "NEEDS_REVISION"
    assert found["verdicts"] == [
        {"scope": "GAP-PAY-001", "raw": "NEEDS_REVISION", "normalized": "NEEDS_REVISION", "line": 16}
    ]
    assert [(each["code"], each["severity"], each["line"]) for each in found["findings"]] == [
        ("ISSUE-R1-001", "HIGH", 5), ("ISSUE-R1-002", "HIGH", 8), ("ISSUE-R1-003", "LOW", 14),
    ]  # fmt: skip
    assert [(each["finding"], each["kind"]) for each in found["answers"]] == [
        ("ISSUE-R1-001", "addressed"), ("ISSUE-R1-003", "declined"),
    ]  # fmt: skip
    assert found["disagreements"] == [
        {
            "finding": "ISSUE-R1-003", "position": "There is none.", "rationale": "The word is a name.",
            "alternative": "Quote it.", "line": 17, "problems": [],
        }
    ]  # fmt: skip


def test_a_grave_finding_without_an_answer_is_flagged() -> None:
    # H1 with the section unchanged; the finding that is answered is not.
    (flag,) = told(REVIEW, RESPONSE, BEFORE)["flags"]

    assert (flag["finding"], flag["heuristics"]) == ("ISSUE-R1-002", ["H1", "H4"])
    assert set(flag) == {"finding", "heuristics", "level"}


def test_a_finding_of_a_gap_that_the_response_leaves_for_later_is_pending() -> None:
    # SIL-6
    other = "## Gap Resolution: GAP-TAX-002\n\nText about taxes.\n"

    assert told(REVIEW, other)["flags"] == []
    assert len(told(REVIEW, other.replace("GAP-TAX-002", "GAP-PAY-001"))["flags"]) == 2


def test_a_review_alone_has_no_answers_and_no_flags() -> None:
    found = told(REVIEW)

    assert (found["answers"], found["disagreements"], found["flags"]) == ([], [], [])


def test_the_fields_of_a_finding_are_told() -> None:
    found = told("### ISSUE-R1-001: No lock (Medium)\n\n**Location:** a.py:3\n**Impact:** b\n**Fix:** c\n")

    assert found["findings"] == [
        {
            "code": "ISSUE-R1-001", "ordinal": 1, "line": 1, "severity": "MEDIUM", "title": "No lock",
            "location": "a.py:3", "impact": "b", "suggestion": "c", "format": "heading",
        }
    ]  # fmt: skip


def test_what_is_not_known_is_null() -> None:
    # ID-4: no id; SEV-9: no severity
    (found,) = told("## Issues\n\n1. **No owner** is named\n")["findings"]

    assert (found["code"], found["severity"], found["ordinal"]) == (None, None, 1)


def test_earlier_findings_are_told_by_their_status() -> None:
    rows = "| Issue | Status |\n|---|---|\n| ISSUE-R1-001 | **FIXED** |\n| H2 | PARTIAL |\n"
    text = f"## Previous Issues\n\n{rows}"

    assert told(text)["prior_findings"] == [
        {"code": "ISSUE-R1-001", "status": "RESOLVED"}, {"code": "H2", "status": "PARTIAL"},
    ]  # fmt: skip


def test_a_block_about_no_finding_is_told_with_its_problem() -> None:
    found = told(REVIEW, RESPONSE.replace("ISSUE-R1-003", "ISSUE-R9-009"))

    (block,) = found["disagreements"]
    assert "INVALID_DISAGREE_REF" in block["problems"]


def test_an_example_in_a_fence_is_no_disagreement() -> None:
    assert told(REVIEW, f"```\n{RESPONSE}\n```")["disagreements"] == []


# --- What to look at --------------------------------------------------------------------------------------


def test_a_gap_that_is_blocked_is_told_with_what_it_waits_for() -> None:
    # PART-2
    found = told(REVIEW, "BLOCKED_NEEDS_INPUT: GAP-PAY-001 who may refund?\n")

    assert any("GAP-PAY-001 is blocked" in alert and "who may refund?" in alert for alert in found["alerts"])


def test_an_example_of_a_block_is_told_to_nobody() -> None:
    # PART-2, ID-3
    found = told(REVIEW, "```\nBLOCKED_NEEDS_INPUT: GAP-PAY-001 who may refund?\n```\n")

    assert not any("blocked" in alert for alert in found["alerts"])


def test_a_block_on_what_is_no_gap_is_a_warning() -> None:
    # PART-2
    found = told(REVIEW, "BLOCKED_NEEDS_INPUT: GAP-X-001\n")

    assert not any("is blocked" in alert for alert in found["alerts"])
    assert any("GAP-X-001" in warning for warning in found["warnings"])


@for_each(
    ("text", "alarm"),
    [
        ("The design is weak.\n\n## Verdict: NEEDS WORK\n", True),
        ("Something is of HIGH severity here.\n\n## Verdict: APPROVED\n", True),  # VAL-4: a severity word
        ("All is well.\n\n## Verdict: APPROVED\n", False),
        ("### Critical Issues\n\nNone.\n\n## Verdict: APPROVED\n", False),  # an empty section
        (REVIEW, False),
        ("", True),
    ],
)
def test_a_review_without_findings_that_speaks_of_some_raises_an_alarm(text: str, alarm: bool) -> None:
    assert any("may have missed findings" in alert for alert in told(text)["alerts"]) is alarm


def test_a_review_without_a_verdict_is_unknown_and_no_approval() -> None:
    found = told("Looks good to me.\n")

    assert found["verdict"] == "UNKNOWN"
    assert any("no approval" in alert for alert in found["alerts"])


def test_an_approval_beside_a_grave_finding_is_a_contradiction_that_is_shown() -> None:
    # ARB-3
    found = told("## Review\n\n### High Priority\n\n- **ISSUE-R1-001**: No lock\n\n## Verdict: APPROVED\n")

    assert found["verdict"] == "APPROVED_WITH_CONDITIONS"
    assert found["verdicts"][0]["raw"] == "APPROVED"
    assert any("this is no approval" in alert and "ISSUE-R1-001" in alert for alert in found["alerts"])


def test_an_approval_beside_small_findings_is_none() -> None:
    found = told("### Low Priority\n\n- **ISSUE-R1-001**: A comma\n\n## Verdict: APPROVED\n")

    assert (found["verdict"], found["alerts"]) == ("APPROVED", [])


def test_an_approval_while_an_earlier_finding_stays_open_is_shown() -> None:
    found = told("## Previous Issues\n\n- **ISSUE-R1-001**: NOT FIXED\n\n## Verdict: APPROVED\n")

    assert found["verdict"] == "APPROVED_WITH_CONDITIONS"
    assert any("ISSUE-R1-001" in alert for alert in found["alerts"])


def test_what_is_ambiguous_is_a_warning() -> None:
    # SEV-9, SEV-10
    found = told(
        "### Medium/Low Priority\n\n- **ISSUE-R1-001**: a\n\n### Other\n\n- **ISSUE-R1-002**: b\n\n"
        "### Low\n\n- **ISSUE-R1-003** (HIGH): c\n"
    )

    assert [each["severity"] for each in found["findings"]] == ["LOW", None, "HIGH"]
    assert len(found["warnings"]) == 3
    assert "names two severities" in found["warnings"][0]


# --- For people -------------------------------------------------------------------------------------------


def test_a_round_is_explained_in_sections() -> None:
    lines = list(explain(check_round(REVIEW, RESPONSE, BEFORE)))

    titles = [line for line in lines if line and not line.startswith(" ")]
    assert titles == ["Verdict", "Findings", "Answers", "Disagreements", "Suspected silence"]
    assert "  ISSUE-R1-001 (high), line 5: Refunds are paid twice" in lines


def test_a_review_that_raises_nothing_says_so() -> None:
    assert "  The review raises nothing." in list(explain(check_round("## Verdict: APPROVED\n")))


@for_each("place", range(3))
def test_a_document_that_is_too_large_is_refused(place: int) -> None:
    documents = ["a", "a", "a"]
    documents[place] = "a" * (MAX_BYTES + 1)

    with pytest.raises(DocumentError):
        check_round(*documents)


# --- The command: no database behind it, or pytest-django would refuse ------------------------------------


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("check_round", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def review(tmp_path: Path) -> str:
    path = tmp_path / "review.md"
    path.write_text(REVIEW, encoding="utf-8")
    return str(path)


def test_the_command_prints_json(review: str, tmp_path: Path) -> None:
    response = tmp_path / "response.md"
    response.write_text(RESPONSE, encoding="utf-8")
    found = json.loads(run("--review", review, "--response", str(response), "--json"))

    assert list(found) == KEYS
    assert found == told(REVIEW, RESPONSE)


def test_the_command_explains_without_json(review: str) -> None:
    assert run("--review", review).startswith("Verdict\n  NEEDS_REVISION\n")


EXPLAINED = """\
# Review of the retry job
heading of a section of no special kind: it is the title of the document
## Strengths
heading of a section of praise: one word is no title
- **Clear names**: they say what they hold
the section praises
## High Severity
heading of a section that lists issues, high: it gives a severity to what stands below it
- **ISSUE-R1-001**: The claim is not atomic
begins ISSUE-R1-001 (high): a line with an id begins a finding
- **Location:** src/jobs.py:12
part of ISSUE-R1-001 (high): it is a labelled part of a finding
It should compare and set.
part of ISSUE-R1-001 (high)
- The lease never ends
part of ISSUE-R1-001 (high): an item in plain words belongs to the finding above it
## Issues
heading of a section that lists issues: one word is no title
- Nobody renews the lease
begins #2 (no severity): every item below a severity, or below a heading that says Issues, begins a finding
## Questions
heading of a section that goes through criteria: one word is no title
- What happens at night?
without an id or a severity it counts only in a list of issues
## ISSUE-R1-003: No index
begins ISSUE-R1-003 (low): a heading with an id begins a finding
**Severity:** Low
part of ISSUE-R1-003 (low): it is a labelled part of a finding
## Tables
heading of a section of no special kind: one word is no title
| Issue | Severity |
text outside of the findings
|---|---|
text outside of the findings
| The log holds a token | critical |
begins #4 (critical): a row of a table of issues
```
code, a quote or a comment counts for nothing
- **ISSUE-R1-009**: an example
code, a quote or a comment counts for nothing
```
code, a quote or a comment counts for nothing
## Required Changes
heading of a section that says what must change: it names a part of the review
- ISSUE-R1-001 must go
the section only names again what is raised elsewhere in the review
ISSUE-R0-001: RESOLVED
it says what became of an earlier finding; says that ISSUE-R0-001 is resolved
## Verdict: NEEDS_REVISION
heading of a section that sums up: it names a part of the review; states the verdict NEEDS_REVISION
"""


def test_the_command_says_by_which_rule_it_took_each_line(tmp_path: Path) -> None:
    lines = EXPLAINED.splitlines()
    path = tmp_path / "review.md"
    path.write_text("\n".join(lines[::2]).replace("- **Location", "  - **Location"))

    printed = run("--explain", str(path), str(path)).splitlines()

    told = [line.lstrip(" 0123456789") for line in printed]
    assert told == [str(path), *lines, "", str(path), *lines, ""]


def test_an_explanation_of_data_names_its_entries(tmp_path: Path) -> None:
    path = tmp_path / "review.json"
    path.write_text('[\n{"severity": "high", "message": "no lock"},\n{"message": "x"}\n]\n')
    assert [line.strip() for line in run("--explain", str(path)).splitlines() if "begins" in line] == [
        "begins #1 (high): an entry of the data", "begins #2 (no severity): an entry of the data"
    ]  # fmt: skip


def test_an_explanation_is_short_and_holds_no_control_characters(tmp_path: Path) -> None:
    path = tmp_path / "review.md"
    path.write_text("- a\x1b[31m" + "long " * 100 + "\n" + "- item\n" * 3000)

    printed = run("--explain", str(path)).splitlines()

    assert "\x1b" not in "".join(printed)
    assert max(map(len, printed)) < 200
    assert len(printed) < 4100
    assert "... and 1001 more lines" in printed[-2]


@for_each("more", [("--json",), ("--response", "a.md"), ("--review", "a.md")])
def test_an_explanation_is_of_reviews_alone(review: str, more: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="--explain|not allowed"):
        run("--explain", review, *more)


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "review.md"
    path.write_bytes(b"\xef\xbb\xbf## Verdict: APPROVED\n\n\xff\xfe")

    assert json.loads(run("--review", str(path), "--json"))["verdict"] == "APPROVED"


def test_a_file_that_is_not_there_is_named(review: str) -> None:
    with pytest.raises(CommandError, match=r"There is no file nowhere\.md"):
        run("--review", review, "--response", "nowhere.md")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is no file"):
        run("--review", str(tmp_path))


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "review.md"
    path.write_bytes(b"a" * (MAX_BYTES + 1))

    with pytest.raises(CommandError, match=f"too large: {MAX_BYTES} bytes"):
        run("--review", str(path))
