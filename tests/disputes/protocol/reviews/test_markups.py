"""Reviews in other marks than those of Markdown, and in other languages than English (FND-10, VER-2)."""

import pytest

from disputes.protocol.reviews.review import read_review
from disputes.protocol.text.documents import MAX_BYTES
from tasks.text.toml import read_toml
from tests.cases import for_each

VERDICTS = {"NEEDS_REVISION": "r", "APPROVED": "a", "NO_ISSUES_FOUND": "a", "APPROVED_WITH_CONDITIONS": "c"}

# The verdict in one letter (r, a, - for none), and the severity of each finding in one (- for none), as they
# are read in a rejection; in an approval nothing is.
REVIEWS: list[tuple[str, str, tuple[str, str]]] = [
    (
        "setext-1",
        """\
Review of the cache
===================

Verdict: NEEDS_REVISION

High
----

- The key ignores the tenant in cache.py:14
 
Low
---

- The name shadows a builtin
""",
        ("r", "hl"),
    ),
    (
        "setext-verdict",
        """\
Verdict
=======
Request changes

Findings
========
- **High** `a.py:3` the lock leaks
""",
        ("r", "h"),
    ),
    (
        "rst",
        """\
Review
======

Verdict
-------

Changes requested

Findings
--------

High
~~~~

- The lock is never released (``lock.py:10``)

Medium
~~~~~~

- The timeout is ignored
""",
        ("r", "hm"),
    ),
    (
        "rst-over",
        """\
==================
 Code review
==================

**Verdict:** REQUEST_CHANGES

Critical issues
^^^^^^^^^^^^^^^

* The token is written to the log
""",
        ("r", "c"),
    ),
    (
        "html-ul",
        """\
<h2>Verdict: Request changes</h2>
<ul>
<li><b>High</b>: the lock is never released (lock.py:10)</li>
<li><b>Low</b>: a typo in the comment</li>
</ul>
""",
        ("r", "hl"),
    ),
    (
        "html-one-line",
        """\
<p><strong>Verdict: REJECTED</strong></p><ul><li>[HIGH] it leaks</li><li>[MEDIUM] no timeout</li></ul>
""",
        ("r", "hm"),
    ),
    (
        "html-issues",
        """\
<h1>Review</h1>
<h2>Issues</h2>
<ol>
  <li>The cursor is never closed</li>
  <li>The retry has no limit</li>
</ol>
<p>Verdict: needs work</p>
""",
        ("r", "--"),
    ),
    (
        "html-table",
        """\
<table>
<tr><th>Severity</th><th>File</th><th>Issue</th></tr>
<tr><td>High</td><td>a.py:3</td><td>The lock leaks</td></tr>
<tr><td>Low</td><td>b.py:9</td><td>The name misleads</td></tr>
</table>
<p>Verdict: needs revision</p>
""",
        ("r", "hl"),
    ),
    (
        "jsonl-fence",
        """\
Verdict: NEEDS_REVISION

```jsonl
{"severity": "high", "file": "a.py", "line": 3, "message": "the lock leaks"}
{"severity": "medium", "file": "b.py", "line": 9, "message": "the name misleads"}
```
""",
        ("r", "hm"),
    ),
    (
        "jsonl-verdict",
        """\
{"type": "finding", "severity": "high", "file": "a.py", "line": 3, "message": "the lock leaks"}
{"type": "verdict", "verdict": "request_changes"}
""",
        ("r", "h"),
    ),
    (
        "toml",
        """\
verdict = "needs_revision"

[[findings]]
severity = "high"
file = "a.py"
line = 3
message = "the lock leaks"

[[findings]]
severity = "medium"
file = "b.py"
message = "the name misleads"
""",
        ("r", "hm"),
    ),
    (
        "toml-fence",
        """\
Here is the review.

```toml
verdict = "NEEDS_REVISION"

[[issues]]
severity = "high"
title = "the lock leaks"
file = "a.py"
line = 3
```
""",
        ("r", "h"),
    ),
    (
        "gha",
        """\
::error file=a.py,line=3::The lock leaks
::warning file=b.py,line=9,col=4::The name misleads
::notice file=c.py,line=1::A typo
""",
        ("-", "hml"),
    ),
    (
        "gcc",
        """\
a.py:3:5: error: the lock leaks
b.py:9:1: warning: the name misleads
""",
        ("-", "hm"),
    ),
    (
        "tsc",
        """\
src/a.ts(3,5): error TS2345: Argument of type string is not assignable
src/b.ts(9,1): error TS2304: Cannot find name x
""",
        ("-", "hh"),
    ),
    (
        "msvc",
        """\
a.cpp(10): error C2065: 'x': undeclared identifier
""",
        ("-", "h"),
    ),
    (
        "checkstyle",
        """\
<?xml version="1.0" encoding="UTF-8"?>
<checkstyle version="8.0">
  <file name="src/A.java">
    <error line="3" column="5" severity="error" message="The lock leaks" source="Locks"/>
    <error line="9" severity="warning" message="The name misleads" source="Names"/>
  </file>
</checkstyle>
""",
        ("-", "hm"),
    ),
    (
        "asciidoc",
        """\
= Review

== Verdict

REQUEST_CHANGES

== High

* The lock is never released
""",
        ("r", "h"),
    ),
    (
        "jira",
        """\
h2. Verdict
NEEDS_REVISION

h2. High
* The lock is never released in lock.py:10
""",
        ("r", "h"),
    ),
    (
        "mediawiki",
        """\
== Verdict ==
Needs revision

== Critical issues ==
* The lock is never released
""",
        ("r", "c"),
    ),
    (
        "zh-reject",
        """\
结论：拒绝

- 【高】lock.py:10 锁没有释放
""",
        ("r", "h"),
    ),
    (
        "zh-not-pass",
        """\
审查结论：不通过
""",
        ("r", ""),
    ),
    (
        "zh-approve",
        """\
结论：通过
""",
        ("a", ""),
    ),
    (
        "zh-severity",
        """\
## 结论
需要修改

## 严重问题
- 锁没有释放（lock.py:10）

## 轻微
- 注释有错别字
""",
        ("r", "cl"),
    ),
    (
        "zh-alone",
        """\
拒绝
""",
        ("r", ""),
    ),
    (
        "ja-not",
        """\
総合判定: 承認できません
""",
        ("r", ""),
    ),
    (
        "ja-reject",
        """\
判定：却下
""",
        ("r", ""),
    ),
    (
        "ru-reject",
        """\
Вердикт: отклонено

- [ВЫСОКИЙ] lock.py:10 блокировка не снимается
""",
        ("r", "h"),
    ),
    (
        "ru-not",
        """\
Вердикт: не одобрено
""",
        ("r", ""),
    ),
    (
        "ru-approve",
        """\
Вердикт: одобрено
""",
        ("a", ""),
    ),
    (
        "pt-changes",
        """\
## Veredito
Mudanças necessárias

## Problemas críticos
- O cadeado nunca é liberado
""",
        ("r", "c"),
    ),
    (
        "pt-not",
        """\
Veredito: não aprovado
""",
        ("r", ""),
    ),
    (
        "ko-not",
        """\
결론: 승인 불가
""",
        ("r", ""),
    ),
    (
        "ko-approve",
        """\
판정: 승인
""",
        ("a", ""),
    ),
    (
        "tr-not",
        """\
Karar: onaylanmadı
""",
        ("r", ""),
    ),
    (
        "pl-changes",
        """\
Decyzja: wymaga poprawek
""",
        ("r", ""),
    ),
    (
        "it-not",
        """\
Verdetto: non approvato
""",
        ("r", ""),
    ),
    (
        "nl-reject",
        """\
Oordeel: afgekeurd
""",
        ("r", ""),
    ),
    (
        "ar-reject",
        """\
القرار: مرفوض
""",
        ("r", ""),
    ),
    (
        "ar-approve",
        """\
القرار: موافق عليه
""",
        ("a", ""),
    ),
    (
        "hi-reject",
        """\
निर्णय: अस्वीकृत
""",
        ("r", ""),
    ),
    (
        "hi-approve",
        """\
निर्णय: स्वीकृत
""",
        ("a", ""),
    ),
    (
        "de-not",
        """\
Fazit: nicht freigegeben
""",
        ("r", ""),
    ),
    (
        "de-approve",
        """\
Fazit: freigegeben
""",
        ("a", ""),
    ),
    (
        "fr-not",
        """\
Verdict : non approuvé
""",
        ("r", ""),
    ),
    (
        "es-not",
        """\
Veredicto: no aprobado
""",
        ("r", ""),
    ),
    (
        "think-tag",
        """\
<thinking>
Should I reject this?
- [HIGH] a.py:1 The lock leaks.
</thinking>

Verdict: APPROVED
""",
        ("a", ""),
    ),
    (
        "cannot-recommend",
        """\
I cannot recommend approval: the migration drops a column that is still read.
""",
        ("r", ""),
    ),
    (
        "negated-approve",
        """\
I do not approve this change. It deletes user data.
""",
        ("r", ""),
    ),
    (
        "table-no-bars-around",
        """\
Verdict: NEEDS_REVISION

Severity | File | Problem
--- | --- | ---
High | a.py:3 | The lock leaks
Low | b.py:9 | The name misleads
""",
        ("r", "hl"),
    ),
    (
        "sev-paren-first",
        """\
Verdict: reject

(high) a.py:3 the lock leaks
(low) b.py:9 the name misleads
""",
        ("r", "hl"),
    ),
    (
        "record-dash-sep",
        """\
Verdict: reject

---
Severity: High
Location: a.py:3
Description: the lock leaks
---
Severity: Low
Location: b.py:9
Description: the name misleads
---
""",
        ("r", "hl"),
    ),
    (
        "bullets-dot",
        """\
Verdict: changes requested

• [HIGH] the lock leaks (a.py:3)
• [LOW] a typo
""",
        ("r", "hl"),
    ),
    (
        "bullets-triangle",
        """\
Verdict: changes requested

▸ High: the lock leaks (a.py:3)
▸ Low: a typo
""",
        ("r", "hl"),
    ),
    (
        "dash-em",
        """\
Verdict: changes requested

– High: the lock leaks (a.py:3)
– Low: a typo
""",
        ("r", "hl"),
    ),
    (
        "roman",
        """\
Verdict: changes requested

I. [HIGH] the lock leaks (a.py:3)
II. [LOW] a typo
""",
        ("r", "hl"),
    ),
    (
        "circled",
        """\
Verdict: changes requested

① High: the lock leaks (a.py:3)
② Low: a typo
""",
        ("r", "hl"),
    ),
    (
        "letters",
        """\
Verdict: changes requested

a) High: the lock leaks (a.py:3)
b) Low: a typo
""",
        ("r", "hl"),
    ),
    (
        "finding-n",
        """\
Verdict: changes requested

Finding 1 (High): the lock leaks in a.py:3
Finding 2 (Low): a typo
""",
        ("r", "hl"),
    ),
    (
        "finding-n-dash",
        """\
Verdict: changes requested

Finding 1 - High - the lock leaks in a.py:3
Finding 2 - Low - a typo
""",
        ("r", "hl"),
    ),
    (
        "prefix-chatter",
        """\
Sure! Here is my review:

```markdown
Verdict: NEEDS_REVISION

- [HIGH] a.py:3 the lock leaks
```

Let me know if you need anything else!
""",
        ("r", "h"),
    ),
    (
        "json5",
        """\
```json
{
  // my review
  "verdict": "needs_revision",
  "findings": [
    {"severity": "high", "file": "a.py", "line": 3, "message": "the lock leaks"},
  ],
}
```
""",
        ("r", "h"),
    ),
    (
        "json-py",
        """\
{'verdict': 'needs_revision', 'findings': [{'severity': 'high', 'file': 'a.py', 'message': 'leaks'}]}
""",
        ("r", "h"),
    ),
    (
        "spaces-tabs",
        """\
	Verdict:	NEEDS_REVISION
	- [HIGH] a.py:3 the lock leaks
""",
        ("r", "h"),
    ),
    (
        "pros-cons-plain",
        """\
Pros:
- clear names

Cons:
- the lock leaks in a.py:3
- no docs for the flag

Verdict: needs work
""",
        ("r", "--"),
    ),
    (
        "zh-neg",
        """\
结论：暂时不能通过
""",
        ("r", ""),
    ),
    (
        "de-not2",
        """\
Fazit: kann nicht freigegeben werden
""",
        ("r", ""),
    ),
    (
        "fr-pas",
        """\
Verdict : pas encore approuvé
""",
        ("r", ""),
    ),
    (
        "ko-mixed",
        """\
결론: 수정 필요

- [높음] a.py:3 락이 해제되지 않음
""",
        ("r", "h"),
    ),
    (
        "html-escape",
        """\
<p>Verdict: REJECTED</p>
<ul><li>[HIGH] <code>a &lt; b</code> is compared as text in a.py:3</li></ul>
""",
        ("r", "h"),
    ),
    (
        "html-approve",
        """\
<h2>Verdict</h2><p>APPROVED</p><p>NO_ISSUES_FOUND</p>
""",
        ("a", ""),
    ),
    (
        "rst-none",
        """\
Review
======

Findings
--------

None.

Verdict: APPROVED
NO_ISSUES_FOUND
""",
        ("a", ""),
    ),
    (
        "md-two-fences",
        """\
Verdict: NEEDS_REVISION

```markdown
- [LOW] an example
```

- [HIGH] a.py:3 the docs show the wrong form

```markdown
- [LOW] the right form
```
""",
        ("r", "h"),
    ),
    (
        "example-md-fence",
        """\
The README shows the form:

```markdown
Verdict: NEEDS_REVISION
- [HIGH] a.py:3 text
```

Verdict: APPROVED
NO_ISSUES_FOUND
""",
        ("a", ""),
    ),
    (
        "dash-signature",
        """\
Verdict: NEEDS_REVISION

- [HIGH] a.py:3 the lock leaks

— The reviewer of the week
""",
        ("r", "h"),
    ),
    (
        "roman-sentence",
        """\
I. e. everything is fine.

Verdict: APPROVED
NO_ISSUES_FOUND
""",
        ("a", ""),
    ),
    (
        "german-prose",
        """\
Der frühere Ansatz wurde abgelehnt; dieser ist gut.

Verdict: APPROVED
NO_ISSUES_FOUND
""",
        ("a", ""),
    ),
    (
        "zh-prose",
        """\
之前的版本不通过，现在没有问题。

结论：通过
NO_ISSUES_FOUND
""",
        ("a", ""),
    ),
    (
        "nested-think",
        """\
<thinking>
Approve? No.
</thinking>
Verdict: NEEDS_REVISION
- [HIGH] a.py:3 leaks
<thinking>
Done.
</thinking>
""",
        ("r", "h"),
    ),
    (
        "unclosed-think",
        """\
<thinking>
Verdict: NEEDS_REVISION
- [HIGH] a.py:3 leaks
""",
        ("r", "h"),
    ),
]


