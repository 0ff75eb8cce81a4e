"""Every notation of a finding (FND-1), the headings and fields around it, and the traps."""

from disputes.protocol.reviews.review import Found, read_review
from tests.cases import for_each

# What is expected of each finding: line, id, severity in one letter (c, h, m, l, - for none), title.
Expected = list[tuple[int, str, str, str]]


def told(found: Found) -> tuple[int, str, str, str]:
    severity = found.severity.value[0] if found.severity else "-"
    return found.line, found.code, severity, found.title


def findings(text: str) -> Expected:
    return [told(found) for found in read_review(text).findings]


SHAPES: list[tuple[str, str, Expected]] = [
    (
        "1 bullet with a bold id",
        """\
## Review: GAP-PAY-001

### Critical Issues

- **ISSUE-R1-001**: Refunds are paid twice
  - Location: Section 2
  - Impact: Money is lost

### Low Priority

- **ISSUE-R1-002**: A slip of the pen
""",
        [(5, "ISSUE-R1-001", "c", "Refunds are paid twice"), (11, "ISSUE-R1-002", "l", "A slip of the pen")],
    ),
    (
        "2 number, severity in parentheses",
        """\
## Issues

1. **ISSUE-R7-001 (LOW):** The label is vague
2. **ISSUE-R7-002 (HIGH):** The lock is never freed
   It stays after a crash.
""",
        [
            (3, "ISSUE-R7-001", "l", "The label is vague"),
            (4, "ISSUE-R7-002", "h", "The lock is never freed"),
        ],
    ),
    (
        "3 heading, severity in parentheses",
        "### ISSUE-R8-001 (LOW): A name differs\n\nText.\n\n### ISSUE-R8-002 (Critical): No rollback\n",
        [(1, "ISSUE-R8-001", "l", "A name differs"), (5, "ISSUE-R8-002", "c", "No rollback")],
    ),
    (
        "4 id in brackets",
        "## Medium Priority\n\n### [ISSUE-R1-001]: The queue grows\n\n**Impact:** Memory\n",
        [(3, "ISSUE-R1-001", "m", "The queue grows")],
    ),
    (
        "5 severity in parentheses at the end",
        "## Issues Identified\n\n### ISSUE-R11-001: Clocks drift (Medium)\n\n"
        "### ISSUE-R11-002: Keys leak (High)\n",
        [(3, "ISSUE-R11-001", "m", "Clocks drift"), (5, "ISSUE-R11-002", "h", "Keys leak")],
    ),
    (
        "6 severity field",
        "## Issue Details\n\n### ISSUE-R9-001: Sums differ\n\n**Severity:** MEDIUM\n**Section:** Totals\n\n"
        "### ISSUE-R9-002: Rounding\n\n**Severity**: LOW\n",
        [(3, "ISSUE-R9-001", "m", "Sums differ"), (8, "ISSUE-R9-002", "l", "Rounding")],
    ),
    (
        "7 bold paragraph under a heading",
        "### High Priority\n\n**ISSUE-R7-001: The cache is never cleared**\n\nWords.\n\n---\n\n"
        "**ISSUE-R7-002: A race at the start**\n\n1. one\n2. two\n",
        [
            (3, "ISSUE-R7-001", "h", "The cache is never cleared"),
            (9, "ISSUE-R7-002", "h", "A race at the start"),
        ],
    ),
    (
        "7 bold paragraph, severity from a summary",
        "**ISSUE-R7-001: The cache is never cleared**\n\nWords.\n\n**ISSUE-R7-002: A race**\n\nWords.\n\n"
        "## Summary\n\n"
        "| Issue | Severity |\n|---|---|\n| ISSUE-R7-001 | CRITICAL |\n| ISSUE-R7-002 | LOW |\n",
        [(1, "ISSUE-R7-001", "c", "The cache is never cleared"), (5, "ISSUE-R7-002", "l", "A race")],
    ),
    (
        "8 heading below a severity heading",
        "## Critical Issues\n\n### ISSUE-R1-001: No owner\n\n## High Priority\n\n"
        "### ISSUE-R1-002: No limit\n",
        [(3, "ISSUE-R1-001", "c", "No owner"), (7, "ISSUE-R1-002", "h", "No limit")],
    ),
    (
        "9 letter and number, a table below",
        "### High Priority\n\n**H1: The door stays open**\n\n| Location | Issue | Recommendation |\n"
        "|---|---|---|\n"
        "| Lines 3-9 | Nobody closes it | Close it |\n\n---\n\n### Low Priority / Nits\n\n**L1: A comma**\n",
        [(3, "H1", "h", "The door stays open"), (13, "L1", "l", "A comma")],
    ),
    (
        "10 letter with a dot in a heading",
        "### High Priority\n\n#### H1. Two writers\n\nText.\n\n### Medium Priority\n\n"
        "#### M1. Slow path\n\nText.\n",
        [(3, "H1", "h", "Two writers"), (9, "M1", "m", "Slow path")],
    ),
    (
        "10 numbers run on across severities",
        "### Critical\n\n#### 1. No schema\n\nText.\n\n### Medium\n\n#### 2. Odd default\n\nText.\n\n"
        "#### 3. Odd name\n\nText.\n",
        [(3, "", "c", "No schema"), (9, "", "m", "Odd default"), (13, "", "m", "Odd name")],
    ),
    (
        "11 severity in the id",
        "## Issues\n\n- **[CRIT-001]**: No backup\n- **[MED-001]** Slow start\n\n### NIT-001\n\nA comma.\n\n"
        "### HIGH-002: No timeout\n",
        [
            (3, "CRIT-001", "c", "No backup"), (4, "MED-001", "m", "Slow start"),
            (6, "NIT-001", "l", "NIT-001"), (10, "HIGH-002", "h", "No timeout"),
        ],
    ),
    (
        "12 numbered concern, severity behind a dash",
        "## Concerns\n\n### CONCERN #1: The name is taken - MINOR\n\nText.\n\n"
        "### CONCERN #2: No retry - MAJOR\n",
        [(3, "CONCERN #1", "l", "The name is taken"), (7, "CONCERN #2", "h", "No retry")],
    ),
    (
        "13 gaps, ambiguities, edge cases",
        "### Gaps Found\n\n**GAP-1: Nobody says who pays**\n\nText.\n\n### Ambiguities\n\n"
        "**AMBIGUITY-1: Days or working days?**\n\nText.\n\n**EDGE-CASE-1: February**\n\nText.\n",
        [
            (3, "GAP-1", "-", "Nobody says who pays"), (9, "AMBIGUITY-1", "-", "Days or working days?"),
            (13, "EDGE-CASE-1", "-", "February"),
        ],
    ),
    (
        "14 labels in a numbered line",
        "### Issues\n\n1. **Issue:** The port is fixed - **Severity:** MINOR\n2. **Issue:** No log\n"
        "   - **Severity:** MAJOR\n   - **Fix:** Write one\n",
        [(3, "", "l", "The port is fixed"), (4, "", "h", "No log")],
    ),
    (
        "15 a label for a group",
        "## Findings\n\n**MAJOR (must fix):**\n\n1. **No owner** (Section 3)\n   - Someone must own it\n"
        "2. **No end**\n\n"
        "**MINOR:**\n\n1. **Odd name** (Section 4)\n",
        [(5, "", "h", "No owner"), (7, "", "h", "No end"), (11, "", "l", "Odd name")],
    ),
    (
        "16 a priority field",
        "### Specific Points\n\n#### 1. Which clock counts - CLARIFICATION NEEDED\n\n"
        "**Priority:** MUST be settled before work\n\n#### 2. Which unit - CLARIFICATION NEEDED\n\n"
        "**Priority:** SHOULD\n",
        [
            (3, "", "h", "Which clock counts - CLARIFICATION NEEDED"),
            (7, "", "m", "Which unit - CLARIFICATION NEEDED"),
        ],
    ),
    (
        "17 words of risk",
        "## Assessment\n\n1. **Two clocks (Implementability Risk: MEDIUM)**\n   Text.\n\n"
        "**2. No limit on size (High Risk)**\n\nText.\n",
        [(3, "", "m", "Two clocks"), (6, "", "h", "No limit on size")],
    ),
    (
        "18 a tag in brackets at the end",
        "## Review\n\n1. **The title is long** [Minor]\n2. **Nothing stops it** [Major]\n   Text.\n",
        [(3, "", "l", "The title is long"), (4, "", "h", "Nothing stops it")],
    ),
    (
        "19 bold and severity in a numbered heading",
        "### Issues\n\n#### 1. **Counts differ (MEDIUM)**\n\nText.\n\n#### 2. **Order is lost (HIGH)**\n",
        [(3, "", "m", "Counts differ"), (7, "", "h", "Order is lost")],
    ),
    (
        "20 an assessment among the bullets",
        "### Technical Review\n\n1. **Two formats of dates**\n   - Where: the header\n"
        "   - **Assessment:** MINOR, one of them is enough\n2. **No time zone**\n   - **Assessment:** HIGH\n",
        [(3, "", "l", "Two formats of dates"), (6, "", "h", "No time zone")],
    ),
    (
        "21 a cross-cutting id in plain words",
        "## Cross-Cutting Issues\n\nXCUT-NAV-001: Escape means three things (LOW)\n\n"
        "- **Where:** everywhere\n\n"
        "XCUT-DATA-001: Two ids for one row (HIGH)\n\n- **Where:** exports\n",
        [
            (3, "XCUT-NAV-001", "l", "Escape means three things"),
            (7, "XCUT-DATA-001", "h", "Two ids for one row"),
        ],
    ),
    (
        "22 a table",
        "## Remaining Gaps\n\nThese are left.\n\n| # | Gap | Severity | Recommendation |\n|---|---|---|---|\n"
        "| 1 | Nobody deletes old rows | HIGH | Delete them |\n"
        "| 2 | No test of leap days | LOW | Add one |\n",
        [(7, "", "h", "Nobody deletes old rows"), (8, "", "l", "No test of leap days")],
    ),
    (
        "23 observations",
        "### Remaining Observations (Non-Blocking)\n\n**OBSERVATION-R7-V2-001: A comment is stale**\n\n"
        "Text.\n\n"
        "### Notes\n\n- **L-001**: A name is long\n\n**COMPRESS-001: Two sections say the same**\n",
        [
            (3, "OBSERVATION-R7-V2-001", "l", "A comment is stale"), (9, "L-001", "l", "A name is long"),
            (11, "COMPRESS-001", "l", "Two sections say the same"),
        ],
    ),
    (
        "severity in brackets, in small letters and other languages",
        "Remarks:\n\n- [minor] a name differs\n- [majeur] rien n'est clos\n- [x] done\n- [low](a.md) link\n",
        [(3, "", "l", "a name differs"), (4, "", "h", "rien n'est clos")],
    ),
    (
        "a place, then the severity in capitals",
        "## calls.py\n\n- l. 15: (HIGH) floats are added\n- Confidence: (HIGH) it was measured\n- nothing\n",
        [(3, "", "h", "l. 15: (HIGH) floats are added")],
    ),
    (
        "a severity said in passing",
        "I'd not merge before the first is gone:\n\n- First, the worst (high!): rows are lost\n- a name\n"
        "- Then (nothing big, low): it waits\n- Last (not high): a slip\n",
        [
            (3, "", "h", "First, the worst (high!): rows are lost"), (4, "", "-", "a name"),
            (5, "", "l", "Then (nothing big, low): it waits"), (6, "", "-", "Last (not high): a slip"),
        ],
    ),
    (
        "the same where nothing is asked for",
        "How sure I am:\n\n- Of the reading (high): I ran it\n- Of the cost (low): a guess\n",
        [],
    ),
    (
        "headings whose levels are wrong",
        "# 2 Findings\n\n##### SCH-01 [High] Two take one job\n\n###### SCH-02 [Low] No index\n",
        [(3, "SCH-01", "h", "Two take one job"), (5, "SCH-02", "l", "No index")],
    ),
]  # fmt: skip


@for_each(("text", "expected"), [shape[1:] for shape in SHAPES], ids=[s[0] for s in SHAPES])
def test_a_finding_is_read_in_every_notation(text: str, expected: Expected) -> None:
    assert findings(text) == expected
