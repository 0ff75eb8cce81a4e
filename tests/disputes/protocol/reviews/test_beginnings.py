"""Each rule by which a line of a review begins a finding or not, with an example that it decides."""

from disputes.protocol.reviews.beginnings import (
    ANONYMOUS,
    ANONYMOUS_HEADING,
    CODED,
    CODED_HEADING,
    RECORD,
    TAGGED,
    LineRule,
)
from disputes.protocol.reviews.blocks import find_blocks
from disputes.protocol.reviews.layout import lay_out
from disputes.protocol.text.documents import scan

REPEATS = "the section only names again what is raised elsewhere in the review"
PRAISE = "the section praises"
NOTHING = "it says that there is none, or only counts"
DEEP = "it is indented too far"
TICKED = "a ticked line says that something is in order"
STATUS = "it says what became of an earlier finding"
LAST = "in a rejection that raises nothing else, an item of any list begins a finding"
NO_ID = "what looks like an id is none: "
EXAMPLES: dict[tuple[LineRule, ...], dict[str, str]] = {
    TAGGED: {
        DEEP: "- a\n\n        [HIGH] src/a.py:3 - No lock",
        STATUS: "- [HIGH] RESOLVED",
        NOTHING: "- [HIGH] None.",
        "a tag such as [HIGH] or nit: begins a finding": "nit: the name differs",
    },
    CODED: {
        DEEP: "      ISSUE-R1-001: No lock",
        f"{NO_ID}the section holds no findings": "## Strengths\n- SEC-01: Tokens are hidden",
        f"{NO_ID}no title follows it": "## Issues\n- **SEC-01**",
        f"{NO_ID}it goes on with the finding above it": "## Issues\n- ISSUE-R1-001: No lock\n  - F1: too",
        f"{NO_ID}it has no severity and stands in no list of issues": "- SEC-01: Tokens are in the log",
        "the section tells of earlier findings or versions": "## Earlier Issues: Status\n- ISSUE-R1-001: see",
        TICKED: "- [x] ISSUE-R1-001: A lock",
        "the id begins a sentence: no colon or dash follows it": "ISSUE-R1-001 needs a lock",
        STATUS: "- ISSUE-R1-001: RESOLVED",
        REPEATS: "## Required Changes\n- ISSUE-R1-001: A lock",
        "the id is named inside the finding above it": "- ISSUE-R1-001: No lock\n  - ISSUE-R1-002: same",
        PRAISE: "## Strengths\n- **CRIT-001**: Clear names",
        "a short id without marks counts only in a list of issues, or with a severity": "- H1: No lock",
        "a line with an id begins a finding": "- ISSUE-R1-001: No lock",
    },
    ANONYMOUS: {
        "it is a labelled part of a finding": "- **Impact:** two workers take one row",
        "an item in plain words belongs to the finding above it": "- **ISSUE-R1-001**: No lock\n- in claim()",
        DEEP: "        - No lock",
        TICKED: "- [x] A lock",
        "the section tells of earlier findings or versions": "## Revision History\n- **First version**",
        PRAISE: "## Strengths\n- **Clear names**",
        "the section looks at gaps that the coder opened": "## New Gaps\n- **Retries never end**",
        "the section sums up": "## Summary\n- **Two issues are grave**",
        "it goes on with the finding above it": "### ISSUE-R1-001: No lock\n- **In claim too**",
        NOTHING: "## Issues\n- None found.",
        STATUS: "- [ ] **PARTIAL**: the lock",
        "it states a verdict": "**Verdict: APPROVED**",
        REPEATS: "## Required Changes\n- **Add a lock**",
        "a list item with a label such as Issue begins a finding": "- **Issue:** No lock",
        "a label such as Issue begins a finding only in a list": "**Issue:** No lock",
        "a line with a title and a severity begins a finding even outside a list of issues": (
            "1. **No lock here** (high)"
        ),
        LAST: "- No lock",
        "without an id or a severity it counts only in a list of issues": "- No lock",
        "it names a file and how many comments on it follow": "## Issues\n**src/a.py (2)**",
        "a bold title with a number or a severity, or alone on its line, begins a finding": (
            "## Issues\n**1. No lock** in claim()"
        ),
        "bold words with text behind them are a label": "## Issues\n**Quality:** good",
        "it only names what is listed below it": "## Issues\n1. Storage\n   - ISSUE-R1-001: No lock",
        "one word before a colon is a label": "## Issues\n1. **Storage:**",
        "a list item in bold or with a severity begins a finding in a list of issues": "## Flaws\n- **Lock**",
        "the section holds observations: plain items are remarks": "## Minor Observations\n- Nice names",
        "text stands before the list, to which its items belong": "## Issues\nIn short:\n\n- No lock",
        "every item below a severity, or below a heading that says Issues, begins a finding": (
            "## Issues\n- No lock"
        ),
        "a numbered item in a list of issues begins a finding": "## Issues\n### Storage\n1. No lock here",
        "neither its heading nor its label says that every item is an issue": "## Flaws\n### Jobs\n- Lock",
    },
    RECORD: {
        "the lines belong to the finding above them": (
            "### No lock (high)\n\nSeverity: High\nProblem: Two workers"
        ),
        "the section tells of earlier findings or versions": (
            "## Revision History\nProblem: No lock\nSeverity: High"
        ),
        PRAISE: "## Strengths\nFinding: Clear names\nSeverity: Low",
        "the section looks at gaps that the coder opened": "## New Gaps\nProblem: No end\nSeverity: Low",
        NOTHING: "Problem: None\nSeverity: Low",
        "a place or a number inside of sentences counts only below a request": (
            "The loop in `a.py:3` takes\nno lock."
        ),
        REPEATS: "## Required Changes\n\n`a.py:3`: take the lock\nbefore it writes",
        "a paragraph that begins with a place, with a number below a request, or with a sentence before its "
        "severity, begins a finding": "`a.py:3`: take the lock\nbefore it writes",
        "labelled lines of which one states a severity, or a badge that does, begin a finding": (
            "Problem: No lock\nSeverity: High"
        ),
    },
    CODED_HEADING: {
        f"{NO_ID}it has no severity and stands below no heading that says Issues or Suggestions": (
            "### SEC-01: Tokens"
        ),
        "the section tells of earlier findings or versions": "## Earlier Issues: Status\n### ISSUE-R1-001",
        TICKED: "### ✅ ISSUE-R1-001: A lock",
        REPEATS: "## Required Changes\n### ISSUE-R1-001: A lock",
        "it, or its status below it, says what became of an earlier finding": "### ISSUE-R1-001: RESOLVED",
        "a heading with an id begins a finding": "### ISSUE-R1-001: No lock",
    },
    ANONYMOUS_HEADING: {
        "it is the title of the document": "# The retry job",
        "it says what is reviewed": "## Review of the retry job",
        "it names the gap that is reviewed": "## GAP-AB-001: Retries of a job",
        "it gives a severity to what stands below it": "## High Severity",
        NOTHING: "## No issues found",
        "the section tells of earlier findings or versions": "## Revision History\n### The first draft",
        PRAISE: "## Strengths\n### The clear names",
        "the section looks at gaps that the coder opened": "## New Gaps\n### Retries never end",
        TICKED: "## ✅ Retries do end",
        "one word is no title": "## Storage",
        "it is little more than the id of a gap": "## Issues\n### Gap GAP-AB-001",
        "the section above it sums up": "## Summary\n### Two grave issues",
        REPEATS: "## Required Changes\n### Add a lock",
        "it names a list of suggestions": "## Suggestions (nice to have)",
        "a heading with a severity beside its title begins a finding": "### Retries never end (high)",
        "it names a part of the review": "## Next steps",
        "findings without titles of their own stand below it": (
            "### In claim()\n\nSeverity: High\nProblem: No lock\n\nSeverity: Low\nProblem: A name"
        ),
        "a heading with a severity below it begins a finding": "### Retries never end\n**Severity:** High",
        "a table stands below it, and it names that": "## Issues\n### What was run\n| Command | Result |",
        "another heading below the title says that it lists the issues": (
            "# Findings of the reviewer\n## Findings\n## How clear the task was"
        ),
        "a heading below one that says Issues begins a finding": "## Issues\n### Retries never end",
        "a numbered heading below one that says Suggestions begins a finding": (
            "## Suggestions\n### 1. End the retries"
        ),
        "it only groups the findings below it": "## Issues\n### The storage layer\n- ISSUE-R1-001: No lock",
        "it has no id and no severity, and stands below no heading that says Issues": "### Retries never end",
    },
}
# How many lines more their examples have, by which the one before them is decided.
BY_WHAT_FOLLOWS = {
    "it only names what is listed below it": 1,
    "a heading with a severity below it begins a finding": 1,
    "it only groups the findings below it": 1,
    "a table stands below it, and it names that": 1,
    "findings without titles of their own stand below it": 6,
}


def test_every_rule_decides_its_example() -> None:
    wrong = []
    for rules, examples in EXAMPLES.items():
        for reason, text in examples.items():
            place = text.count("\n") - (1 if rules is RECORD else BY_WHAT_FOLLOWS.get(reason, 0))
            found = find_blocks(lay_out(scan(text)), last_resort=LAST in reason).reasons.get(place)
            if found != reason:
                wrong.append(f"{text!r}: {found}")
    assert wrong == []


def test_every_rule_has_an_example_and_the_last_one_always_applies() -> None:
    for rules, examples in EXAMPLES.items():
        assert [rule.reason for rule in rules] == list(examples)
        assert rules[-1].applies(None)  # type: ignore[arg-type]
