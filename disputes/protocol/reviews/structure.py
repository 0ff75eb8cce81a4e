"""Reading reviews that are data, JSON or YAML, under the keys of whatever tool wrote them (FND-8)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from disputes.protocol.reviews.fields import field_name
from disputes.protocol.reviews.findings import Found
from disputes.protocol.reviews.first_lines.kinds_of_lines import read_start
from disputes.protocol.reviews.first_lines.places import LEVELS
from disputes.protocol.reviews.headings import Purpose, purpose_of, section_severity
from disputes.protocol.reviews.inline_severities import EXACT, MAX_READ, MAX_TITLE, severity_in
from disputes.protocol.reviews.languages import verdict_in
from disputes.protocol.reviews.verdict_words import Verdict, read_verdict, verdict_alone
from disputes.protocol.reviews.verdicts import verdict_label
from disputes.protocol.text.data import DEPTH_MAX, Data, as_words, data_in
from disputes.protocol.text.documents import STATED, Line
from disputes.protocol.text.locations import is_place
from disputes.protocol.text.tags import Entry, read_tags
from tasks.states import Severity
from tasks.text.places import location_of
from tasks.text.regex import regex

# Elements of which each is a finding.
FINDINGS = frozenset(
    ["finding", "issue", "comment", "problem", "bug", "defect", "violation", "vulnerability", "concern"]
    + ["blocker", "nit", "suggestion", "annotation", "error", "failure"]
)
FAILED = frozenset(["error", "failure"])  # of a test or a checker, which are grave if they do not say
HAS_TAGS = regex(rf"(?:^|[\n>])[ \t]*<(?:{'|'.join(sorted(FINDINGS))}|review|verdict)s?\b")
LONG = 12  # characters; shorter texts, such as a severity, may stand anywhere
LINES_AHEAD = 200  # lines after the entry before it in which an entry is looked for
MAX_VERDICT = 80  # characters
NESTED_MAX = 20  # values of one part of a finding
# The words that name a list of findings, alone or among others: `blocking_issues`, `code_suggestions`.
LISTS = (
    "findings", "issues", "comments", "problems", "results", "runs", "bugs", "defects", "violations",
    "vulnerabilities", "diagnostics", "concerns", "blockers", "nits", "nitpicks", "suggestions", "warnings",
    "fix", "critical", "high", "medium", "low", "major", "minor",
)  # fmt: skip
LISTED = frozenset(LISTS)
NOT_FINDINGS = frozenset([Purpose.PRIOR, Purpose.HISTORY, Purpose.PRAISE])
NESTED_KEYS = 3  # how deep a list of findings may lie in other mappings
APPROVED = {"true": Verdict.APPROVED, "false": Verdict.NEEDS_REVISION}
# Keys that are no labels of parts in Markdown.
KEYS = {
    **dict.fromkeys(["title", "name", "summary", "headline"], "title"),
    **dict.fromkeys(["body", "message", "comment", "explanation", "text", "rationale"], "problem"),
    **dict.fromkeys(["path", "file path", "filepath", "filename", "relevant file", "code location",
                     "line number", "start line", "line range"], "location"),
    **dict.fromkeys(["id", "code"], "code"),
    **dict.fromkeys(["level", "issue severity", "criticality"], "severity"),
    **dict.fromkeys(["issue text", "issue content", "what"], "problem"),
    "issue header": "title",
    "why": "impact",
    **dict.fromkeys(["suggestion content", "suggested fix", "how to fix"], "suggestion"),
}  # fmt: skip
LEVELS_OF_RULES = {"1": "warning", "2": "error"}  # of eslint
SAID = ("problem", "impact", "suggestion")


class Structure(NamedTuple):
    """What a review that is data says; `prose` is the text around the data."""

    verdict: Verdict | None
    raw_verdict: str
    findings: tuple[Found, ...]
    prose: str


def read_structure(text: str, lines: Sequence[Line]) -> Structure | None:
    """Return what a review says that is data, as a whole or in its only fence; None if it is not.

    Data counts if it is a mapping with a list of findings under one of the usual keys.
    """
    data = data_in(text, lines, LISTS, _entries) or read_tags(
        lines, HAS_TAGS, lambda name, _: name in FINDINGS, _is_part
    )
    if data is None:
        return None
    data = data._replace(keys=dict(_flat(data.keys)))
    if (data.prose.strip() or not data.keys.keys() - LISTED) and any(map(_is_text, data.entries)):
        return None  # an example of something else
    findings: list[Found] = []
    begin = 0
    for entry in _results(data.entries):
        begin = entry.line - 1 if isinstance(entry, Entry) else _line_of(entry, lines, begin)
        if found := _found(entry, ordinal=len(findings) + 1, line=lines[begin].number):
            findings.append(found)
    verdict, raw = _verdict(data)
    if data.entries and not findings and verdict is None:
        return None  # nobody knows what it says
    rest = [str(value) for value in data.keys.values() if isinstance(value, str) and value != raw]
    return Structure(verdict, raw, tuple(findings), "\n".join(filter(None, [data.prose.rstrip(), *rest])))


def _is_part(key: str) -> bool:
    """Whether an element in tags is a part of a finding, or states a verdict."""
    return bool(KEYS.get(key) or field_name(key) or verdict_label(f"{key}:"))


def _flat(keys: Mapping[str, Any], depth: int = NESTED_KEYS) -> Iterator[tuple[str, Any]]:
    """Yield the keys of a mapping, in words, and those of the mappings in it."""
    for name, value in keys.items():
        if isinstance(value, Mapping):
            yield from _flat(value, depth - 1) if depth else ()
        else:
            yield as_words(str(name)), value


def _entries(keys: Mapping[str, Any]) -> list[Any] | None:
    """Return the findings under the keys that name findings, each with the severity that its key states."""
    found: list[Any] = []
    has_list = False
    for name, value in _flat(keys):
        if not isinstance(value, list) or not LISTED & {*name.split()} or purpose_of(name) in NOT_FINDINGS:
            continue
        has_list = True
        severity = section_severity(name)[0]
        found += [_graded(entry, severity) if severity else entry for entry in value]
    return found if has_list else None


class _Text(dict[str, str]):
    """A finding that is only a text, with the severity that the key of its list states."""


def _is_text(entry: Any) -> bool:
    return isinstance(entry, _Text) or not isinstance(entry, Mapping)


def _graded(entry: Any, severity: str) -> Any:
    if not isinstance(entry, Mapping):
        return _Text(title=str(entry), severity=str(severity))
    stated = {KEYS.get(as_words(str(name))) or field_name(as_words(str(name))) for name in entry}
    return entry if "severity" in stated else {**entry, "severity": str(severity)}


def _results(entries: Sequence[Any]) -> Iterator[Any]:
    """Yield the entries; those of a checker stand in a list of each run, as in SARIF, or of each file."""
    for entry in entries:
        told = entry if isinstance(entry, Mapping) else {}
        results = next(
            (told[name] for name in ("results", "messages") if isinstance(told.get(name), list)), None
        )
        if results is None:
            yield entry
            continue
        around = {name: value for name, value in told.items() if KEYS.get(as_words(str(name))) == "location"}
        yield from ({**around, **each} if isinstance(each, Mapping) else each for each in results)


def _line_of(entry: Any, lines: Sequence[Line], begin: int) -> int:
    """Return the index of the line, from `begin` on, on which the first long text of an entry stands."""
    texts = list(islice(_texts(entry), NESTED_MAX))
    said = next((text for text in texts if len(text) > LONG), max(texts, key=len, default=""))
    words = json.dumps(said[:60], ensure_ascii=False)[1:-1].split("\\n")[0]
    ahead = range(begin, min(begin + LINES_AHEAD, len(lines)))
    return next((place for place in ahead if words and words in lines[place].text), begin)


def _texts(value: Any, depth: int = DEPTH_MAX) -> Iterator[str]:
    """Yield the texts and numbers in a value, however deep they are nested."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for each in value if depth else ():
            yield from _texts(each, depth - 1)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _found(entry: Any, *, ordinal: int, line: int) -> Found | None:
    """Return the finding of one entry, which may also be a text; None if it says nothing."""
    parts = _parts(entry)
    title = " ".join(parts.get("title", ())).strip()
    words = next((word for word in parts.get("severity", ()) if _severity(word)), "")
    start = read_start(Line(line, f"- {title[:MAX_READ]}", STATED))
    if start and start.tag and start.title:
        title, words = start.title, words or start.tag
    said = {part: "\n".join(parts.get(part, ())).strip() for part in SAID}
    title = title or next((words.split("\n")[0] for words in said.values() if words), "")
    if not title:
        return None
    return Found(
        title=title[:MAX_TITLE],
        severity=_severity(words),
        raw_severity=words[:40],
        code=" ".join(parts.get("code", ())).upper()[:24],
        location=_place(parts.get("location", ())),
        impact=said["impact"],
        suggestion=said["suggestion"],
        text="\n\n".join(dict.fromkeys([title, *filter(None, said.values())])),
        line=line,
        ordinal=ordinal,
        format="data",
    )


