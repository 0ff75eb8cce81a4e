"""Reading decisions.md, both our own and the other forms in which people have recorded decisions (DEC-11)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from disputes.protocol.rulings.options import OPTIONS, Kind, Option
from disputes.protocol.text.documents import RULE, STATED, Line, Problem, Row, cells, scan
from disputes.protocol.text.mentions import codes_in
from disputes.protocol.text.quotes import one_line, readable, unquoted
from tasks.text.regex import regex

# The labels of an entry in lower case, and the value that each of them gives.
LABELS: dict[str, str] = {
    **{name: name for name in ("severity", "constraints", "impact")},
    "conflict type": "conflict_type",
    **dict.fromkeys(["gap affected", "gaps affected", "gap", "task"], "gap"),
    **dict.fromkeys(["reviewer", "reviewer position"], "reviewer"),
    **dict.fromkeys(["engineer", "engineer position", "coder"], "coder"),
    **dict.fromkeys(["chosen option", "choice", "option"], "choice"),
    "decision": "text",
    **dict.fromkeys(["behavior", "behaviour"], "behavior"),
    **dict.fromkeys(["rationale", "reason"], "rationale"),
    "precedent": "citation",
    "for engineer": "for_coder",
    "for gap": "for_gap",
    **dict.fromkeys(["conflict", "issue", "issues"], "subject"),
    **dict.fromkeys(["decided by", "made by"], "by"),
    **dict.fromkeys(["timestamp", "date"], "at"),
    **dict.fromkeys(["state", "status"], "state"),
}
# Labels that only introduce a group of others, and end the value before them.
GROUPS = {"positions", "resolution", "action required", "context", "alternatives considered"}
LETTERS = {row.letter.lower(): row.option for row in OPTIONS[Kind.DISAGREEMENT]}
WORDS: dict[str, Option] = {option.value.replace("_", " "): option for option in Option}
VALUE_MAX = 20_000
TITLE_MAX = 1_000
_LABEL = regex(r"^\s*(?:[-*+]\s+)?\*\*(?P<name>[^*:]{2,40}):?\*\*:?(?P<value>.*)$")
_PLAIN = regex(r"^[ \t]*[-*+][ \t]{1,8}(?P<name>[A-Za-z ]{2,40}):(?P<value>.*)$")
_HEADING = regex(r"^ {0,3}#{1,6}[ \t]+(?P<text>\S.*)$")
_LETTER = regex(
    r"^(?:option )?(?P<letter>[a-d])(?=$|[(.:,]| [(–—-])[ .:,–—-]*(?:\([^()]{0,80}\))?", re.IGNORECASE
)
_OWN = regex(r"\bDEC-(?:[A-Z0-9]{1,12}-){0,3}\d{1,4}\b")
_TASK = regex(r"^Task (?P<ref>[A-Za-z0-9_-]{1,60}-\d+)")


@dataclass(frozen=True, slots=True)
class Decided:
    """One recorded decision. What the file does not say is empty; `option` is None for a free choice.

    `codes` are the findings that it settles (or the file's own ids, DEC-…), which may be several.
    """

    line: int
    codes: tuple[str, ...]
    title: str
    option: Option | None
    text: str
    rationale: str = ""
    constraints: str = ""
    citation: str = ""
    conflict_type: str = ""
    gap: str = ""
    severity: str = ""
    reviewer: str = ""
    coder: str = ""
    for_coder: str = ""
    for_gap: str = ""
    impact: str = ""
    by: str = ""
    at: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True)
class ReadDecisions:
    """A file of decisions as read, with warnings about entries that look like decisions but state none."""

    decisions: tuple[Decided, ...]
    warnings: tuple[Problem, ...] = ()


@dataclass(slots=True)
class _Section:
    """The content below one heading."""

    line: int
    title: str
    values: dict[str, list[str]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)


def read_decisions(document: str) -> ReadDecisions:
    """Return the decisions in a file (DEC-11). Raises DocumentError if it is too large.

    Ids and labels in fences and quotes are examples or somebody's words (ID-3). A section that names a
    finding but no decision is a warning.
    """
    decisions: list[Decided] = []
    warnings: list[Problem] = []
    for section in _sections(scan(document)):
        decided = _decided(section)
        if decided is not None:
            decisions.append(decided)
        elif section.title and _codes(section.title):
            warnings.append(Problem(section.line, f"{one_line(section.title, 80)}: no decision is stated"))
        decisions += _from_table(section)
    return ReadDecisions(tuple(decisions), tuple(warnings))


def _sections(lines: Iterable[Line]) -> Iterator[_Section]:
    section, label = _Section(1, ""), ""
    for line in lines:
        heading = _HEADING.match(line.text) if line.mode is STATED else None
        named = _label(line)
        if heading and _name(heading["text"]) in LABELS:
            label = _start(section, LABELS[_name(heading["text"])], "")
        elif heading and _name(heading["text"]) in GROUPS:
            label = ""
        elif heading:
            yield section
            section, label = _Section(line.number, _title(heading["text"])), ""
        elif named:
            label = _start(section, named[0], named[1]) if named[0] else ""
        elif line.mode is STATED and RULE.match(line.text):
            label = ""
        elif line.mode is STATED and line.text.lstrip().startswith("|"):
            section.rows.append(Row(line.number, cells(line.text)))
        elif label:
            section.values[label].append(line.text)
    yield section


def _name(text: str) -> str:
    return text.strip().strip("*:# ").lower()


def _title(text: str) -> str:
    """Return the text of a heading without the marks that close it, and with escaped marks restored."""
    text = text[:TITLE_MAX]
    text = re.sub(r"[ \t]#+$", "", text.rstrip()).rstrip() if not text.rstrip().endswith("\\#") else text
    return readable(text.replace("\\#", "#"))


def _label(line: Line) -> tuple[str, str] | None:
    """Return the value that a line begins ("" for a group) and its part on this line, or None."""
    match = (_LABEL.match(line.text) or _PLAIN.match(line.text)) if line.mode is STATED else None
    if match is None:
        return None
    name = _name(match["name"])
    if name in GROUPS:
        return "", ""
    return (LABELS[name], match["value"].strip()) if name in LABELS else None


def _start(section: _Section, label: str, value: str) -> str:
    """Begin a value and return its name; a repeated label returns "", since it may be in somebody's words."""
    if label in section.values:
        return ""
    section.values[label] = [value]
    return label


def _value(section: _Section, label: str) -> str:
    """Return a value as it was written: the quote below its label, or else its lines."""
    lines = section.values.get(label, [])
    below = [line for line in lines[1:] if line.strip()]
    if lines and not lines[0] and below and all(line.lstrip().startswith(">") for line in below):
        first = next(index for index, line in enumerate(lines) if line.strip())
        return readable(unquoted(lines[first:]).strip("\n"))[:VALUE_MAX]
    text = "\n".join([*lines[:1], *(line.strip() for line in lines[1:])]).strip()
    return readable(text)[:VALUE_MAX]


def _decided(section: _Section) -> Decided | None:
    choice, text = _value(section, "choice"), _value(section, "text")
    behavior = _value(section, "behavior")
    option, rest = _option(choice)
    stated = "\n".join(dict.fromkeys(part for part in (text, rest, behavior) if part))
    if not stated and option is None:
        return None
    subject = _value(section, "subject")
    return Decided(
        line=section.line,
        codes=_codes(section.title) or _codes(subject),
        title=_without_codes(section.title) or _without_codes(subject),
        option=option,
        text=stated,
        **{
            name: _value(section, name)
            for name in (
                "rationale", "constraints", "citation", "conflict_type", "gap", "severity", "reviewer",
                "coder", "for_coder", "for_gap", "impact", "by", "at", "state",
            )
        },
    )  # fmt: skip


def _option(choice: str) -> tuple[Option | None, str]:
    """Return the option that a choice names, and what else it says: `C (Synthesis)`, `Option B: at once`."""
    words = " ".join(choice.split())
    if words.lower() in WORDS:
        return WORDS[words.lower()], ""
    match = _LETTER.match(words)
    return (
        (LETTERS[match["letter"].lower()], words[match.end() :].lstrip(" .:,–—-"))
        if match
        else (None, choice)
    )


def _codes(text: str) -> tuple[str, ...]:
    """Return the ids that a title begins with: `ISSUE-R1-002 and ISSUE-R1-003: …`, `Task ledger-214: …`."""
    if task := _TASK.match(text):
        return (f"Task {task['ref']}",)
    head = text.partition(": ")[0]
    return tuple(dict.fromkeys([*codes_in(head[:400]), *_OWN.findall(head[:400])]))


def _without_codes(text: str) -> str:
    head, colon, rest = text.partition(": ")
    return rest.strip() if colon and _codes(head + colon) else text.strip()


def _from_table(section: _Section) -> Iterator[Decided]:
    """Yield the rows of a table whose header names Decision and Choice."""
    columns: dict[str, int] = {}
    for number, row in section.rows:
        names = [_name(cell) for cell in row]
        if "decision" in names and "choice" in names:
            columns = {name: index for index, name in enumerate(names)}
            continue
        if not columns or all(set(cell) <= set("-: ") for cell in row):
            continue
        found = {name: row[index] for name, index in columns.items() if index < len(row)}
        subject, choice = found.get("decision", "").strip("* "), found.get("choice", "")
        if not choice:
            continue
        option, rest = _option(choice)
        yield Decided(
            line=number,
            codes=_codes(subject),
            title=_without_codes(subject),
            option=option,
            text=rest or choice,
            rationale=found.get("rationale", ""),
            by=found.get("decided by", ""),
            at=found.get("date", ""),
        )
