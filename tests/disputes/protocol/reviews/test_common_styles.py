"""Reviews in the styles of common tools and habits, none of which follows our own form (FND-1)."""

from disputes.protocol.reviews.review import Found, read_review
from tests.cases import for_each

# What is expected: the verdict in one letter (r, a, c, - for none), and of each finding its line, its
# severity in one letter and the beginning of its title.
Expected = tuple[str, list[tuple[int, str, str]]]
VERDICTS = {"NEEDS_REVISION": "r", "APPROVED": "a", "NO_ISSUES_FOUND": "a", "APPROVED_WITH_CONDITIONS": "c"}


def told(found: Found, title: str) -> tuple[int, str, str]:
    severity = found.severity.value[0] if found.severity else "-"
    return found.line, severity, found.title[: len(title)]


STYLES: list[tuple[str, str, Expected]] = [
    (
        "a rejection in plain items, without headings and severities",
        """\
Changes requested.

- src/money.py:42 - Negative amounts are rounded the wrong way.
- There is no test for NaN.
- [x] The name of the test is better now.
""",
        ("r", [(3, "-", "src/money.py:42 - Negative"), (4, "-", "There is no test for NaN.")]),
    ),
    (
        "what works and what does not, in a rejection",
        """\
**Verdict: CHANGES REQUESTED**

### What works
- Rounding of positive amounts

### What doesn't
- Negative amounts are rounded the wrong way (`src/money.py:42`)
""",
        ("r", [(7, "-", "Negative amounts")]),
    ),
    (
        "a sentence that withholds the approval, with a list below it",
        """\
I can't approve this yet:

- `src/money.py:42` negative amounts are rounded the wrong way
- `src/money.py:50` NaN passes unchecked

Please fix both.
""",
        ("r", [(3, "-", "`src/money.py:42` negative"), (4, "-", "`src/money.py:50` NaN")]),
    ),
    (
        "lines of the file in the heading",
        """\
Verdict: REQUEST CHANGES

## src/money.py

- L42: negative amounts are rounded the wrong way
- L50: NaN passes unchecked

## `tests/test_money.py`

- No test for NaN
""",
        ("r", [(5, "-", "negative amounts"), (6, "-", "NaN passes"), (10, "-", "No test for NaN")]),
    ),
    (
        "ticks and crosses before the lines",
        """\
## Code Quality
✅ Clear naming
❌ `src/money.py:42` negative amounts are rounded away from zero

## Test Coverage
- ✅ Positive amounts
- ❌ No tests for negative amounts

**Request changes** — fix the negative case.
""",
        ("r", [(3, "-", "`src/money.py:42` negative"), (7, "-", "No tests for")]),
    ),
    (
        "must, should and consider, in brackets",
        """\
**Status**: CHANGES REQUESTED

### Findings

#### [MUST] Negative amounts are wrong
- **Where**: `src/money.py:42`

#### [CONSIDER] Rename the helper
- **Where**: `src/money.py:5`
""",
        ("r", [(5, "h", "Negative amounts"), (8, "l", "Rename the helper")]),
    ),
    (
        "numbered warnings and suggestions",
        """\
Verdict: Needs Changes

## Warnings

### Warning 1: NaN passes unchecked

- **File**: `src/money.py:50`

## Suggestions

### Suggestion 1: Rename the helper

- **File**: `src/money.py:5`
""",
        ("r", [(5, "m", "NaN passes"), (11, "l", "Rename the helper")]),
    ),
    (
        "places in bold before the words",
        """\
Two things need to change before this can merge:

1. **`src/money.py:42`** — negative amounts are rounded the wrong way.
2. **`src/money.py:50`** — NaN passes unchecked.
""",
        ("-", [(3, "-", "negative amounts are"), (4, "-", "NaN passes unchecked.")]),
    ),
    (
        "a checker's words behind the place",
        """\
a.py:3: error: Null deref when the list is empty
b.py:9: warning: shadowed name
b.py:12: note: consider a set

Verdict: needs revision
""",
        ("r", [(1, "h", "Null deref when"), (2, "m", "shadowed name")]),
    ),
    (
        "warnings between what is critical and suggestions",
        """\
### 🔴 Critical

#### 1. Race in `take()`
Two workers may take one job.

### 🟡 Warnings (should fix)

- `b.py` has no docstring

**Recommendation:** Request changes
""",
        ("r", [(3, "c", "Race in"), (8, "m", "`b.py` has no docstring")]),
    ),
    (
        "whether it blocks, in small letters",
        """\
blocking: the new endpoint has no permission check
nit: typo in README

-> changes requested
""",
        ("r", [(1, "h", "the new endpoint"), (2, "l", "typo in README")]),
    ),
    (
        "parts that fold and give a severity to what is in them, on one line with their summaries",
        """\
<details><summary>🔴 Critical (1)</summary>

- `save()` writes outside of the transaction
</details>

blocker: the key is logged

Decision: request changes
""",
        ("r", [(3, "c", "`save()` writes"), (6, "c", "the key is logged")]),
    ),
    (
        "a part that folds, on one line with its summary",
        """\
<details><summary>High: unchecked cast</summary>

`x as string` may fail.
</details>

Decision: request changes
""",
        ("r", [(1, "h", "unchecked cast")]),
    ),
    (
        "priorities as tags",
        """\
**Findings**

- [P1] Guard against empty batches — src/batch.py:41-46
  When `items` is empty, `max()` raises `ValueError`.

- [P2] Retry loop swallows KeyboardInterrupt — src/http.py:88-95
  The bare `except` also catches Ctrl+C.

- [P3] Typo in log message — src/http.py:102

**Overall correctness:** patch is incorrect
""",
        (
            "r",
            [
                (3, "h", "Guard against empty batches"),
                (6, "m", "Retry loop swallows"),
                (9, "l", "Typo in log message"),
            ],
        ),
    ),
    (
        "bold priorities",
        """\
**P0 — Data loss on upgrade** (`upgrade.sh:12`)
`rm -rf "$DIR/"*` runs with DIR empty.

**P2 — Quote the path** (`upgrade.sh:20`)

**Verdict:** Do not merge
""",
        ("r", [(1, "c", "Data loss on upgrade"), (4, "m", "Quote the path")]),
    ),
    (
        "numbered tags",
        """\
**Verdict: Request changes**

**1) [BLOCKER] Unbounded recursion in `walk()`** — `fs/walk.py:30`

A symlink to its own parent recurses for ever.

**2) [NIT] `List` from typing** — `fs/walk.py:3`
""",
        ("r", [(3, "c", "Unbounded recursion in"), (7, "l", "`List` from typing")]),
    ),
    (
        "comments with a kind in bold",
        """\
Hey there - here's some feedback:

**issue (bug_risk):** The file handle is never closed when `parse` raises.

**suggestion (performance):** Read the file in chunks.

**nitpick:** Rename `x`.

**praise:** Good names.
""",
        (
            "-",
            [
                (3, "-", "The file handle is never closed"),
                (5, "l", "Read the file in chunks"),
                (7, "l", "Rename `x`"),
            ],
        ),
    ),
    (
        "a place and then a severity",
        """\
Verdict: reject

- `src/io.rs:14` — **high** — the result of `write` is ignored
- `src/io.rs:30` — **low** — `unwrap` in a test helper
""",
        ("r", [(3, "h", "the result of `write` is ignored"), (4, "l", "`unwrap` in a test helper")]),
    ),
    (
        "places in backticks whose names hold more than words",
        """\
`app/[id]/page.tsx:14` - **high** - the id is not checked

`über uns/ü ber.md:3` Say who the publisher is.

- [HIGH] `app/(shop)/$slug.tsx:7` - The slug is not escaped

Verdict: NEEDS_REVISION
""",
        (
            "r",
            [
                (1, "h", "the id is not checked"),
                (3, "-", "Say who the publisher is."),
                (5, "h", "`app/(shop)/$slug.tsx:7`"),
            ],
        ),
    ),
    (
        "lines as a compiler prints them",
        """\
src/io.go:14: [high] the error of Close is ignored
lib/io.go:40: [low] exported function without a comment

REQUEST_CHANGES
""",
        ("r", [(1, "h", "the error of Close"), (2, "l", "exported function")]),
    ),
    (
        "coloured signs and blocking",
        """\
🔴 **Blocking:** the migration is irreversible (`migrations/0007.py`)
🟡 **Non-blocking:** the index name is too long for Oracle
🟢 Nice tests!

**Decision:** ❌ changes needed
""",
        ("r", [(1, "h", "the migration is irreversible"), (2, "l", "the index name is too long")]),
    ),
    (
        "labelled lines without a title",
        """\
File: src/a.py
Line: 12
Severity: High
Issue: The lock is taken twice.
Fix: Use an RLock.

File: src/b.py
Line: 3
Severity: Low
Issue: Wrong docstring.
Fix: Correct it.

Verdict: REJECT
""",
        ("r", [(1, "h", "The lock is taken twice."), (7, "l", "Wrong docstring.")]),
    ),
    (
        "labelled lines in bold",
        """\
**Severity:** Critical
**File:** `src/auth.py:9`
**Issue:** Tokens are compared with `==`.
**Recommendation:** `hmac.compare_digest`.

---

**Severity:** Minor
**File:** `src/auth.py:30`
**Issue:** Dead code.

**Verdict:** Changes requested
""",
        ("r", [(1, "c", "Tokens are compared with"), (8, "l", "Dead code.")]),
    ),
    (
        "labelled lines after thinking aloud",
        """\
Okay, `merge` sorts the input now. Wait, does the caller rely on its order? Yes, it does.

FINAL REVIEW

Severity: High
Location: merge.py line 8
Problem: Sorting the rows breaks the pairing with the headers.
Suggestion: Sort a copy for the output only.

VERDICT: CHANGES_REQUESTED
""",
        ("r", [(5, "h", "Sorting the rows breaks")]),
    ),
    (
        "badges between a place and a title",
        """\
**Actionable comments posted: 2**

### src/cache.py (lines 20-24)

_⚠️ Potential issue_ | _🟠 Major_

**Do not share the default list between instances.**

`def __init__(self, items=[])` keeps one list.

### src/cache.py (line 60)

_🧹 Nitpick_ | _🔵 Trivial_

**Use a set.**

Membership is tested in a loop.
""",
        ("-", [(5, "h", "Do not share the default list"), (13, "l", "Use a set.")]),
    ),
    (
        "pictures as badges",
        """\
## Detailed feedback

![high](https://example.org/high-priority.svg)

The cursor is not signed, so a client can read any page. (`api/cursor.py`, 20-31)

![medium](https://example.org/medium-priority.svg)

`page_size` has no upper bound.
""",
        ("-", [(3, "h", "The cursor is not signed"), (7, "m", "`page_size` has no upper bound.")]),
    ),
    (
        "a severity alone below its heading",
        """\
### Bug: Retry count is off by one

**High Severity**

`range(retries)` runs the body once less than the docstring says.

### Bug: Unused parameter

**Low Severity**

`timeout` is never read.
""",
        ("-", [(1, "h", "Bug: Retry count"), (7, "l", "Bug: Unused parameter")]),
    ),
    (
        "a severity alone above a list",
        """\
## Issues found

**Critical**

- The lock leaks after a crash.
- The key is logged in plain text.
""",
        ("-", [(5, "c", "The lock leaks"), (6, "c", "The key is logged")]),
    ),
    (
        "one word behind a severity in a heading",
        """\
### High: Timeout is not applied
`fetch` gets no signal.

### Low: Spelling
"occured"

## Conclusion
Request changes.
""",
        ("r", [(1, "h", "Timeout is not applied"), (4, "l", "Spelling")]),
    ),
    (
        "parts that fold",
        """\
<details>
<summary>🔴 High: The queue is never drained (worker.py:30)</summary>

After a stop the loop leaves jobs behind.
</details>

<details>
<summary>🟡 Low: Wrong log level (worker.py:44)</summary>

Use debug.
</details>

Verdict: request changes
""",
        ("r", [(2, "h", "The queue is never drained"), (8, "l", "Wrong log level")]),
    ),
    (
        "required and optional",
        """\
Overall: 7/10. I would not merge this yet.

Required changes:
1) `Money` must not be a float.
2) Rounding differs between `add` and `total`.

Optional:
- A `__repr__` would help.
""",
        (
            "r",
            [
                (4, "-", "`Money` must not be a float."),
                (5, "-", "Rounding differs"),
            ],
        ),
    ),
    (
        "suggestions beside what is critical",
        """\
### 🔴 Critical Issues

1. **Memory leak in `Parser.feed`** (`parser.c:88`)
   The buffer is reallocated without freeing the old one.

### 🟡 Suggestions

1. **Document the limits** (`parser.h:12`)
2. **Add a fuzz target**

### ✅ Positives

- Clean separation

### Verdict: **Request changes** ❌
""",
        ("r", [(3, "c", "Memory leak in"), (8, "l", "Document the limits"), (9, "l", "Add a fuzz target")]),
    ),
    (
        "a sign, a severity in capitals and a place",
        """\
🔴 CRITICAL — auth.py:20
Session is not rotated after login.

🟠 HIGH — auth.py:44
Password reset token never expires.

Verdict: FAIL
""",
        ("r", [(1, "c", "Session is not rotated"), (4, "h", "Password reset token")]),
    ),
    (
        "records with their severity in parentheses",
        """Issue 1 (Severity: Major)
Location: parser.c, line 90
The loop reads one byte past the buffer.

Issue 2 (Severity: Minor)
Location: parser.c, line 120
""",
        ("-", [(1, "h", "Issue 1"), (5, "l", "Issue 2")]),
    ),
    (
        "numbers in other marks than those of a list, and tags in a row",
        """(1) HIGH: The token is compared in variable time.
(2) LOW: The docstring says md5.

#3 [Security][High] Path traversal in `download()`
`../` is not removed before the join.

See #4 below, and (5) too.
""",
        (
            "-",
            [
                (1, "h", "The token is compared"),
                (2, "l", "The docstring says md5."),
                (4, "h", "Path traversal in"),
            ],
        ),
    ),
    (
        "short ids and a severity before a place",
        """C1. The lock is not released on error. [critical] (db.py:14)
M1. The pool grows without limit. [medium] (db.py:70)
* F-1 | HIGH | main.rs:10 | unwrap on user input
""",
        (
            "-",
            [
                (1, "c", "The lock is not released"),
                (2, "m", "The pool grows"),
                (3, "h", "main.rs:10 unwrap on user input"),
            ],
        ),
    ),
    (
        "items with signs",
        "1. ❗ The migration has no down step (blocker)\n2. ⚠️ No index (should fix)\n",
        ("-", [(1, "c", "The migration has no down step"), (2, "m", "No index")]),
    ),
    (
        "tags of XML",
        """<review>
<finding>
<severity>high</severity>
<file>src/a.py</file>
<description>The file is never closed.</description>
</finding>
<finding severity="minor" file="src/lib.rs" line="131">
`clone()` is not needed.
</finding>
<verdict>reject</verdict>
</review>
""",
        ("r", [(2, "h", "The file is never closed."), (7, "l", "`clone()` is not needed.")]),
    ),
    (
        "tags of XML with attributes, after thoughts",
        """<thinking>
Is the lock (critical) held? Verdict: APPROVED?
</thinking>
<review verdict="request_changes"><issue file="a.py" line="3" severity="high">It leaks &lt;b>.</issue>
<issue severity="low" path="b.py" message="The name says nothing"/>
<comment priority="P2">Use `<issue>` here, <b>or</b> <fix>none</fix></comment>
</review>
""",
        ("r", [(4, "h", "It leaks <b>."), (5, "l", "The name says nothing"), (6, "m", "Use `<issue>` here")]),
    ),
    (
        "tags of XML in a fence, of which the last is never closed",
        """Here it is:

```xml
<findings><finding><severity>high</severity><title><![CDATA[It leaks]]></title></finding>
<finding severity="medium">No limit
</findings>
<decision>reject</decision>
```
""",
        ("r", [(4, "h", "It leaks"), (5, "m", "No limit")]),
    ),
    (
        "words about tags are no data",
        "Changes requested.\n\n- The <issue> element is raw.\n- `<finding>x</finding>` is shown raw.\n",
        ("r", [(3, "-", "The <issue> element"), (4, "-", "`<finding>x</finding>` is")]),
    ),
    (
        "lists of JSON below other keys, which state the severity",
        """{"review": {"decision": "reject", "blocking_issues": [{"file": "a.py", "issue": "it leaks"}],
  "nits": ["the name says nothing"], "fixed_issues": ["the typo"],
  "strengths": ["the tests"], "code_suggestions": [{"suggestion_content": "limit it", "blocking": true}]}}
""",
        ("r", [(1, "h", "it leaks"), (2, "l", "the name"), (3, "h", "limit it")]),
    ),
    (
        "JSON among sentences and in several fences",
        """Here it is:

{"verdict": "REJECT", "findings": [
  {"severity": "high", "file": "a.py", "message": "it leaks"}]}

And:

```json
{"findings": [{"severity": "low", "message": "the name says nothing"}]}
```

```json
{"results": ["an example"]}
```
""",
        ("r", [(4, "h", "it leaks"), (9, "l", "the name says nothing")]),
    ),
    (
        "titles that begin with a word for a status and go on",
        "## Findings\n\n1. [P2] Verified-state panel\n2. [P2] Fixed-width boxes\n- [HIGH] Closed-form sums\n"
        "4. [P1] Resolved: the lock\n\n- [MUST] DONE.md:1 Say it twice\n- [HIGH] open.py leaks\n",
        (
            "-",
            [
                (3, "m", "Verified-state"),
                (4, "m", "Fixed-width"),
                (5, "h", "Closed-form"),
                (8, "h", "DONE.md:1"),
                (9, "h", "open.py"),
            ],
        ),
    ),
    (
        "points that are counted on one line",
        "Reject: (1) the lock leaks, (2) the retry has no limit, (3) nothing is tested.\n",
        ("r", [(1, "-", "the lock leaks"), (1, "-", "the retry has"), (1, "-", "nothing is tested.")]),
    ),
    (
        "tags on one line",
        "Needs work. [HIGH] a.py:3 it leaks; [MEDIUM] the retry has no limit [LOW] a typo (1) or (3)\n",
        ("r", [(1, "h", "a.py:3 it leaks"), (1, "m", "the retry has no limit"), (1, "l", "a typo")]),
    ),
    (
        "a sentence with numbers is one finding",
        "[HIGH] a.py:3 begins to count at 2. It should at 1. That is wrong.\n",
        ("-", [(1, "h", "a.py:3 begins to count at 2. It should")]),
    ),
    (
        "all of it in a fence",
        "```markdown\n**Verdict:** NEEDS_REVISION\n\n- [HIGH] a.py:3 - it leaks\n```\n",
        ("r", [(4, "h", "a.py:3 - it leaks")]),
    ),
    (
        "tags with several words, and a badge above a comment",
        """[ISSUE — BLOCKING] It leaks
(a.py:3).

[COMMENT — non-blocking] The test could be shorter.

### [NIT:naming] `key` says nothing
**Fix:** rename it

### Bug: No limit

**High Severity**

<!-- DESCRIPTION START -->
It goes on for ever.
""",
        (
            "-",
            [(1, "h", "It leaks"), (4, "l", "The test"), (6, "l", "`key` says"), (9, "h", "Bug: No limit")],
        ),
    ),
    (
        "labelled lines below a heading with nothing but a severity",
        "### [severity: warning]\n**File**: a.py\n**Issue**: It leaks\n**Fix**: Close it\n\n### Critical\n"
        "**File**: b.py\n**Issue**: No limit\n",
        ("-", [(2, "m", "It leaks"), (7, "c", "No limit")]),
    ),
    (
        "severities in capitals before a place, and coloured signs",
        "(1) HIGH a.py:3 it leaks\n(2) MINOR b.py:4 typo\n\n# B\n\n🔴 c.py:5 — no end\n🔵 the name is bad\n",
        ("-", [(1, "h", "a.py:3"), (2, "l", "b.py:4"), (6, "c", "c.py:5"), (7, "l", "the name")]),
    ),
    (
        "a table with coloured signs, and numbers with dots",
        "| Sev | File | Issue |\n|---|---|---|\n| 🔴 | a.py:3 | It leaks |\n\n## Findings\n\n"
        "1. [F1.1] HIGH: no limit\n",
        ("-", [(3, "c", "It leaks"), (7, "h", "no limit")]),
    ),
    (
        "a review of PR-Agent in YAML",
        """review:
  score: 62
  key_issues_to_review:
    - relevant_file: a.py
      issue_header: Resource Leak
      issue_content: The file is never closed.
""",
        ("-", [(5, "-", "Resource Leak")]),
    ),
    (
        "a list of data in YAML",
        """- severity: high
  file: x.py
  line: 3
  problem: eval of user input
- severity: low
  file: y.py
  problem: a name that says nothing
""",
        ("-", [(4, "h", "eval of user input"), (7, "l", "a name that says nothing")]),
    ),
    (
        "a list of data in JSON",
        """[
 {"severity": "HIGH", "path": "x.py", "line": 3, "message": "eval of user input"},
 {"severity": "LOW", "path": "y.py", "line": 9, "message": "a name that says nothing"}
]
""",
        ("-", [(2, "h", "eval of user input"), (3, "l", "a name that says nothing")]),
    ),
    (
        "what became of earlier findings, in a list with a label",
        """\
## Re-review, round 2

Earlier findings:

- ISSUE-R1-001 (SQL injection): fixed ✔
- ISSUE-R1-002 (limit): verified fixed in `a.py:10`
- ISSUE-R1-003 (empty term): **not fixed** – an empty term still lists everything.
- ISSUE-R1-004: accepted the coder's reasoning

New findings:

- ISSUE-R2-001 (high): The term is logged.

Verdict: REQUEST_CHANGES
""",
        ("r", [(12, "h", "The term is logged.")]),
    ),
    (
        "a new finding right below what became of earlier ones",
        "Previous issues addressed:\n\n- ISSUE-R1-001: fixed ✔\n\n- **ISSUE-R2-001** (high): No limit\n",
        ("-", [(5, "h", "No limit")]),
    ),
    (
        "data in a fence",
        """Here is my review.

```json
{
  "verdict": "request_changes",
  "findings": [
    {"severity": "high", "file": "api/views.py", "line": 33,
     "title": "Missing permission check", "body": "Anybody may delete a project."},
    {"severity": "info", "file": "api/urls.py", "line": 4, "title": "Unused import"}
  ]
}
```
""",
        ("r", [(8, "h", "Missing permission check"), (9, "l", "Unused import")]),
    ),
    (
        "data with priorities and nested places",
        """{
  "findings": [
    {
      "title": "[P1] Close the pool before returning",
      "body": "The pool stays open when `run` returns early.",
      "priority": 1,
      "code_location": {"absolute_file_path": "/w/src/pool.py", "line_range": {"start": 31, "end": 33}}
    }
  ],
  "overall_correctness": "patch is incorrect"
}
""",
        ("r", [(4, "h", "Close the pool before returning")]),
    ),
    (
        "data in YAML that approves in spite of what it finds",
        """verdict: approve
findings:
  - severity: error
    path: cmd/root.go
    message: The context is not cancelled.
""",
        ("c", [(5, "h", "The context is not cancelled.")]),
    ),
    (
        "data without findings",
        '```json\n{"approved": true, "issues": []}\n```\n',
        ("a", []),
    ),
    (
        "data beside prose that says worse",
        """I cannot approve this: the lock leaks.

**Verdict:** reject

```json
{"approved": true, "issues": []}
```
""",
        ("r", []),
    ),
    (
        "an example that looks like data",
        """The endpoint answers with this before anybody has looked at it, so I am not done:

```json
{"status": "approved", "approved": true, "issues": []}
```
""",
        ("-", []),
    ),
    (
        "data that is none",
        '{"verdict": "approve", "findings": [',
        ("-", []),
    ),
    (
        "a severity behind the first sentence of a paragraph or an item",
        """\
I went through the diff twice.

The lock in `queue.py:30` is released too early (high). A second consumer may take the same job
before the update.

The log line prints the password (critical).

- The constant could be named after what it limits (nit). Up to you.

Verdict: changes requested
""",
        (
            "r",
            [
                (3, "h", "The lock in `queue.py:30` is released too early"),
                (6, "c", "The log line prints the password"),
                (8, "l", "The constant could be named"),
            ],
        ),
    ),
    (
        "severities inside of praise",
        """\
I was worried about the lock in `queue.py:30` (high), but it is fine: the caller holds it. The critical
path is covered, and the risk of regressions is small (low).

The priority is between `-20` (high priority) and `19` (low priority).

First, the names are good.

Second, the tests read like a specification.

`queue.py:12`: nice trick!

`queue.py:40` looks great.

**queue.py:50**

- [x] read

## Strengths

The queue is simple (high).

Approved.
""",
        ("-", []),
    ),
    (
        "paragraphs that begin with a file and its line",
        """\
Request changes.

`src/cache.py:12` Do not share the default list between instances.

src/cache.py:57: drop the lock before calling `on_evict`.
Otherwise a callback deadlocks.

**`tests/test_cache.py:9`** - a test for eviction under load is missing

**src/limiter.py:34**

The window admits one request too many. Use `<=`.
""",
        (
            "r",
            [
                (3, "-", "Do not share the default list"),
                (5, "-", "drop the lock before"),
                (8, "-", "a test for eviction"),
                (10, "-", "The window admits one"),
            ],
        ),
    ),
    (
        "points that are counted in sentences below a refusal",
        """\
The direction is right, but I cannot approve it yet.

First, `Pool.acquire` returns a connection that is already closed.

Second, the retry in `client.py:88` has no upper limit.

Finally, the new setting is not documented.
""",
        (
            "r",
            [
                (3, "-", "`Pool.acquire` returns"),
                (5, "-", "the retry in `client.py:88`"),
                (7, "-", "the new setting"),
            ],
        ),
    ),
    (
        "paragraphs with places below a request",
        """\
Nice work! Two things before I can sign off:

The loop in `client.py:88` never stops when the server answers 503. Please add a cap.

`client.py:120`: the timeout is in milliseconds here, but seconds are passed.
""",
        ("-", [(3, "-", "The loop in `client.py:88` never stops"), (5, "-", "the timeout is in")]),
    ),
    (
        "a number with a slash",
        """\
1/ HIGH: `merge()` drops the second file's header. merge.py:14
2/ NIT: "recieve" in the docstring.
""",
        ("-", [(1, "h", "`merge()` drops"), (2, "l", '"recieve"')]),
    ),
    (
        "a severity with a number",
        """\
I found 0 critical, 1 major and 1 minor problem.

Major 1 — The importer loads the whole file. With 2 GB it is killed.

Minor 1: Typo in the help text.
""",
        ("-", [(3, "h", "The importer loads"), (5, "l", "Typo in the help")]),
    ),
    (
        "paragraphs that begin with whether they block",
        """\
Blocking: the migration deletes the column too early, see `migrations/0012.py`.

Non-blocking: `get_user` could be cached.

Nit: two blanks.

Major: the retry in `client.py:88` has no limit.

Blocking: none
""",
        (
            "-",
            [
                (1, "h", "the migration deletes"),
                (3, "l", "`get_user` could"),
                (5, "l", "two blanks"),
                (7, "h", "the retry in"),
            ],
        ),
    ),
    (
        "paragraphs that begin with a severity, of which one names a place",
        """\
Major: the parser in `p.py:3` loops.
Minor: a typo.

Critical: the token is logged.

**Verdict:** Changes requested
""",
        (
            "r",
            [
                (1, "h", "the parser in"),
                (2, "l", "a typo"),
                (4, "c", "the token is logged"),
            ],
        ),
    ),
    (
        "paragraphs that begin with a severity, of which none names a place",
        "Critical: the token is logged.\n\nLow: the default.\n",
        ("-", [(1, "c", "the token is logged"), (3, "l", "the default")]),
    ),
    (
        "praise that counts",
        """\
I have nothing to add before we merge.

First, thanks for the tests.

Second, `a.py:3` is simple now.
""",
        ("-", []),
    ),
    (
        "headings of the first level",
        """\
# Vuln 1: XSS: `foo.py:42`

* Severity: High
* Description: User input is interpolated without escaping.
* Recommendation: Use `escape()`.

# Vuln 2: Path traversal: `files.py:17`

* Severity: Medium
* Description: `../` in the name leaves the folder.
""",
        ("-", [(1, "h", "Vuln 1: XSS"), (7, "m", "Vuln 2: Path traversal")]),
    ),
    (
        "badges of priorities in bold",
        """\
### 💡 Review

Here are some automated suggestions.

**<sub><sub>![P1 Badge](https://example.org/badge/P1-orange?style=flat)</sub></sub>  Guard the empty batch**

`max()` raises when `items` is empty.

**<sub><sub>![P2 Badge](https://example.org/badge/P2-yellow?style=flat)</sub></sub>  Keep the old flag**

Scripts that pass `--dry` fail now.
""",
        ("-", [(5, "h", "Guard the empty batch"), (9, "m", "Keep the old flag")]),
    ),
    (
        "a counted list below a heading of its own",
        """\
### Code review

Found 2 issues:

1. Missing error handling for the OAuth callback

https://example.org/acme/web/blob/1d54823/src/auth.ts#L67-L72

2. Memory leak: the OAuth state is not cleaned up

https://example.org/acme/web/blob/1d54823/src/auth.ts#L88-L95
""",
        ("-", [(5, "-", "Missing error handling"), (9, "-", "Memory leak")]),
    ),
    (
        "comments that fold, by files",
        """\
**Actionable comments posted: 0**

<details>
<summary>🧹 Nitpick comments (2)</summary><blockquote>

<details>
<summary>src/io.py (2)</summary><blockquote>

`12-14`: **Use a context manager.**

The file stays open if `read` raises.

---

`40-40`: **Name the encoding.**

</blockquote></details>

</blockquote></details>

<details>
<summary>📜 Review details</summary>

* `src/io.py` (3 hunks)

</details>
""",
        ("-", [(9, "l", "Use a context manager."), (15, "l", "Name the encoding.")]),
    ),
    (
        "severities of a scale from S1, which the review explains",
        """\
Findings (S1 = worst, S4 = cosmetic):

- **S1** `sync.py:10` deletes the remote folder if the local one is empty.
- **S2** `sync.py:44` the retry has no limit.
- **S4** `sync.py:3` spelling of "recieve".

Verdict: NEEDS_REVISION
""",
        (
            "r",
            [
                (3, "c", "`sync.py:10` deletes"),
                (4, "h", "`sync.py:44` the retry"),
                (5, "l", "`sync.py:3` spelling"),
            ],
        ),
    ),
    (
        "priorities as headings",
        """\
### P0
- Data loss when the disk is full: `flush` ignores ENOSPC (log.c:201)

### P2
- `scan` is slow for long lines, it copies each of them (log.c:88)

### P3
- Mixed style of braces (log.c)

Recommendation: reject
""",
        ("r", [(2, "c", "Data loss"), (5, "m", "`scan` is slow"), (8, "l", "Mixed style")]),
    ),
    (
        "severities of a scale in brackets",
        """\
Security review

* [SEV-1] ReDoS in the e-mail pattern, `forms.py:14`
* [SEV-2] the stack trace is sent to the client, `errors.py:9`
* [SEV-4] favicon is missing

Decision: Changes requested
""",
        ("r", [(3, "c", "ReDoS"), (4, "h", "the stack trace"), (5, "l", "favicon")]),
    ),
    (
        "ids that begin like a scale",
        "## Findings\n\n- **SEV-001** (high): the lock leaks\n",
        ("-", [(3, "h", "the lock leaks")]),
    ),
    (
        "what must and should be done, before it can be merged",
        """\
Before this can be merged:

- MUST: validate the length of `name` in `forms.py`, it goes to the shell
- SHOULD: log the failure instead of passing over it
- COULD: make 86400 a constant

Changes requested.
""",
        ("r", [(3, "h", "validate the length"), (4, "m", "log the failure"), (5, "l", "make 86400")]),
    ),
    (
        "paragraphs that begin with MUST",
        """\
MUST: add an index on `orders.user_id`, the page takes 9 s without it
COULD: improve the wording of the hint

Decision: changes required
""",
        ("r", [(1, "h", "add an index"), (2, "l", "improve")]),
    ),
    (
        "a severity in parentheses before the text, and a refusal in a sentence",
        """\
Good evening. I have made the review of your code, is very nice. But:

- (major) the password is write in the log file `auth.py:9`
- (minor) comment in line 30 is wrong

I can not approve now.
""",
        ("r", [(3, "h", "the password"), (4, "l", "comment in line")]),
    ),
    (
        "findings in a list of files",
        """\
# Review of PR 88

- Backend
  - `cache.py`
    - **High:** the cache is keyed by the user's name, which may change
    - fine otherwise
  - `worker.py`
    - **Medium:** the lock file stays after a crash
- Frontend
  - no remarks

Overall: NEEDS_REVISION
""",
        ("r", [(5, "h", "the cache is keyed"), (8, "m", "the lock file stays")]),
    ),
    (
        "numbered names of lists",
        """\
## Findings

1. Concurrency
   - **[HIGH]** deadlock between `a()` and `b()` (`lock.py:5`)
2. Texts
   - **[LOW]** wording of the second error

**Assessment:** Needs work
""",
        ("r", [(4, "h", "deadlock"), (6, "l", "wording")]),
    ),
    (
        "one point in the middle of a sentence",
        """\
LGTM overall, but the refresh token never expires (high), please fix that first. The rest is good.
""",
        ("-", [(1, "h", "the refresh token never expires")]),
    ),
    (
        "a severity in the middle of a sentence that tells of nothing",
        """\
LGTM. I looked for anything severe (high or critical) and found nothing. The earlier leak (high) is fixed now.
""",
        ("-", []),
    ),
    (
        "what the change mends, and what is to be done elsewhere",
        """\
LGTM. The old parser needs work elsewhere, but that is not this change.

This fixes the crash of the import (critical).

The token used to never expire (high), but now it does.

Without this fix, the export would be wrong (high). With it, all totals match.

Release notes:

- Fixed: wrong total in the export (critical)
""",
        ("-", []),
    ),
    (
        "what is not mended",
        """\
LGTM, but the file is not closed (high), please fix that.

This fixes the wrong branch (high). The other one is the one in use.

The token used to be checked, now it is not (high).
""",
        (
            "-",
            [
                (1, "h", "the file is not closed"),
                (3, "h", "This fixes the wrong"),
                (5, "h", "The token used"),
            ],
        ),
    ),
    (
        "a place before the badge, below parts that fold",
        """\
**Actionable comments posted: 2**

<details>
<summary>🧹 Nitpick comments (1)</summary><blockquote>

<details>
<summary>app/db.py (1)</summary><blockquote>

`3-3`: **Remove the unused import `os`.**

`os` is not used any more.

</blockquote></details>

</blockquote></details>

`41-58`: _⚠️ Potential issue_ | _🟠 Major_

**The pool is never closed on shutdown.**

Connections stay open until the server times them out.
""",
        ("-", [(9, "l", "Remove the unused"), (17, "h", "The pool is never closed")]),
    ),
    (
        "CodeRabbit, retold: the file before its lines and the badge",
        """\
`app/db.py` around lines 41-58: _⚠️ Potential issue_ | _🟠 Major_

**The pool is never closed on shutdown.**
""",
        ("-", [(1, "h", "The pool is never closed")]),
    ),
    (
        "a table with signs in a column without a name, and a cell that goes on in the next row",
        """\
### Summary of findings

| | Finding | File |
|---|---|---|
| 🔴 High | No timeout is given, so a dead | `a.ts:10` |
| | server blocks the worker | |
| 🟡 Medium | Duplicated code | `b.ts:4` |

**Decision:** 🔄 Needs revision
""",
        ("r", [(5, "h", "No timeout is given, so a dead server blocks the worker"), (7, "m", "Dup")]),
    ),
    (
        "titles of one word, with the points below them",
        """\
Review result: REQUEST CHANGES

1. **Concurrency** (high)
   - `src/q.py:10`: the queue is shared without a lock
2. **Errors** (medium)
   - a failing job is dropped silently (`src/q.py:55`)
""",
        ("r", [(3, "h", "Concurrency"), (5, "m", "Errors")]),
    ),
    (
        "a letter whose severities stand behind a second sentence",
        """\
Two things before we merge.

First, the rounding in src/money.py:14 is banker's rounding. That's serious (high).

Second, I'd like a test for negative amounts (medium).
""",
        ("-", [(3, "h", "the rounding in src/money.py:14"), (5, "m", "Second, I'd like a test")]),
    ),
    (
        "SARIF",
        """\
{
  "version": "2.1.0",
  "runs": [
    {
      "tool": {"driver": {"name": "lint"}},
      "results": [
        {"ruleId": "S307", "level": "error", "message": {"text": "Use of eval on input"},
         "locations": [{"physicalLocation": {"artifactLocation": {"uri": "a.py"}, "region":
          {"startLine": 7}}}]},
        {"ruleId": "S101", "level": "warning", "message": {"text": "Use of assert"},
         "locations": [{"physicalLocation": {"artifactLocation": {"uri": "a.py"}, "region":
          {"startLine": 9}}}]}
      ]
    }
  ]
}
""",
        ("-", [(7, "h", "Use of eval on i"), (10, "m", "Use of assert")]),
    ),
    (
        "German",
        """\
## Review

**Ergebnis:** Änderungen erforderlich

### Befunde

- **[hoch]** Die Transaktion wird bei einem Fehler nicht zurückgerollt (`buchung.py:77`).
- **[mittel]** Die Zeitzone fehlt, `datetime.now()` ist naiv (`buchung.py:91`).
- **[niedrig]** Der Kommentar in Zeile 12 stimmt nicht mehr.
""",
        ("r", [(7, "h", "Die Transaktion"), (8, "m", "Die Zeitzone"), (9, "l", "Der Kommentar")]),
    ),
    (
        "Spanish",
        """\
## Revisión

**Veredicto:** Cambios solicitados

1. **Crítico**: la contraseña se guarda sin cifrar en `usuarios.py:18`.
2. **Menor**: el nombre `x1` no dice nada.
""",
        ("r", [(5, "c", "la contraseña"), (6, "l", "el nombre")]),
    ),
    (
        "French",
        """\
## Revue

**Décision :** modifications demandées

### Problèmes

1. **[majeur]** Le verrou n'est jamais relâché (`file.rs:12`).
2. **[mineur]** Faute d'orthographe dans le message (`file.rs:40`).
""",
        ("r", [(7, "h", "Le verrou"), (8, "l", "Faute")]),
    ),
]