def _parts(entry: Any) -> dict[str, list[str]]:
    """Return what an entry says, by the parts of a finding that its keys name."""
    parts: dict[str, list[str]] = {}
    for name, value in entry.items() if isinstance(entry, Mapping) else [("title", entry)]:
        key = as_words(name)
        said = list(islice(_texts(value), NESTED_MAX))
        if key == "priority":
            said = [f"P{words}" if words.isdecimal() else words for words in said]
        elif key == "blocking" and value is True:
            key, said = "severity", ["high"]
        elif key == "severity" and "ruleId" in entry:
            said = [LEVELS_OF_RULES.get(words, words) for words in said]
        elif key == "tag" and value in FAILED and "severity" not in entry:
            key, said = "severity", ["error"]
        parts.setdefault(KEYS.get(key) or field_name(key), []).extend(said)
    return parts


def _severity(words: str) -> Severity | None:
    """Return the severity that a value states; the levels of linters count too."""
    return severity_in(LEVELS.get(words.lower(), words)) or EXACT.get(words.upper())


def _place(said: Sequence[str]) -> str:
    """Return the place that the values of an entry name, such as `src/a.py:12`."""
    path = next((words for words in said if not words.isdecimal()), "")
    number = next((words for words in said if words.isdecimal()), "")
    at = location_of(path[:300], number)
    return at if number and is_place(at) else path[:300]


def _verdict(data: Data) -> tuple[Verdict | None, str]:
    """Return the verdict under the first key that states one, and its words.

    Data with text around it may be an example, so it approves only under `verdict`.
    """
    named = [name for name in data.keys if name == "approved" or verdict_label(f"{name}:")]
    for name in sorted(named, key=lambda name: name != "verdict"):
        value = data.keys[name]
        words = str(value).strip()[:MAX_VERDICT] if isinstance(value, str | bool) else ""
        verdict = APPROVED.get(words.lower()) if name == "approved" else _read(words)
        is_sure = name == "verdict" or not data.prose.strip()
        if verdict and (is_sure or verdict is Verdict.NEEDS_REVISION):
            return verdict, words
    return None, ""


def _read(words: str) -> Verdict | None:
    return verdict_alone(words.replace("_", " ")) or read_verdict(verdict_in(words.casefold()) or words)
