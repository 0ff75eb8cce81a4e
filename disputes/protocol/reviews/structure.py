"""Reading reviews that are data, JSON or YAML, under the keys of whatever tool wrote them (FND-8)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from disputes.protocol.reviews.fields import field_name, is_place
from disputes.protocol.reviews.findings import Found
from disputes.protocol.reviews.first_lines import LEVELS, read_start
from disputes.protocol.reviews.inline_severities import IN_CAPITALS, MAX_READ, MAX_TITLE, severity_in
from disputes.protocol.reviews.verdict_words import Verdict, read_verdict, verdict_alone
from disputes.protocol.text.documents import FENCED, STATED, Line
from tasks.configuration.plain_yaml import read_plain
from tasks.configuration.yaml_files import FaultyFile
from tasks.states import Severity
from tasks.text.regex import regex

YAML_MAX = 64 * 1024  # characters
DEPTH_MAX = 8
VALUES_MAX = 5_000
LINES_AHEAD = 200  # lines after the entry before it in which an entry is looked for
NESTED_MAX = 20  # values of one part of a finding
LISTS = ("findings", "issues", "comments", "problems")
HAS_LIST = regex(rf"""^[ \t{{]*["']?(?:{"|".join(LISTS)})["']?[ \t]*:""")
VERDICTS = (
    "verdict", "decision", "recommendation", "overall correctness", "outcome", "result", "conclusion",
    "assessment", "status", "approved",
)  # fmt: skip
APPROVED = {"true": Verdict.APPROVED, "false": Verdict.NEEDS_REVISION}
# Keys that are no labels of parts in Markdown.
KEYS = {
    **dict.fromkeys(["title", "name", "summary", "headline"], "title"),
    **dict.fromkeys(["body", "message", "comment", "explanation", "text", "rationale"], "problem"),
    **dict.fromkeys(["path", "file path", "filename", "code location", "line number", "start line",
                     "line range"], "location"),
    **dict.fromkeys(["id", "code"], "code"),
    "level": "severity",
}  # fmt: skip
FENCES = frozenset(["json", "yaml", "yml"])
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
    if not any(name in text for name in LISTS):
        return None
    data, prose = _mapping(text), ""
    if data is None:
        inside, prose = _only_fence(lines)
        data = _mapping(inside)
    entries = next((data[name] for name in LISTS if isinstance(data.get(name), list)), None) if data else None
    if data is None or entries is None:
        return None
    findings: list[Found] = []
    begin = 0
    for entry in entries[:VALUES_MAX]:
        begin = _line_of(entry, lines, begin)
        if found := _found(entry, ordinal=len(findings) + 1, line=lines[begin].number):
            findings.append(found)
    return Structure(*_verdict(data), tuple(findings), prose)


def _mapping(text: str) -> dict[str, Any] | None:
    """Return the mapping that a text is, its keys in lower-case words and its values as they are."""
    text = text.strip()
    try:
        if text.startswith("{"):
            data = json.loads(text)
        elif any(HAS_LIST.match(line) for line in text.splitlines()):
            data = read_plain(text, size=YAML_MAX, depth=DEPTH_MAX, values=VALUES_MAX)
        else:
            return None
    except (ValueError, RecursionError, FaultyFile):
        return None
    return {_key(name): value for name, value in data.items()}


def _key(name: str) -> str:
    return name.lower().replace("_", " ").replace("-", " ").strip()


def _only_fence(lines: Sequence[Line]) -> tuple[str, str]:
    """Return the text in the only fence for data, and the text around it; two empty texts without one."""
    fenced = [line for line in lines if line.mode is FENCED]
    if len(fenced) < 3 or fenced[0].text.strip("`~ \t").lower() not in FENCES:
        return "", ""
    if fenced[-1].number - fenced[0].number + 1 != len(fenced):
        return "", ""
    prose = "\n".join(line.text for line in lines if line.mode is not FENCED)
    return "\n".join(line.text for line in fenced[1:-1]), prose


def _line_of(entry: Any, lines: Sequence[Line], begin: int) -> int:
    """Return the index of the line, from `begin` on, on which the first long text of an entry stands."""
    said = next((text for text in _texts(entry) if len(text) > 12), "")
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
    title = title or said["problem"].split("\n")[0]
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
        key = _key(name)
        said = list(islice(_texts(value), NESTED_MAX))
        if key == "priority":
            said = [f"P{words}" if words.isdecimal() else words for words in said]
        parts.setdefault(KEYS.get(key) or field_name(key), []).extend(said)
    return parts


def _severity(words: str) -> Severity | None:
    """Return the severity that a value states; the levels of linters count too."""
    return severity_in(LEVELS.get(words.lower(), words)) or IN_CAPITALS.get(words.upper())


def _place(said: Sequence[str]) -> str:
    """Return the place that the values of an entry name, such as `src/a.py:12`."""
    path = next((words for words in said if not words.isdecimal()), "")
    number = next((words for words in said if words.isdecimal()), "")
    return f"{path}:{number}" if number and is_place(path) else path[:300]


def _verdict(data: Mapping[str, Any]) -> tuple[Verdict | None, str]:
    """Return the verdict under the first key that states one, and its words."""
    for name in VERDICTS:
        value = data.get(name)
        words = str(value).strip() if isinstance(value, str | bool) else ""
        if name == "approved" and words.lower() in APPROVED:
            return APPROVED[words.lower()], words
        if words and (verdict := verdict_alone(words.replace("_", " ")) or read_verdict(words)):
            return verdict, words[:80]
    return None, ""