@for_each(
    ("text", "expected"),
    [(text, expected) for _, text, expected in STYLES],
    ids=[name for name, *_ in STYLES],
)
def test_each_style_is_read(text: str, expected: Expected) -> None:
    read = read_review(text)
    verdict, findings = expected
    assert len(read.findings) == len(findings), [told(found, found.title) for found in read.findings]
    titles = [title for *_, title in findings]
    assert [told(found, title) for found, title in zip(read.findings, titles, strict=True)] == findings
    assert VERDICTS.get(read.verdict or "", "-") == verdict, read.verdict


PLACES = [
    ("- **Where**: `a.py:42`\n- **Why**: -0.5 becomes -1", "`a.py:42`"),
    ("**Location:** `a.py:42`\nThe helper of `b.py` rounds twice.", "`a.py:42`"),
    (
        "- **Files**: `a.py:42`,\n  `b.py:7`\n- `c.py:9`\n\nAll three differ.",
        "`a.py:42`,\n`b.py:7`\n- `c.py:9`",
    ),
    ("**Location:**\n`a.py:42`\n\nIt rounds twice.", "`a.py:42`"),
    # without a label: the only place that the text names, in whatever words
    ("`a.py`, line 42, rounds twice.", "a.py:42"),
    ("It rounds twice (a.py#L42-L44).\n\n> see b.py:3\n\n```\nb.py:4\n```", "a.py:42"),
    ("It rounds at `a.py` (lines 42-44) and again at `a.py:60`.", "a.py"),
    ("It rounds at `a.py:42`, and `b.py:42` does so too.", ""),
]


