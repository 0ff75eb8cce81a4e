"""Makers of documents of a given size that a careless parser reads again and again."""

from collections.abc import Callable


def filled(sign: str, before: str = "", after: str = "") -> Callable[[int], str]:
    """A maker of a document of so many bytes out of one sign, again and again."""

    def make(size: int) -> str:
        room = size - len(before.encode()) - len(after.encode())
        return before + sign * (room // len(sign.encode())) + after

    return make


def deepening(template: str) -> Callable[[int], str]:
    """A maker of lines that each stand one blank deeper than the one before."""

    def make(size: int) -> str:
        lines, length, depth = [], 0, 0
        while length < size - depth - len(template) - 1:
            lines.append(" " * depth + template)
            depth += 1
            length += len(lines[-1]) + 1
        return "\n".join(lines)

    return make


def counted(template: str, before: str = "") -> Callable[[int], str]:
    """A maker of lines that count on: {n} is the number of a line, {r} and {i} its round and its issue."""

    def make(size: int) -> str:
        parts, length, number = [before], len(before), 0
        while True:
            part = template.format(n=number, r=number // 999 + 1, i=number % 999 + 1, w=word_of(number))
            length += len(part)
            if length > size:
                return "".join(parts)
            parts.append(part)
            number += 1

    return make


def word_of(number: int) -> str:
    """A number written in the letters A to J, at least two of them."""
    return "".join("ABCDEFGHIJ"[int(digit)] for digit in f"{number:02d}")


CODE, GAP = "ISSUE-R{r}-{i:03d}", "GAP-{w}-001"
FAMILIES: dict[str, Callable[[int], str]] = {
    "stars": filled("*"),
    "bars": filled("|"),
    "opening brackets": filled("["),
    "closing brackets": filled("]"),
    "parentheses": filled("("),
    "backticks": filled("`"),
    "tildes": filled("~"),
    "number signs": filled("#"),
    "underscores": filled("_"),
    "dashes": filled("-"),
    "colons": filled(":"),
    "full stops": filled("."),
    "slashes": filled("a/"),
    "digits": filled("7"),
    "letters": filled("a"),
    "capitals": filled("A"),
    "words": filled("word "),
    "blanks": filled(" "),
    "tabs": filled("\t"),
    "blank lines": filled("\n"),
    "returns": filled("\r"),
    "blanks in a finding": filled(" ", "- **ISSUE-R1-001**: a", "b"),
    "blanks in a heading": filled(" ", "## a", "#"),
    "blanks below a finding": filled(" \n", "- **ISSUE-R1-001**: a\n"),
    "ids": filled("ISSUE-R1-001 "),
    "short ids": filled("R1-001,"),
    "ranges": filled("R1-001 through R1-050, "),
    "ranges in a finding": filled("R1-001 through R1-050, ", "- **ISSUE-R1-001**, "),
    "ids in a row": filled("| ISSUE-R1-001 "),
    "own ids": filled("H1 CRIT-001 CONCERN #1 "),
    "bold labels": filled("**a**: "),
    "bold marks": filled("**a"),
    "bold lines": filled("**a**: b\n"),
    "code spans": filled("`a` "),
    "links": filled("[a](b) "),
    "severities": filled("(HIGH) "),
    "severity lines": filled("**Severity:** HIGH\n", "- **ISSUE-R1-001**: a\n"),
    "tags": filled("[MUST] "),
    "tagged lines": filled("[MUST] a.py:1 b - c\n"),
    "detail": filled(" - ", "[MUST] a"),
    "verdicts": filled("Verdict: APPROVED\n"),
    "words of a verdict": filled("approved not ", "Verdict: "),
    "places": filled("a.py:1,"),
    "fields": filled("Location: a\nImpact: b\n", "- **ISSUE-R1-001**: a\n"),
    "labelled lines": filled("Severity: High\nIssue: a\n\n"),
    "labelled lines below headings": filled("### a b\n\nSeverity: High\nIssue: a\n\n"),
    "lines with one label": filled("Issue: a\n"),
    "badges": filled("_a_ | _Major_\n"),
    "pictures": filled("![high](a.svg)\n\na\n"),
    "severities below headings": filled("### a b\n\n**High**\n\na\n\n"),
    "lines of files": filled("a.py:1: [high] b\n"),
    "comments of a kind": filled("issue (a, b): c\n"),
    "parts that fold": filled("<summary>High: a</summary>\n"),
    "lists of earlier findings": filled("Earlier findings:\n\n- ISSUE-R1-001: fixed\n\na\n\n"),
    "data": filled('{"title": "a long title"},', '{"findings": [', '{"title": "b"}]}'),
    "data in YAML": filled("- title: a\n", "findings:\n"),
    "a list of data": filled("- title: a\n"),
    "entries of XML": filled("<finding>\n<severity>high</severity>\n<title>a</title>\n</finding>\n"),
    "entries with attributes": filled('<finding severity="high">a</finding>\n'),
    "open tags": filled("<finding a "),
    "tags in a row": filled("[a][b]"),
    "numbers in parentheses": filled("(1) a\n"),
    "groups at the end": filled("(a)", "- **ISSUE-R1-001**: "),
    "nested data": filled("[", '{"findings": ['),
    "headings": filled("### High Priority\n"),
    "findings": filled("- **ISSUE-R1-001**: a\n"),
    "findings without id": filled("1. **a** (HIGH)\n", "### High Priority\n\n"),
    "one long finding": filled("words\n", "- **ISSUE-R1-001**: a\n"),
    "a long list": filled("- a\n"),
    "list markers on a line": filled("- "),
    "list markers before a fence": filled("- ", after="```"),
    "numbers before a fence": filled("1. ", after="~~~"),
    "deep lists": deepening("- a"),
    "deep findings": deepening("- **ISSUE-R1-001**: a"),
    "fences": filled("```\na\n```\n"),
    "fences in fences": filled("```\n~~~\n````\n"),
    "fences never closed": filled("```a\n"),
    "quotes": filled("> a\n"),
    "deep quotes": filled("> "),
    "quotes below a block": filled("> a\n", "## DISAGREE: ISSUE-R1-001\n\n**Reviewer Concern:**\n"),
    "rows": filled("| ISSUE-R1-001 | fixed | a |\n", "| Issue | Answer | Change |\n|---|---|---|\n"),
    "a wide row": filled("a | ", "| ISSUE-R1-001 | "),
    "tables": filled("| a | b |\n|---|---|\n"),
    "separators": filled("|-"),
    "escaped bars": filled("\\|", "| ", " |"),
    "checkboxes": filled("- [x] ISSUE-R1-001\n"),
    "claims": filled("fixes ISSUE-R1-001 "),
    "addressing": filled("Addressing "),
    "ids behind a label": filled("ISSUE-R1-001 ; ", "Addressed: "),
    "disagree headings": filled("## DISAGREE: ISSUE-R1-001\n"),
    "disagree": filled("DISAGREE: "),
    "rationales": filled("**Rationale:** a\n", "## DISAGREE: ISSUE-R1-001\n"),
    "rules": filled("---\n"),
    "comments": filled("<!-- "),
    "emoji": filled("\u2705"),
    "nul": filled("\x00"),
    "dashes of all kinds": filled("\u2013\u2014- "),
    "deflections": filled("Reviewer misunderstands. Not a real issue. ", "## Response to ISSUE-R1-001\n"),
    "many findings": counted(f"- **{CODE}**: a\n"),
    "many grave findings": counted(f"- **{CODE}** (HIGH): a\n  - Impact: word{{n}}\n"),
    "many findings in places": counted(f"- **{CODE}** (HIGH): a\n  - Location: line {{n}}\n", "# A\n"),
    "many findings of their own": counted("### {w}-{i:03d}: a (HIGH)\n\n"),
    "many findings of the reviewer": counted("**CRIT-{i:03d}**: a b\n"),
    "many gaps": counted(f"## Review: {GAP}\n\n- **H{{i}}**: a (HIGH)\n"),
    "many verdicts of gaps": counted(f"| {GAP} | APPROVED |\n", "| Gap | Verdict |\n|---|---|\n"),
    "gaps found and approved": counted(
        f"## Review: {GAP}\n\n1. **a b** (HIGH)\n\n### Verdict: {GAP} - APPROVED\n"
    ),
    "many sections of one name": counted(f"# A\n\n- **{CODE}** (HIGH): a\n  - Location: line {{n}}\n"),
    "many answers": counted(f"| {CODE} | fixed | a{{n}} |\n", "| Issue | Answer | Change |\n|---|---|---|\n"),
    "many disagreements": counted(f"## DISAGREE: {CODE}\n**Rationale:** a\n"),
    "many statuses": counted(f"- [x] **{CODE}** - FIXED\n", "## Status of earlier issues\n\n"),
    "many deflections": counted(f"### Response to {CODE}\n\nThis is not a real issue.\n"),
    "many demands": counted(f"## Required Changes\n\n1. a\n\n## Verdict: {GAP} - APPROVED\n\n"),
    "many quotes in findings": counted(f'- **{CODE}** (HIGH): "a phrase that is quoted {{n}}"\n'),
}  # fmt: skip
