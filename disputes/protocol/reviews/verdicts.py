"""Finding the verdicts of a review: where they are, and what they cover (VER-1, ARB-2)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from disputes.protocol.reviews.headings import FIRST_SIGN, NUMBERING, Purpose
from disputes.protocol.reviews.layout import Layout
from disputes.protocol.reviews.verdict_words import (
    VERDICT_WORDS,
    Verdict,
    read_verdict,
    sentences,
    verdict_alone,
    worst,
)
from disputes.protocol.text.documents import STATED, Line, bold_lead, list_item, unclosed_fence
from disputes.protocol.text.identifiers import GAP, gaps_in
from tasks.text.regex import regex

LABEL = regex(
    r"(?P<label>(?:(?:final|overall(?: \w{1,12})?|(?:re-?)?review(?:er)?(?:'s)?"
    r"|round(?: \d{1,2})?(?: ?[-–—:])?|my|revised) )?"
    r"(?:verdict|verdicts(?=[\s:*_]*$)|recommendation|decision|assessment|status|outcome|conclusion|result"
    r"|opinion|judge?ment)|overall(?: correctness)?)"
    r"(?: for [^:]{1,60})?\s*(?:[*_]+\s*)?(?::|[-–—](?=\s)|(?=\s*$)|(?=\s\())[*_\s]*"
    r"|verdict\b[\s:*_]*",  # even without a colon, which the other labels need
    re.IGNORECASE,
)
OF_A_ROUND = regex(r"\W*round \d{1,2}\W*", re.IGNORECASE)  # words behind a label that state nothing
SIGNS = regex(r"[\u2190-\U0010ffff \t*_]+")
# A verdict in a code span with words after it is an example.
CODE_SPAN = regex(r"[ \t*_-]{0,9}`[^`]{1,100}`[*_]*\s*[^\s*_]")
BARE_NUMBER = regex(r"\d{1,2}[ \t]+")  # "# 3 Verdict"
# What a reviewer writes after **Verdict:** about an earlier finding (FND-4).
ABOUT_FINDING = regex(
    r"(?:(?:fully|partially|not|still|mostly|un)[ _]?)*"
    r"(?:resolved|addressed|fixed|partial|open|closed|verified|adequate)\b",
    re.IGNORECASE,
)
NO_ISSUES_MARKER = regex(r"\bNO[_ ]ISSUES[_ ]FOUND\b")
VERDICT_COLUMNS = frozenset(
    ["verdict", "decision", "recommendation", "review verdict", "final verdict", "review", "assessment"]
    + ["status"]
)
VERSIONS = frozenset(["version", "round", "date", "revision", "reviewer", "iteration"])
NOT_REFUSING = frozenset([Purpose.PRIOR, Purpose.HISTORY, Purpose.PRAISE])
# Words that refuse even in a sentence. "Rejected" may be about a request, unless it is in capitals.
REFUSED = regex(
    r"\b(?:[Nn]eeds (?:\w+ )?(?:work|changes|revisions?|fixes|rework)\b(?! (?:elsewhere|later|in another)\b)"
    r"|[Cc]hanges (?:are )?requested"
    r"|[Rr]equest(?:ing)? changes|[Rr]evise and resubmit|[A-Z][A-Z_ ]*(?:REJECT|NEEDS|CHANGES)[A-Z_ ]*"
    r"|REJECT(?:ED)?)\b"
)
# A person who does not approve: "I cannot approve this yet", "Not approved."
WITHHELD = regex(
    r"(?:^\W*|\b(?:I|[Ww]e)(?: am| are|['’]m)? )"
    r"(?:[Cc]an ?not|[Cc]an['’]t|[Ww]on['’]t|[Ww]ill not|would not|[Dd]o not|[Dd]on['’]t"
    r"|[Nn]ot)"
    r" (?:yet )?(?:recommend(?:ing)? (?:approval|approving|merging|landing)|approv(?:e|ing)"
    r"|merg(?:e|ing)|sign(?:ing)? (?:this |it )?off|accept(?:ing)?)"
    r"(?=\s*(?:$|[.,:;!–—-]|(?:yet|this|it|as|like|now|until|before|because|for)\b))"
    r"|^\W*[Nn]ot (?:yet )?(?:approved|mergeable|ready (?:to|for) (?:merge|land|ship|be merged)\w*)\b"
)
# What refuses in the reviews of other tools and of mails.
REFUSED_ELSEWHERE = regex(
    r"(?:^|[.!?:;,]\s+)\W{0,6}(?:(?:the|this) patch is (?:incorrect|not correct)|nac?k(?:ed)?|not lgtm"
    r"|(?:please )?(?:do not|don['’]t) (?:merge|land|ship)(?: (?:this|it|yet)){0,2}"
    r"(?= ?(?:[.,;:!–—]|$|until|before)))\b"
    r"|^\W{0,4}reject(?:ed|ing)?(?=\s*(?:[:.,;!–—]|$))"
    r"|^\W{0,6}code-review ?[:=]? ?-[12]\b|^-[12](?=\s*(?:$|[:,;.–—]))|^nacked-by:",
    re.IGNORECASE,
)
# A line of nothing else is no sentence: words, marks, and signs such as ticks.
ONLY_WORDS = regex(r"[\w \t*`\u2190-\U0010ffff.!-]+")
MAX_PARAGRAPH = 12  # lines
MAX_RAW = 80
MAX_STATEMENT = 400


@dataclass(frozen=True, slots=True)
class StatedVerdict:
    """One verdict: what it covers (the id of a gap, or ROUND), its words, their meaning, and its line."""

    scope: str
    raw: str
    verdict: Verdict
    line: int
    index: int = 0


def worst_verdict(stated: list[StatedVerdict]) -> StatedVerdict | None:
    """Return the worst of several verdicts, the first of equal ones, or None if there are none (VER-4)."""
    return max(stated, key=lambda each: each.verdict.rank, default=None)


def _stated(words: str) -> Verdict | None:
    """Return the verdict of the first sentence with one, unless a later one says worse in capitals."""
    words = words[:MAX_STATEMENT]
    if ABOUT_FINDING.match(words.lstrip("* _`✓✔✅")):
        return None
    found: Verdict | None = None
    for sentence in sentences(words):
        if found is None or re.search(r"[A-Z]{4}", sentence):
            found = worst([found, read_verdict(sentence)])
    return found or verdict_alone(words)


# --- Where verdicts are -----------------------------------------------------------------------------------


def stated_verdicts(layout: Layout, inside: list[bool]) -> list[StatedVerdict]:
    """Return every verdict of a review in order, one for each scope and meaning (VER-1).

    `inside` says for each line whether it belongs to a finding, where a recommendation is only a suggestion.
    If a fence is never closed, nobody knows what it hides or leaves out by mistake, so nothing is approved.
    """
    is_cut = unclosed_fence(layout.lines) > 0
    apart = _ends_apart(layout)
    inside = [held and index != apart for index, held in enumerate(inside)]
    subject = _subject(layout)
    found = sorted([*_in_lines(layout, inside), *_in_tables(layout)], key=lambda each: each[0])
    stated: dict[tuple[str, Verdict], StatedVerdict] = {}
    for index, words, verdict in found:
        if is_cut and verdict is not Verdict.NEEDS_REVISION:
            continue
        scope = next(iter(gaps_in(words[:120])), "") or layout.where[index].gap or subject
        line = layout.lines[index]
        raw = _raw(words)
        stated.setdefault((scope, verdict), StatedVerdict(scope, raw, verdict, line.number, index))
    if not stated and (refusal := _refusal(layout)):
        index, words = refusal
        number = layout.lines[index].number
        return [StatedVerdict(subject, _raw(words), Verdict.NEEDS_REVISION, number, index)]
    return list(stated.values())


def _raw(words: str) -> str:
    """Return the words of a verdict without marks and without the gap before them."""
    plain = words.strip().lstrip(" \t:*_`").rstrip(" \t_`#")
    if match := GAP.match(plain):
        plain = plain[match.end() :].lstrip(" :-–—*")
    if plain.endswith("**") and plain.count("*") % 2 == 0:
        plain = plain.rstrip("*").rstrip()
    return plain[:MAX_RAW]


def _in_lines(layout: Layout, inside: list[bool]) -> Iterator[tuple[int, str, Verdict]]:
    awaited = ""  # the label of a heading or a line whose verdict is expected below it
    ends = _ends(layout)
    for index, line in enumerate(layout.lines):
        text = line.text
        if not text:
            continue
        if line.mode is not STATED:
            awaited = "" if text.strip() else awaited
            continue
        if match := verdict_label(text):
            label, words = match
            awaited = label if not words.strip(" \t:*#_") else ""
            verdict = _read(label, words, layout, index, inside[index])
        elif unlabelled := _unlabelled(layout, index, ends, is_awaited=bool(awaited)):
            (words, verdict), awaited = unlabelled, ""
        elif awaited and text.strip():
            words = text.lstrip("# \t") if line.heading else text
            verdict = _awaited(awaited, words, layout, index)
            item = list_item(text)
            # Below a heading, each gap may have a line of its own.
            awaited = awaited if item and verdict is not None and gaps_in(text) else ""
        else:
            continue
        if verdict is not None:
            yield index, words, verdict


def _awaited(label: str, words: str, layout: Layout, index: int) -> Verdict | None:
    """Return the verdict of the first line below its label; a heading counts only if it is just a verdict."""
    if layout.lines[index].heading is not None and not _whole(words):
        return None
    return _read(label, words, layout, index, inside=False)


def _unlabelled(
    layout: Layout, index: int, ends: tuple[int, int], *, is_awaited: bool
) -> tuple[str, Verdict] | None:
    """Return the words and the verdict of a line that needs no label: in capitals, or about a gap."""
    text = layout.lines[index].text
    if text.strip(" \t#*_`.:-") == "NO_ISSUES_FOUND":
        return text, Verdict.NO_ISSUES_FOUND
    if not is_awaited and "GAP-" in text and (of_gap := _of_gap(layout, index)):
        return of_gap
    if _in_capitals(layout, index, ends):
        return text, Verdict.NEEDS_REVISION
    return None


def _whole(words: str) -> Verdict | None:
    """Return the verdict that words in capitals are, if they are nothing else."""
    return VERDICT_WORDS.get(" ".join(re.findall(r"[a-z]+", words.lower()))) if words.isupper() else None


def _read(label: str, words: str, layout: Layout, index: int, inside: bool) -> Verdict | None:
    section = layout.where[index]
    if section.purpose is Purpose.HISTORY:
        return None
    if label.endswith(("verdict", "correctness")):
        return _stated(words)
    if section.purpose is Purpose.PRIOR:
        return None
    if inside:
        text = layout.lines[index].text
        if text[:1] in (" ", "\t", "#") or list_item(text) or not re.search(r"[A-Z]{5}", words):
            return None
    plain = words
    if scoped := GAP.match(plain.lstrip("*` ")):
        plain = plain.lstrip("*` ")[scoped.end() :].lstrip(" :-–—*")
    if lead := bold_lead(plain.strip()):
        plain = f"{lead[0]} {lead[1]}"
    return verdict_alone(plain) or _refused_at_end(plain)


def _ends_apart(layout: Layout) -> int:
    """Return the index of the last line if it stands apart, and so outside the finding above it; else -1."""
    last = _ends(layout)[1]
    above = layout.lines[last - 1].text.strip() if last > 0 else ""
    return -1 if above or last < 0 or list_item(layout.lines[last].text) else last


def _refused_at_end(words: str) -> Verdict | None:
    """Return the refusal in capitals at the end of a result: 3 findings (1 error) - NEEDS WORK."""
    last = re.split(r" [-–—] ", words[:MAX_STATEMENT])[-1].strip(" *_`.")
    refused = last.isupper() and last != words and verdict_alone(last) is Verdict.NEEDS_REVISION
    return Verdict.NEEDS_REVISION if refused and read_verdict(words) is Verdict.NEEDS_REVISION else None


def verdict_label(text: str) -> tuple[str, str] | None:
    """Return the label of a verdict at the beginning of a line and the words after it, or None."""
    if "`" in text[:10] and CODE_SPAN.match(text):
        return None
    plain = text.lstrip(" \t#*_-+`>")[:MAX_STATEMENT]
    if plain[:1] >= FIRST_SIGN:
        plain = SIGNS.sub("", plain, count=1)
    if plain[:1].isdigit():
        numbering = NUMBERING.match(plain) or (text.startswith("#") and BARE_NUMBER.match(plain))
        plain = plain[numbering.end() :].lstrip("*_ ") if numbering else ""
    if not (match := LABEL.match(plain)):
        return None
    words = plain[match.end() :].rstrip("#").rstrip()
    return (match["label"] or "verdict").lower(), "" if OF_A_ROUND.fullmatch(words) else words


def _of_gap(layout: Layout, index: int) -> tuple[str, Verdict] | None:
    """Return the verdict in capitals in a list item about a gap: - **GAP-AB-001** (title): APPROVED."""
    if not (item := list_item(layout.lines[index].text)):
        return None
    plain = item.text.lstrip("*`[ ")[:MAX_STATEMENT]
    match, (_, colon, words) = GAP.match(plain), plain.rpartition(": ")
    if match is None or not colon or not words.strip(" *_`").isupper():
        return None
    if layout.where[index].purpose in (Purpose.HISTORY, Purpose.PRIOR):
        return None
    verdict = verdict_alone(words)
    return (f"{match[0]} - {words}", verdict) if verdict else None


def _in_capitals(layout: Layout, index: int, ends: tuple[int, int]) -> bool:
    """Whether a refusal in capitals fills the first, the last or a summing-up line of a review (ARB-2).

    Only refusals are read here: an approval must be in a place of its own.
    """
    text = layout.lines[index].text.strip()
    is_apart = layout.where[index].own is Purpose.CLOSING or index in ends
    if not is_apart or len(text) > MAX_RAW or list_item(text) or not ONLY_WORDS.fullmatch(text):
        return False
    return _whole(text) is Verdict.NEEDS_REVISION


def _ends(layout: Layout) -> tuple[int, int]:
    """Return the indexes of the first and the last line of a review that state something, or -1."""
    lines = layout.lines
    first = next((index for index, line in enumerate(lines) if _says(line)), -1)
    return first, next((index for index in range(len(lines) - 1, -1, -1) if _says(lines[index])), -1)


def _says(line: Line) -> bool:
    return line.mode is STATED and bool(line.text.strip())


def _refusal(layout: Layout) -> tuple[int, str] | None:
    """Return where a review without other verdicts refuses in a sentence near its beginning or end (VER-7).

    Only refusals are read here: an approval must be in a place of its own.
    """
    prose: list[int] = []  # the indexes of the lines that begin a paragraph
    blank = True
    for index, line in enumerate(layout.lines):
        text = line.text.strip()
        told = line.mode is STATED and line.heading is None and text[:1] not in ("|", ">")
        if (
            blank
            and text
            and told
            and layout.where[index].purpose not in NOT_REFUSING
            and not list_item(text)
        ):
            prose.append(index)
        blank = not text
    for first in [*prose[-2:][::-1], *prose[:3]]:
        for index in range(first, min(first + MAX_PARAGRAPH, len(layout.lines))):
            words = layout.lines[index].text[:MAX_STATEMENT]
            if not _says(layout.lines[index]):
                break
            refused = REFUSED.search(words) and read_verdict(words) is Verdict.NEEDS_REVISION
            if refused or WITHHELD.search(words) or REFUSED_ELSEWHERE.search(words):
                return index, words
    return None


def says_no_issues(lines: Iterable[Line]) -> bool:
    """Whether a review states the marker NO_ISSUES_FOUND, in whatever place (PART-1, VER-6)."""
    return any(line.mode is STATED and NO_ISSUES_MARKER.search(line.text) for line in lines)


def _in_tables(layout: Layout) -> Iterator[tuple[int, str, Verdict]]:
    for table in layout.tables:
        section = layout.where[table.start]
        if section.purpose in (Purpose.HISTORY, Purpose.PRIOR):
            continue
        names, column = table.names, table.column(VERDICT_COLUMNS)
        for index, row in enumerate(table.rows, table.start + 2):
            if len(row.cells) == 2 and (match := verdict_label(row.cells[0])) and not match[1]:
                words = row.cells[1]
            elif column and column < len(row.cells) and not VERSIONS & set(names):
                words = row.cells[column]
                if names[column] != "verdict" and not gaps_in(row.cells[0]):
                    continue
            else:
                continue
            verdict = verdict_alone(words)
            if verdict is not None:
                gap = next(iter(gaps_in(row.cells[0])), "")
                yield index, f"{gap} - {words}" if gap else words, verdict


# --- Scopes -----------------------------------------------------------------------------------------------

ROUND = "ROUND"
SUBJECT = regex(
    r"[\s*_-]*(?:gaps?|focus|reviewing|proposal|subject|scope|resolution|engineer(?:'s)? proposal)\b[\s*_]*:",
    re.IGNORECASE,
)


def _subject(layout: Layout) -> str:
    """Return the one gap that the title, the headings or the first lines say a review is about, or ROUND."""
    headings = layout.sections.values()
    for texts in (
        [heading.title for heading in headings if heading.level == 1],
        [heading.title for heading in headings if heading.title.lower().lstrip("* ").startswith("review")],
        [line.text for line in layout.lines[:25] if line.mode is STATED and SUBJECT.match(line.text)],
    ):
        if gaps := {gap for text in texts for gap in gaps_in(text)}:
            return gaps.pop() if len(gaps) == 1 else ROUND
    return ROUND