def test_a_finding_is_where_its_place_says_and_nothing_else_belongs_to_the_place() -> None:
    found = [read_review(f"## Issues\n\n### [HIGH] No lock\n\n{text}\n").findings for text, _ in PLACES]
    assert [[each.location for each in findings] for findings in found] == [[place] for _, place in PLACES]
    table = "## Findings\n\n| Severity | File:Line | Finding |\n|---|---|---|\n| High | a.py:42 | No lock |\n"
    headed = "Verdict: REJECTED\n\n## src/a.py\n\n- L42: no lock\n- Nothing tests it\n"
    above = (
        "**src/a.py:42**\n\n> ```\n> x = 1\n> ```\n\nHigh: two writers race.\n\n"
        "**src/b.py (line 3)**\n\nLow: unused import.\n"
    )
    told = [
        (table, ["a.py:42"]),
        (headed, ["src/a.py:42", "src/a.py"]),
        (above, ["src/a.py:42", "src/b.py:3"]),
        ("Rejected\n\n1. **Token is logged** (`src/a.py:58`)\n   High.\n", ["src/a.py:58"]),
    ]
    for text, places in told:
        assert [each.location for each in read_review(text).findings] == places, text


def test_what_is_handed_in_as_a_rejection_is_read_as_one_whatever_it_says() -> None:
    text = "Rejected ❌\n\n❌ Negative amounts are wrong (src/money.py:42)\n✅ Naming\n"
    assert [found.line for found in read_review(text, rejects=True).findings] == [3]
    assert read_review("I looked at:\n\n- the lock\n- the test\n").findings == ()