@for_each(("name", "text", "expected"), REVIEWS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_review_in_other_marks_is_read(name: str, text: str, expected: tuple[str, str]) -> None:
    read = read_review(text, rejects=expected[0] != "a")
    severities = "".join((found.severity or "-")[0] for found in read.findings)

    assert (VERDICTS.get(str(read.verdict), "-"), severities) == expected
    lines = text.split("\n")
    assert [found.line for found in read.findings if not lines[found.line - 1].strip()] == []


WRITTEN_OTHERWISE = [
    ("a separator in a prompt", "=== TASK CONTEXT ===\n\n1. Read the file\n"),
    ("a rule below a paragraph", "The lock is released in all of the paths.\n---\n\n- It is tested\n"),
    ("code that names an element", "- `<li>HIGH: text</li>` is rendered as it was\n"),
    ("an example of a row", "Verdict: APPROVED\n\nThe header is `severity,file,line`.\n"),
    ("two thoughts", "<think>\n- [HIGH] a\n</think>\n\nFine.\n\n<think>\n- [HIGH] b\n</think>\n"),
    ("a refusal of a refusal", "Fazit: nicht abgelehnt\n"),
    (
        "a refusal in a sentence",
        "Der Antrag wurde abgelehnt, weil die Signatur fehlt, und so soll es sein.\n",
    ),
]


@for_each(("name", "text"), WRITTEN_OTHERWISE)
def test_what_only_looks_like_other_marks_is_none(name: str, text: str) -> None:
    read = read_review(text)

    assert not read.findings
    assert str(read.verdict) != "NEEDS_REVISION"


# What programs print, with the severity and the place of each finding in it.
PRINTED = {
    "flake8": (
        "src/a.py:12:5: F401 'os' imported but unused\n./src/b.py:9:1: W291 trailing whitespace\n",
        "high src/a.py:12, medium src/b.py:9",
    ),
    "pylint": (
        "************* Module app.core\napp/core.py:10:0: C0114: Missing docstring (missing-docstring)\n"
        "app/core.py:22:11: E1101: Instance of 'Job' has no 'retry' member (no-member)\n",
        "low app/core.py:10, high app/core.py:22",
    ),
    "rubocop": ("app/a.rb:12:5: W: Lint/Useless: Useless assignment to x.\n", "medium app/a.rb:12"),
    "a linter of Go": ("pkg/b.go:3:1: exported function Run has no comment (golint)\n", "medium pkg/b.go:3"),
    "eslint, compact": ("src/a.js: line 12, col 5, Error - 'x' is never used. (no-x)\n", "high src/a.js:12"),
    "eslint, unix": ("/w/src/a.js:12:5: 'x' is never used. [Error/no-unused-vars]\n", "high /w/src/a.js:12"),
    "eslint, json": (
        '[{"filePath": "/w/src/a.js", "messages": [{"ruleId": "no-x", "severity": 2, "message": "x is odd",'
        ' "line": 12, "column": 5}, {"ruleId": "no-y", "severity": 1, "message": "y is", "line": 14}]}]\n',
        "high /w/src/a.js:12, medium /w/src/a.js:14",
    ),
    "junit": (
        '<testsuites><testsuite name="pytest" failures="1">\n<testcase classname="t.a" name="test_retry"'
        ' file="tests/test_a.py" line="12"><failure message="1 == 2">E  1 == 2</failure></testcase>\n'
        '<testcase classname="t.a" name="test_ok"/>\n</testsuite></testsuites>\n',
        "high tests/test_a.py:12",
    ),
    "checkstyle": (
        '<checkstyle><file name="src/A.java"><error line="12" severity="error" message="No return"/>'
        '<error line="14" severity="warning" message="Long line" source="y"/></file></checkstyle>\n',
        "high src/A.java:12, medium src/A.java:14",
    ),
    "failed tests": (
        "FAILED tests/test_a.py::test_retry - assert 1 == 2\n--- FAIL: TestLock (0.00s)\nFAILED to start\n",
        "high , high ",
    ),
    "alerts": (
        "> [!CAUTION]\n> The lock leaks at src/pool.py:31.\n\n> [!TIP]\n> Rename x1.\n\n> [HIGH] quoted\n\n"
        "WARNING: It may wait for ever.\n",
        "high src/pool.py:31, medium ",
    ),
    "signs": (
        "❌ the lock leaks in `src/pool.py:31` (blocker)\n🟡 src/a.py:2 naming\n1.1 [High] No file.\n",
        "critical src/pool.py:31, medium src/a.py:2, high ",
    ),
    "severities behind": (
        "- Leaks in src/pool.py:31: severity high\n- It waits on (CVSS 8.1)\n- It is odd (CVSS v3.1 9.8)\n",
        "high src/pool.py:31, high , critical ",
    ),
    "a mail": ("> +    return\nThe lock leaks here. High.\n\n> x\nAll fixed. Low.\n", "high "),
    "no checker": ("src/a.py:12: drop the lock\n", "None src/a.py:12"),
}


def test_what_programs_print_is_read_with_its_places() -> None:
    for name, (text, expected) in PRINTED.items():
        found = read_review(text, rejects=True).findings
        assert ", ".join(f"{each.severity} {each.location}" for each in found) == expected, name


def test_marks_that_never_end_are_read_in_time() -> None:
    for unit in (
        "<tr>\n",
        "<li>",
        "- [ ",
        "::error ",
        "(a) ",
        "abgelehnt ",
        "= =",
        "<think>\n",
        "a|b\n",
        "** *a =b ~c\n",
        "a.py\n  1:2  error \n",
        "a.py:1:2: E5",
        "[[file:a::",
        "4/1",
    ):
        assert read_review(unit * (MAX_BYTES // len(unit) // 4)).verdict is None


def test_a_cell_may_be_as_long_as_a_review() -> None:
    read = read_review(f"severity | file | issue\n--- | --- | ---\nhigh | a.py | {'x' * (MAX_BYTES - 100)}\n")
    assert [str(found.severity) for found in read.findings] == ["high"]


def test_a_chain_of_keys_in_toml_is_not_followed_for_ever() -> None:
    for part in ("a.", "a . ", '"a b".', "'a b' .\t", '"a\u2028b".'):
        chain = f"{part * 5_000}a"
        assert not read_review(f"[[findings]]\n{chain} = 1\n").findings
        for text in (f"{chain} = 1\n", f"[{chain}]\n", f"a = {{ {chain} = 1 }}\n"):
            with pytest.raises(ValueError, match="more than 60 parts"):
                read_toml(text)
    assert read_toml(f'urls = ["{"a." * 100}", "{"b." * 100}"]\n')["urls"]
