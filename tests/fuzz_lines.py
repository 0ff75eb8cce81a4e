"""The lines out of which documents are made: one a line, ⏎ where one of them has several.

{c} stands for the code of a finding or a range of them, {s} for a severity, {p} for a place, {w} for words,
{n} for a number.
"""


def _lines(text: str) -> list[str]:
    return [line.replace("⏎", "\n") for line in text.strip("\n").split("\n")]


# --- What stands in the gaps ------------------------------------------------------------------------------

# Only examples name findings of this round.
ROUND_OF_EXAMPLES = 77
CODES = [
    *(f"ISSUE-R{round_}-{number:03d}" for round_ in (1, 2, 11) for number in (1, 2, 3, 17)),
    "R1-002", "ISSUE-R2-V2-003", "ISSUE-R1-1", "CRIT-001", "HIGH-002", "MED-003", "NIT-001", "H1", "M2",
    "L-001", "CONCERN #1", "GAP-1", "AMBIGUITY-2", "EDGE-CASE-1", "XCUT-NAV-001", "COMPRESS-001",
    "OBSERVATION-R7-V2-001", "DIVERGE-001", "issue-r1-001", "ISSUE-R1-0001", "ISSUE-R1", "GAP-FLOW-001",
]  # fmt: skip
RANGES = [
    "ISSUE-R1-001 through ISSUE-R1-003", "R1-013 through R1-017", "ISSUE-R2-001 to R2-004", "R1-033–R1-038",
    "ISSUE-R1-001, ISSUE-R1-002 and R1-003", "R1-001/R1-002", "R1-001 through R9-999",
    "R1-900 through R1-001",
]  # fmt: skip
SEVERITIES = [
    "CRITICAL", "HIGH", "MEDIUM", "LOW", "High", "low", "MAJOR", "MINOR", "MUST", "SHOULD", "NIT",
    "Nice to have", "Medium/Low", "LOW-MEDIUM", "High Risk", "urgent", "",
]  # fmt: skip
PLACES = [
    "src/login.py:41", "`src/a.py`", "Section 3", "§4.2 Retry", "docs/SPEC.md:7-12", "lines 10–20", "",
    "a.py:",
]  # fmt: skip
# Signs that mean something to some reader, or to some layer below one.
SIGNS = [
    *"*_`~#>|-+:;.,!?()[]{}<>\\/\"'&%$=^ \t\n\r", "\r\n", "\n\n", "**", "__", "```", "~~~", "````",
    "---", "| ", "> ", "- ", "* ", "1. ", "# ", "## ", "[x] ", "<!--", "-->", "\x00", "\x0b", "\x0c",
    "\x1b[31m", "\x7f", "\x85", "\xa0", "\u200b", "\u200d", "\u202e", "\u2028", "\u2029", "\u2066",
    "\ufeff", "\ufffd", "\ufffe", "\ud800", "\udfff", "é", "e\u0301", "ß", "\u0130", "\u0131", "\u017f",
    "\u212a", "\uff21", "\U0001d400", "\uff10", "\u0663", "²", "½", "–", "—", "’", "“", "…", "✓", "✅",
    "❌", "\U0001f469\u200d\U0001f4bb", "\U00020000",
]  # fmt: skip
WORDS = [
    "",
    *_lines("""
The password is compared in plain text
The retry count is off by one
The sum is wrong (see below)
Nothing says what happens after the third refusal
x
Two words
A *loud* word and `code()`
The table | has a bar
A title: with a colon - and a dash
größer als gedacht
[link](a.md)
"""),
]

# --- Lines of a review and of a response ------------------------------------------------------------------

