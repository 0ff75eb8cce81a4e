"""Whole reviews in the manner of different reviewers: what is a finding in them, and what is not."""

from disputes.protocol.reviews.review import read_review
from tests.cases import for_each

# Name, text, the findings as "line severity" in one letter (- for none), the verdict.
REVIEWS: list[tuple[str, str, str, str]] = [
    (
        "ids in two parts, suggestions with numbers, and what was resolved meanwhile",
        """\
# Review of the import job

## Round 2 Verdict: APPROVE

## Resolved During Review

### Critical

1. **The lock was never released** - `jobs.py:14`

### R1-F1: The retry counted from one

**Original severity:** Important

## Important (all resolved)

### R1-F2: No test of an empty file

## Critical

None.

## Important

### R2-F1 [Important] The second pass reads stale rows

**File:** `jobs.py:40`

## Info

### IN-01: The cache is read twice

## Suggestions (nice to have)

### 1. Blocking calls could move to a thread

**File:** `jobs.py:60`

### S2: The name of the table is written twice

## Why No Critical Issues

1. **Every path was traced:** from the form to the row.
2. **Tests were run:** all green.

## Fixes Applied

| # | Severity | Fix |
|---|---|---|
| 1 | Critical | The lock is released |

### Important Issue 1: the empty file

- **Commit:** `1a2b3c4`
""",
        "25h 31l 35l 39l",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "groups of findings with ids of two parts",
        """\
# Audit

## 1. Critical Findings

### 1.1 Silent failures (2 issues)

#### SF-C1: An error is swallowed

- **File**: `a.py:4`

#### SF-C2: Missing validation of the form

- **File**: `b.py:9`

### 1.2 Types (1 issue)

#### TD-C1: A session has no type
""",
        "7c 11c 17c",
        "UNKNOWN",
    ),
    (
        "plain labels, of which the later ones have no severity",
        """\
Critical:

- None.

Important:

- The queue is not bounded.
- The test of the delay asserts nothing.

Suggestions:

- Add a test of a full queue.

How it fits:

- The flow of data is as before.
- The names are those of the module.

Verdict (Round 3)

REQUEST CHANGES
""",
        "7h 8h",
        "NEEDS_REVISION",
    ),
    (
        "weaknesses among strengths and questions",
        """\
# Review of the export feature

**Reviewer:** R
**Date:** 2026-02-01

## Executive Summary

The proposal is mostly sound. There are **2 critical** and **1 minor** problems.

## Strengths

1. **Clear scope** - it says what is in
2. **Good examples** (three of them)

## Weaknesses

1. **No retry policy** - a failed upload is lost. Severity: HIGH
2. **Unclear ownership** of temp files
   - who deletes them?
   - when?

## Questions for the Engineer

1. **How many files?** - is there a limit
2. Which format?

## Recommendations

1. **Add a retry policy** with backoff
2. **Name an owner**

## Verdict

**NEEDS REVISION** - see above.
""",
        "17h 18-",
        "NEEDS_REVISION",
    ),
    (
        "headings of severities, plain items",
        """\
## Review: GAP-EXP-001

### Overall

Fine.

### Issues Found

#### Critical

None.

#### Major

1. The upload is not atomic. If the process dies, half a file stays.
2. There is no checksum.

#### Minor

- Typo in section 3
- The table in section 4 has no caption

### Next Steps

- Fix the above
- Send v2

### Status: NEEDS_WORK
""",
        "15h 16h 20l 21l",
        "NEEDS_REVISION",
    ),
    (
        "risks in words, a table of checks",
        """\
# Reviewer Assessment

## Part 1: Implementability

### 1. Schema Definition

**Implementable:** Yes

### 2. Query Layer

**Implementable:** Partially

**Concerns:**

1. **Join order is not given (Implementability Risk: HIGH)**
   The planner may choose badly.

2. **Index names collide (Implementability Risk: LOW)**

## Part 2: Consistency

| Check | Result |
|---|---|
| Names | PASS |
| Types | FAIL |

## Final Verdict: APPROVED WITH MINOR ISSUES
""",
        "15h 18l",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "only what became of earlier ones",
        """\
# Spec Review

**Status:** APPROVED

All earlier points are fixed:

| Issue | Resolved? |
|---|---|
| ISSUE-R1-001 | YES |
| ISSUE-R1-002 | YES |

No new issues.
""",
        "",
        "APPROVED",
    ),
    (
        "earlier ones first, then numbered headings",
        """\
# Review

## Previous Round

- [x] **ISSUE-R2-001** - FIXED
- [x] **ISSUE-R2-002** - FIXED, nicely
- **[CRIT-001] no backup**: **PARTIALLY_RESOLVED** - only for one table

## New Findings

### 1. Backups are not tested (HIGH)

Text.

### 2. The bucket name is hard-coded (LOW)

Text.

**Verdict:** NEEDS_CHANGES
""",
        "11h 15l",
        "NEEDS_REVISION",
    ),
    (
        "labels for groups, plain items",
        """\
## Review

**MAJOR (blocks approval):**

- No migration path is given for old rows
- Deleting a user leaves orphans

**MINOR (nice to have):**

- Rename `foo`

**Positive aspects:**

- Short
- Readable

VERDICT: REJECTED
""",
        "5h 6h 10l",
        "NEEDS_REVISION",
    ),
    (
        "numbered concerns, a table of earlier ones",
        """\
# Round 4 review

### CONCERN #1: Too many states - MAJOR

**Description:** There are nine.

**Recommendation:** Merge them.

### CONCERN #2: The name is odd - MINOR

**Description:** Hm.

### Resolution of earlier concerns

| Concern | Status |
|---|---|
| CONCERN #1 (round 3) | RESOLVED |

### Recommendation: APPROVE WITH MODIFICATIONS
""",
        "3h 9l",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "a table in prose",
        """\
# Review: GAP-CORE-002

The approach works. Some things are open; this table lists them:

| Gap | Severity | Notes |
|---|---|---|
| No error for a full disk | HIGH | must be defined |
| No message for a wrong password | MEDIUM | |
| Colours | LOW | later |

I recommend another round.

**Recommendation:** NEEDS_REVISION
""",
        "7h 8m 9l",
        "NEEDS_REVISION",
    ),
    (
        "all sections, most of them empty",
        """\
## Review: GAP-NAV-001

### Checklist

- [x] Headings
- [ ] Examples

### Critical Issues

None identified.

### High Priority Issues

None.

### Medium Priority Issues

- **ISSUE-R3-001**: Back goes to the wrong page
  - Location: 4.2
  - Impact: Users get lost
  - Suggestion:
    1. Keep a stack
    2. Or drop it

### Low Priority / Nits

N/A

### Verdict: GAP-NAV-001 - APPROVED
""",
        "18m",
        "APPROVED",
    ),
    (
        "cross-cutting ids in plain words",
        """\
# Cross review

XCUT-NAV-001: Escape differs (LOW)
- **Specs:** a, b
- **Fix:** pick one

XCUT-PAT-002: Two ways to page (MEDIUM)
- **Specs:** c

COMPRESS-001: a and b repeat the key table

DIVERGE-001: The code has five states, the spec three (HIGH)

## Overall Verdict: CONDITIONAL APPROVAL
""",
        "3l 7m 10l 12h",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "ambiguities and edge cases",
        """\
# Review

## Ambiguities

**AMBIGUITY-1: What counts as a retry?**

It is said twice, differently.

**AMBIGUITY-2: Who is the owner?**

Text.

## Missing Edge Cases

**EDGE-CASE-1: Empty list**
- nothing is said

**EDGE-CASE-2: One element**

## Recommendation

**NEEDS_REVISION**
""",
        "5- 9- 15- 18-",
        "NEEDS_REVISION",
    ),
    (
        "observations that praise, minor issues",
        """\
# Final review

## Summary

| Category | Verdict |
|---|---|
| Completeness | ✓ |

## Observations

1. **The parser is fast** - good
2. **The docs are short**

## Minor Issues (Non-Blocking)

1. **Typos** in the readme [Minor]
2. **A dead link** [Minor]

## Conclusion

**Review Status**: APPROVED
""",
        "16l 17l",
        "APPROVED",
    ),
    (
        "priorities below numbered headings",
        """\
# Review

### 1. Data model - CLARIFICATION NEEDED

**Priority:** MUST resolve before implementation

**Question:** which id?

### 2. Events - CLARIFICATION NEEDED

**Priority:** SHOULD resolve

### 3. UI - APPROVED

Looks good.

## Verdict: CHANGES REQUESTED
""",
        "3h 9m",
        "NEEDS_REVISION",
    ),
    (
        "options inside a finding, numbers that run on",
        """\
# Review Round 2

## Critical Issues (Must Fix)

### 1. Lost updates

**Problem:** Two writers.

**Fix:** Lock.

#### Option A

Pessimistic.

#### Option B

Optimistic.

### 2. No limit

**Problem:** Grows.

## High Priority Issues

### 3. Timeouts

1. **Connect** has none
2. **Read** has none

## Non-Critical Suggestions

### 4. Rename

## Verdict: NEEDS_REVISION
""",
        "5c 19c 25h",
        "NEEDS_REVISION",
    ),
    (
        "plain remarks",
        """\
The change looks right to me, two remarks:

1. The name `foo` is vague.
2. Please add a test.

Otherwise fine.
""",
        "",
        "UNKNOWN",
    ),
    (
        "labels in numbered lines",
        """\
## Issues

1. **Issue:** The key is logged - **Severity:** CRITICAL
   **Suggestion:** mask it
2. **Issue:** The log rotates never - **Severity:** MINOR

## What's Good

1. **Tests** cover it

## Decision: REJECT
""",
        "3c 5l",
        "NEEDS_REVISION",
    ),
    (
        "required changes are all there is",
        """\
# Review: GAP-A and GAP-B

| Gap | Verdict | Notes |
|---|---|---|
| GAP-AAA-001 | APPROVED* | see below |
| GAP-BBB-001 | APPROVED ✓ | |

*with two conditions

### Required Changes

1. Say which clock is used (GAP-AAA-001)
2. Say who wins
""",
        "12- 13-",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "words of risk, a summary of them",
        """\
# Review

### High Risk

**1. Locks are held over network calls (High Risk)**

Text with **bold words** inside.

**2. Retries are unbounded (High Risk)**

### Medium Risk

**3. Metrics are missing (Medium Risk)**

### Summary of Risks

| Risk | Level |
|---|---|
| Locks | High |

**Verdict:** APPROVED
""",
        "5h 9h 13m",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "signs of all colours",
        """\
# Review

## Critical Issues

🔴 **CRITICAL-1: Keys in the log**

Text

## Warnings

⚠️ **HIGH-1: No rotation**

## Good

✅ **Tests pass**
✅ **Docs fine**

**Status: NEEDS REVISION**
""",
        "5c 11h",
        "NEEDS_REVISION",
    ),
    (
        "struck out, dashed",
        """\
# Review

**ISSUE-R5-001 (HIGH)**: The gate is skipped

**Location:** 3.1

~~**ISSUE-R5-002 (HIGH)**: Wrong count~~ Withdrawn: I misread the table.

**ISSUE-R5-003** - MEDIUM - The count is off

**Verdict**: APPROVED
""",
        "3h 7h 9m",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "examples and quotes alone",
        """\
# Review

```markdown
### Critical Issues
- **ISSUE-R1-001**: an example
## Verdict: REJECTED
```

> **ISSUE-R1-002**: quoted

````
```
ISSUE-R1-003: nested
```
## Verdict: REJECTED
````

NO_ISSUES_FOUND
""",
        "",
        "NO_ISSUES_FOUND",
    ),
    (
        "numbered sections",
        """\
# Review of round 3

## 1. Overview

Good.

## 2. Critical Issues

### 2.1 Missing error handling

When the disk is full, nothing happens.

### 2.2 Wrong lock order

Text.

## 3. Minor Issues

### 3.1 Naming

Text.

## 4. Recommendation

Approve with minor changes.
""",
        "9c 13c 19l",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "bold issues with numbers",
        """\
# Review

**Issue 1: The flag is ignored**
- Severity: High
- Location: 3.2

**Issue 2: The default is unsafe**
- Severity: Medium

*Verdict:* **REJECTED**
""",
        "3h 7m",
        "NEEDS_REVISION",
    ),
    (
        "numbered issues, severity in words",
        """\
# Review

#### Issue #1: Keys are shared (Severity: High)

Text

#### Issue #2: No audit (Severity: Low)

Text

## Verdict: ✅ APPROVED with minor changes
""",
        "3h 7l",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "severities as bold bullets",
        """\
## Issues

- **HIGH**: The index is never built
- **MEDIUM**: The page is slow
- **LOW**: A colour is off

Verdict: NEEDS REVISION
""",
        "3h 4m 5l",
        "NEEDS_REVISION",
    ),
    (
        "a table with ids",
        """\
# Findings

| ID | Severity | Issue | Recommendation |
|----|----------|-------|----------------|
| H1 | HIGH | The index is never built | Build it |
| L1 | LOW | A colour is off | Change it |

**Verdict:** NEEDS_REVISION
""",
        "5h 6l",
        "NEEDS_REVISION",
    ),
    (
        "ids in headings, their state in a list",
        """\
### H1: The index is never built

**Severity:** HIGH

### M1: The page is slow

**Severity:** MEDIUM

## Resolution Status

- H1: open

## Verdict

🟡 NEEDS REVISION
""",
        "1h 5m",
        "NEEDS_REVISION",
    ),
    (
        "blocking and non-blocking",
        """\
### Blocking Issues

1. The index is never built
2. The schema has no version

### Non-blocking Issues

1. A colour is off

### Verdict

NEEDS_REVISION
""",
        "3h 4h 8l",
        "NEEDS_REVISION",
    ),
    (
        "headings with signs",
        """\
## Issues by severity

### 🔴 Critical

1. **No key rotation** — keys live for ever

### 🟡 Medium

1. **Long names**

### 🟢 Low

None

## Overall Assessment

**APPROVED_WITH_NOTES**
""",
        "5c 9m",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "severity before the title of a heading",
        """\
#### High: Missing retry

Text.

#### Low: Odd name

Text.

**Overall:** APPROVED
""",
        "1h 5l",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "severities as bold words alone",
        """\
Reviewed round 2.

**Critical**

1. Nothing limits the queue
2. Nothing drains it

**Minor**

* Typos

**Decision: NEEDS_CHANGES**
""",
        "5c 6c 10l",
        "NEEDS_REVISION",
    ),
    (
        "severities as list items above lists",
        """\
## Findings

- Critical:
  - The queue is not limited
  - The queue is not drained
- Minor:
  - Typos in 3

## Result: REJECTED
""",
        "4c 5c 7l",
        "NEEDS_REVISION",
    ),
    (
        "own severities between praise",
        """\
# Review

## Detailed Feedback

### Section 3: Storage

Concern: what happens on a crash?

1. **Write-ahead log** is not described (HIGH)
2. **Compaction** is described well

### Section 4: API

1. **Errors have no codes** [MEDIUM]

## Summary of Issues

| Severity | Count |
|---|---|
| HIGH | 1 |
| MEDIUM | 1 |

## Verdict: NEEDS_REVISION
""",
        "9h 14m",
        "NEEDS_REVISION",
    ),
    (
        "earlier ones resolved below their headings",
        """\
# Review: GAP-FOO-001

## Resolution Verification

### ISSUE-R1-001: No owner - RESOLVED

Fine.

### ISSUE-R1-002: No limit

**Status: FULLY ADDRESSED**

### ISSUE-R1-003: No test - PARTIALLY RESOLVED

## New Issues

### ISSUE-R2-001: The owner may leave (LOW)

## Verdict: APPROVED
""",
        "17l",
        "APPROVED",
    ),
    (
        "assessments of sections",
        """\
# Review

### 1. Ownership (Section 2)

**Assessment:** APPROVED

Good.

### 2. Limits (Section 3)

**Assessment:** NEEDS WORK

- **Issue:** nothing is said about bursts

### Verdict: NEEDS_WORK
""",
        "13-",
        "NEEDS_REVISION",
    ),
    (
        "gaps of the coder beside gaps found",
        """\
# Review

## Gaps and Ambiguities

### GAP-1: No owner

**Severity:** HIGH

### AMBIGUITY-1: Days

**Severity:** LOW

## New Gaps Introduced

- GAP-OWN-001: who owns it (HIGH)
- GAP-OWN-002: who pays (LOW)

Verdict: needs changes
""",
        "5h 9l",
        "NEEDS_REVISION",
    ),
    (
        "required changes with ids",
        """\
# Review

## Required Changes

1. **ISSUE-R4-001** (HIGH): fix the lock
2. **ISSUE-R4-002** (LOW): fix the label

## Optional

- Rename things

**Verdict:** CHANGES REQUESTED
""",
        "5h 6l",
        "NEEDS_REVISION",
    ),
    (
        "underlined headings",
        """\
Summary
=======

Fine.

Issues
------

1. **No owner** (HIGH)

Verdict: NEEDS_REVISION
""",
        "9h",
        "NEEDS_REVISION",
    ),
    (
        "an overview above the details",
        """\
# Review

## Issue Overview

| # | Issue | Severity |
|---|-------|----------|
| 1 | Locks are never freed | HIGH |
| 2 | Odd names | LOW |

## Details

### 1. Locks are never freed (HIGH)

Text

### 2. Names are odd (LOW)

Text

## Verdict: NEEDS_REVISION
""",
        "12h 16l",
        "NEEDS_REVISION",
    ),
    (
        "a table, then an analysis",
        """\
# Review

## Issues

| # | Issue | Severity |
|---|-------|----------|
| 1 | Locks are never freed | HIGH |

## Analysis of each

### Locks are never freed

Text

## Verdict: NEEDS_REVISION
""",
        "7h",
        "NEEDS_REVISION",
    ),
    (
        "words of severity that rate something else",
        """\
# Technical review

## Architecture Analysis

1. **Layering**: clean. Confidence: HIGH
2. **Coupling**: low
3. **Critical path**: short

### Performance (High-Level)

- **Latency**: low - fine
- **Throughput**: high

## Critical Path Analysis

1. **Upload** then check
2. **Check** then store

## Risk Assessment

| Area | Risk | Mitigation |
|---|---|---|
| Upload | LOW | retry |
| Store | HIGH | replicate |

## Effort

- High: 3 days
- Low: 1 day

## Recommendation

ACCEPT
""",
        "",
        "APPROVED",
    ),
    (
        "definitions and counts of severities",
        """\
# Review of GAP-AAA-001

**Confidence:** HIGH
**Priority:** MEDIUM

### Severity Definitions

- CRITICAL: cannot be built
- HIGH: will be wrong
- MEDIUM: worse
- LOW: polish

| Severity | Weight |
|---|---|
| CRITICAL | 16 |

### Issue Counts

- **Critical:** 0
- **High:** 1
- **Low/Nits:** 0

### High Priority

- **ISSUE-R1-001**: One thing

### Verdict

**NEEDS_REVISION**
""",
        "25h",
        "NEEDS_REVISION",
    ),
    (
        "what must be addressed names findings again",
        """\
# Review

### High Priority

- **ISSUE-R2-001**: The lock is kept
  - Location: 3
  - Impact: CRITICAL systems wait
  - Suggestion: Define levels:
    - CRITICAL: stop
    - HIGH: warn
  - Related: ISSUE-R1-004, ISSUE-R1-005

**Must address before merge:**
- ISSUE-R2-001: free the lock

**May address later:**
- ISSUE-R1-005 is still open

### Verdict: APPROVED
""",
        "5h",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "fixes verified, one issue left",
        """\
# Review: Round 5

## Verification of Round 4 Fixes

**H1 Fix Verification (locks):**

1. ✅ Lock freed
2. ✅ Test added

**M1 Fix Verification:**

1. ❌ Not done

## Remaining Issues

**M1: The test is missing**

Still.

## Verdict: NEEDS_REVISION
""",
        "16m",
        "NEEDS_REVISION",
    ),
    (
        "tags",
        """\
# Review

Two notes:

[MUST] src/a.py:3 the lock is never freed - free it
- [SHOULD] rename `x`
**[LOW]** typo

Verdict: NEEDS_CHANGES
""",
        "5h 6m 7l",
        "NEEDS_REVISION",
    ),
    (
        "minor items",
        """\
**Review Status**: ACCEPT_WITH_MINOR

### Minor items

1. **Word choice**
2. **Spacing**

### Sign-off

- Reviewer: R
""",
        "5l 6l",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "two gaps in one review",
        """\
## Review: GAP-ONE-001

### High Priority

- **ISSUE-R2-001**: One

### Verdict: GAP-ONE-001 - NEEDS_REVISION

## Review: GAP-TWO-001

### Critical Issues

None identified. The design holds.

### Low Priority

- **ISSUE-R2-002**: Two

### Verdict: GAP-TWO-001 - APPROVED
""",
        "5h 17l",
        "NEEDS_REVISION",
    ),
    (
        "an approval denied",
        """\
## Assessment

The design is good. I would have **approved** it, but it is not ready.

## Verdict

Not approved.
""",
        "",
        "NEEDS_REVISION",
    ),
    (
        "recommendations that are suggestions",
        """\
## Recommendation: Accept the flag as optional

Text

**Recommendation:** Reject empty strings early.
""",
        "",
        "UNKNOWN",
    ),
    (
        "labelled issues of one gap of two",
        """\
# Reviewer Response: Round 006

## Gap-by-Gap Analysis

### GAP-UI-001: Modal stacking

**Proposal Quality:** Good

**Issues:**
1. **Issue:** Modals may stack without a limit
   - **Severity:** MINOR
   - **Recommendation:** limit to two
2. **Issue:** Escape closes all of them
   - **Severity:** MAJOR
   - **Recommendation:** close the top one

**Verdict:** APPROVED WITH MINOR ISSUES

### GAP-UI-002: Focus

**Proposal Quality:** Excellent

No issues found.

**Verdict:** APPROVED
""",
        "10l 13h",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "what can and what cannot be built",
        """\
# Design Review

## Implementability Assessment

### What can be built

1. **Storage layer** - clear
2. **Query layer** - clear

### What cannot be built as written

1. **Cache invalidation (Implementability Risk: HIGH)**
   - The events are not named
2. **Pagination tokens (Implementability Risk: MEDIUM)**
   - The format is open

## Simplicity Assessment

**1. Two config files (Medium Risk)**

One would do.

## Final Recommendation

**APPROVED WITH MODIFICATIONS**

1. Name the events
2. Define the token
""",
        "12h 14m 19m",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "concerns by their kind",
        """\
# Abstraction review

## Over-Engineering Concerns

### CONCERN #1: Plugin registry - MAJOR

**What the spec says:** a registry

**Problem:** there is one plugin

**Recommendation:** drop it

### CONCERN #2: Generic parameters - MODERATE

**Problem:** none uses them

### CONCERN #3: Names - NIT

## Under-Engineering Concerns

None.

## Verdict

**NEEDS_REVISION**
""",
        "5h 13m 17l",
        "NEEDS_REVISION",
    ),
    (
        "opportunities to say less",
        """\
# Compression Review

## Opportunities

COMPRESS-001: Merge the two tables
- **Savings:** 20 lines

COMPRESS-002: Drop the appendix
- **Savings:** 80 lines

## Cross-cutting

XCUT-KEY-001: `q` quits here and closes there (MEDIUM)
- **Specs:** a, b

## Status: APPROVED
""",
        "5l 8l 13m",
        "APPROVED",
    ),
    (
        "gaps of a model in a table",
        """\
## Data Model Review

The model is fine except for the following gaps:

| Gap ID | Description | Severity | Status |
|--------|-------------|----------|--------|
| GAP-DM-001 | No index on owner | HIGH | OPEN |
| GAP-DM-002 | Soft delete unclear | MEDIUM | OPEN |

### Verdict: NEEDS REVISION
""",
        "7h 8m",
        "NEEDS_REVISION",
    ),
    (
        "remaining concerns beside answers",
        """\
# Review v2

## Summary of Changes Reviewed

| Change | Assessment |
|---|---|
| Lock added | Good |

## Remaining Concerns

1. **Lock order** is still open [Major]
2. **Metrics** lack units [Minor]

## Answers to Open Questions

1. **Which lock?** - the second
2. **Which unit?** - ms

**Review Status**: CONDITIONAL APPROVAL
""",
        "11h 12l",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "bold ids with fields, counts below",
        """\
# Reviewer: Session X, Round 2

### Review: GAP-X1-001

**ISSUE-R2-001**: Wrong default
- Severity: HIGH
- Location: 4.1

**ISSUE-R2-002**: Missing unit
- Severity: LOW

### Issue Summary

- CRITICAL: 0
- HIGH: 1 (ISSUE-R2-001)
- LOW: 1 (ISSUE-R2-002)

### Verdict

APPROVED - with the fix for ISSUE-R2-001
""",
        "5h 9l",
        "APPROVED_WITH_CONDITIONS",
    ),
    (
        "bold in numbered headings",
        """\
# Feasibility

## Blocking

#### 1. **No API for events (HIGH)**

x

#### 2. **Clock skew (CRITICAL)**

y

## Not blocking

#### 3. **Naming (LOW)**

## Questions

#### 4. Who owns it?

**Verdict: REJECT**
""",
        "5h 9c 15l",
        "NEEDS_REVISION",
    ),
]


@for_each(
    ("text", "findings", "verdict"), [review[1:] for review in REVIEWS], ids=[review[0] for review in REVIEWS]
)
def test_a_whole_review_is_read_as_its_reader_would(text: str, findings: str, verdict: str) -> None:
    read = read_review(text)
    told = [f"{found.line}{found.severity.value[0] if found.severity else '-'}" for found in read.findings]

    assert told == findings.split()
    assert (read.verdict.value if read.verdict else "UNKNOWN") == verdict