REVIEW_LINES = _lines("""
## Review: {w}
# Round {n}
### {s} Priority
## {s} Issues
#### {s}
### Issues: {s}
### {s} Priority / Nits
### Minor Issues (Non-Blocking)
None.
N/A
None identified.
- **{c}**: {w}
{n}. **{c} ({s}):** {w}
### {c} ({s}): {w}
### [{c}]: {w}
### {c}: {w} ({s})
### {c}: {w}⏎**Severity:** {s}
**{c}: {w}**
## {s} Issues⏎⏎### {c}: {w}
**{c}: {w}**⏎⏎| a | b | c |
#### {c}. {w}
#### {n}. {w}
- **[{c}]** {w}
### {c}
### {c}: {w} - {s}
{n}. **Issue:** {w} - **Severity:** {s}
**{s} ({w}):**⏎{n}. **{w}** ({p})
#### {n}. {w} - CLARIFICATION NEEDED⏎**Priority:** {s}
{n}. **{w} (Implementability Risk: {s})**
{n}. **{w}** [{s}]
#### {n}. **{w} ({s})**
{n}. **{w}**⏎   - Assessment: {s}
{c}: {w} ({s})
| Issue | Severity | Gap |⏎|---|---|---|⏎| {c} | {s} | {w} |
- [{s}] {w} - {w}
**[MUST]** {p} {w}
[HIGH] {w}
* [LOW]: {w}
- Location: {p}
**Location:** {p}
  - **Impact:** {w}
**Why it matters**: {w}
  - Suggestion: {w}
**Required change:** {w}
Fix: {w}
- **Severity:** {s}
**Severity**: {s} ({w})
Quote: {w}
- Evidence: {w}
{w}
{w} {c} {w}.



---
***
    indented {w}
- {w}
  - {w}
* {w}⏎  continued
{n}) {w}
| {w} | {p} |
- [x] **{c}** - FIXED
- [ ] **{c}**: PARTIAL
#### {c}: {w} - RESOLVED
**Status: FULLY RESOLVED**
| {c} | **FIXED** |
- **[{c}] {w}**: **PARTIALLY_RESOLVED**
{c} is withdrawn.
### Prior issues
## Verdict: NEEDS_REVISION
**Verdict:** NEEDS WORK
## Verdict⏎⏎**REJECTED**
Verdict: lovely
### Verdict: {c} - CHANGES REQUESTED
## Recommendation: REJECT
**Status:** OPEN
## Overall Assessment: {w}
| Gap | Verdict |⏎|---|---|⏎| GAP-FLOW-001 | NEEDS_REVISION* |
## Verdict
Verdict: no NEEDS_CHANGES found
""")
RESPONSE_LINES = _lines("""
## Response to Reviewer Issues
## Changes from Round {n}
| Issue | Answer | Change |⏎|---|---|---|
| {c} | addressed | {w} |
| **{c}** | deferred: {w} | {p} |
| {c} ({s}) | {w} |
| {c} | partly |
| {w} | {c} |
| {c} | {c} | {c} |
### {w} (Addressing {c})
### Response to {c}
**Addressing {c}:** {w}
- **{c}**: fixed in {p}
- [x] {c}: done
- [ ] {c} - later
{c}: not changed
{c} {w}
- {c}
## DISAGREE: {c}⏎⏎**Reviewer Concern:**⏎> {w}⏎⏎**Engineer Position:** {w}⏎⏎**Rationale:** {w}⏎
### **DISAGREE:** [{c}]⏎**Rationale:** {w}⏎**Alternative:** {w}
## DISAGREE
DISAGREE: {c}
#### disagree: {c}⏎**Reviewer Concern:** {w}
## Response to {c}⏎**Engineer Position:** DISAGREE⏎{w}
**Rationale:** {w}
**Engineer Position:** {w}
> {w}
**Request:** escalate to user
## Revision: {w}
## Gap Resolution: GAP-FLOW-001
**Confidence:** HIGH
### Trade-offs
## New Gaps Introduced
{w} [REVISED]
Reviewer misunderstands {w}.
This is not a real issue.
{c} was mooted by the redesign.
No change needed.
The user decided {c}.
```python⏎# {c} Fix⏎x = 1⏎```
~~~⏎| {c} | fixed |⏎~~~
- ```⏎  {c}⏎  ```
""")
# An approval as it is written where it is one.
APPROVALS = _lines("""
## Verdict: APPROVED
**Verdict:** APPROVED
## Verdict⏎⏎**APPROVED**
Verdict: ACCEPTED
- Verdict: approve
### Verdict: GAP-FLOW-001 - APPROVED
## Verdict: NO_ISSUES_FOUND
## Verdict: APPROVED WITH NOTES
**VERDICT: APPROVED**
| Gap | Verdict |⏎|---|---|⏎| GAP-FLOW-001 | APPROVED |
**Status:** APPROVED
## Recommendation: APPROVE
## Overall Assessment: APPROVED
""")
# What an example may show; findings of ROUND_OF_EXAMPLES are named nowhere else.
OWN_EXAMPLES = _lines("""
- **ISSUE-R77-701**: {w}
### ISSUE-R77-702 (CRITICAL): {w}
| ISSUE-R77-703 | addressed | {w} |
- [x] ISSUE-R77-704: fixed
## DISAGREE: ISSUE-R77-705⏎⏎**Reviewer Concern:** {w}⏎⏎**Rationale:** {w}
R77-706 through R77-709: done
**Addressing ISSUE-R77-710:** {w}

{w}
""")
EXAMPLES = [*APPROVALS, *OWN_EXAMPLES]
REJECTIONS = _lines("""
## Verdict: NEEDS_REVISION
**Verdict:** REJECTED
Verdict: CHANGES REQUESTED
### Verdict: NEEDS WORK
""")
# What a verdict may say that holds the word of an approval and is none.
DENIALS = _lines("""
not approved
Not yet approved.
**not** approved
_Not_ **approved**
not `APPROVED`
NOT_APPROVED
cannot approve
I cannot approve this.
can't approve
can’t be approved
no approval
No approval given
approval withheld
Approval denied
approval: no
isn't approved
was never approved
unapproved
disapproved
will not be approved until the hash is compared
do not accept
cannot be accepted
unacceptable
not accepted
neither approved nor rejected
should not be approved
APPROVED? No.
approved: no
Approved? Not yet
un-approved
non-approved
refuse to approve
declined to approve
unable to approve
far from approved
nobody approved this
fails to be approved
NEEDS_REVISION, will be approved once fixed
NEEDS_REVISION (will be APPROVED once the hash is compared)
NEEDS_REVISION until approved
to be approved
NEEDS_REVISION | APPROVED
NEEDS_REVISION / APPROVED
[NEEDS_REVISION|APPROVED]
{NEEDS_REVISION, APPROVED}
APPROVED | NEEDS_REVISION
NEEDS_REVISION / APPROVED_WITH_CONDITIONS / APPROVED
~~APPROVED~~
[ ] APPROVED
NEEDS_REVISION ~~APPROVED~~
[x] NEEDS_REVISION [ ] APPROVED
would be approved if the hash were compared
no issues found? Three.
APPROVED is not possible
approved by nobody
pending approval
awaiting approval
APPROVED (not really)
<!-- APPROVED -->
NEEDS_REVISION <!-- APPROVED -->
""")
VERDICT_PLACES = _lines("""
## Verdict: {}
**Verdict:** {}
Verdict: {}
- Verdict: {}
## Verdict⏎⏎{}
**Verdict: {}**
### Verdict: GAP-FLOW-001 - {}
## Verdict⏎⏎**{}**
**Status:** {}
## Recommendation: {}
## Overall Assessment: {}
- **Recommendation:** {}
**Review Status**: {}
""")
# Lines with an approving word, none of which says what became of the work under review.
PROSE = _lines("""
The design was approved by the security group in March.
Accept the token only once.
I approved it.
- **ISSUE-R1-001**: The endpoint accepts any token
  - **Suggestion:** Accept the token in lower case too
  - **Impact:** A request is approved twice.
### ISSUE-R1-002: Approved orders can be changed (HIGH)
- [MUST] src/pay.py:7 approved payments are not locked
Once approved, the order must not change.
APPROVED
LGTM
No issues found in the tests.
The verdict is APPROVED
Verdicts: APPROVED
Write `Verdict: APPROVED` once the hash is compared.
| Word | Meaning |⏎|---|---|⏎| APPROVED | nothing is left |
- **Recommendation:** Accept the token in lower case too
  - **Status:** the column says APPROVED for both
### Approved risks
Who approves? The lead.
> Verdict: APPROVED
`## Verdict: APPROVED` ends a good review.
The last review was APPROVED.
- The acceptance test accepts nothing
See [Verdict: APPROVED](docs/verdict.md).
""")
