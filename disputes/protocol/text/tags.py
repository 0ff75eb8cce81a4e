"""Reading documents in tags, as in XML, as the data that they stand for (FND-8)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import unescape
from typing import Any

from disputes.protocol.text.data import Data, as_words
from disputes.protocol.text.documents import FENCED, STATED, Line
from tasks.text.regex import regex

AROUND = frozenset(["file", "testcase"])  # what their place, or the name of the test, is an attribute of
TAG = regex(
    r"(?<!`)<(?P<close>/)?(?P<name>[A-Za-z_][\w.-]{0,40})"
    r"""(?P<attributes>(?:\s+[\w:.-]{1,40}=(?:"[^"<]{0,2000}"|'[^'<]{0,2000}')){0,20})\s?(?P<end>/)?>"""
)
ATTRIBUTE = regex(r"""(?P<name>[\w:.-]{1,40})=(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)')""")
CDATA = regex(r"<!\[CDATA\[|\]\]>")
FENCES = frozenset(["xml", ""])


class Entry(dict[str, Any]):
    """A finding or an answer in tags, by its attributes and elements; `line` is where it begins."""

    line = 0


IsEntry = Callable[[str, Mapping[str, str]], bool]


def read_tags(
    lines: Sequence[Line], begins: re.Pattern[str], is_entry: IsEntry, is_key: Callable[[str], bool]
) -> Data | None:
    """Return the data of a document in tags; None if it has no tag for an entry or a verdict.

    One of its lines `begins` with a tag. `is_entry` says by its name and attributes whether an element is an
    entry, and `is_key` whether one inside an entry is a part of it. Other tags are left in its text.
    """
    text = "\n".join(_shown(lines))
    if not begins.search(text):
        return None
    walk = _Walk(CDATA.sub("", text), is_entry, is_key)
    walk.run()
    if not walk.entries and "verdict" not in walk.keys:
        return None
    return Data(walk.keys, walk.entries, "".join(walk.prose))


def _shown(lines: Sequence[Line]) -> Iterator[str]:
    """Yield what each line states; code in a fence is none, unless the fence says that it holds tags."""
    is_open = False
    for line in lines:
        if line.mode is FENCED and line.text.lstrip()[:3] in ("```", "~~~"):
            is_open = not is_open and line.text.strip("`~ \t").lower() in FENCES
            yield ""
        else:
            yield line.text if line.mode is STATED or (line.mode is FENCED and is_open) else ""


class _Walk:
    """One pass over the tags of a text. What is never closed ends where the next one of its kind begins."""

    def __init__(self, text: str, is_entry: IsEntry, is_key: Callable[[str], bool]) -> None:
        self.text, self.is_entry, self.is_key = text, is_entry, is_key
        self.keys: dict[str, Any] = {}
        self.entries: list[Any] = []
        self.prose: list[str] = []
        self.entry: Entry | None = None
        self.name = self.part = ""  # of the finding, and of its part
        self.around: dict[str, str] = {}  # what is said of all findings in the same file or test
        self.line, self.at = 1, 0
        self.ends: dict[str, int] = {}  # where each kind of tag is closed last

    def run(self) -> None:
        end = 0
        tags = list(TAG.finditer(self.text))
        self.ends = {tag["name"].lower(): tag.start() for tag in tags if tag["close"] or tag["end"]}
        for tag in tags:
            self.at = tag.start()
            self._say(self.text[end : self.at])
            end = tag.end()
            name = tag["name"].lower()
            if tag["close"]:
                self._close(name, tag[0])
            else:
                self._open(name, tag["attributes"], tag[0])
                if tag["end"]:
                    self._close(name, "")
        self._say(self.text[end:])
        for parts in (self.keys, *self.entries):
            parts |= {name: " ".join(said) for name, said in parts.items()}

    def _say(self, text: str) -> None:
        self.line += text.count("\n")
        told = "\n" * text.count("\n")
        if self.entry is not None:
            _add(self.entry, self.part or "problem", text)
        elif self.part:
            _add(self.keys, self.part, text)
        else:
            told = text
        self.prose.append(told)

    def _open(self, name: str, attributes: str, tag: str) -> None:
        told = {
            match["name"].lower(): unescape(match["double"] or match["single"] or "")
            for match in ATTRIBUTE.finditer(attributes)
        }
        if self.entry is not None and name != self.name:
            if not self.is_key(as_words(name)):
                _add(self.entry, self.part or "problem", tag)
                return
            self.part = name
        elif self.is_entry(name, told) and self._is_whole(name, told):
            self.entry, self.name, self.part = Entry(), name, ""
            self.entry.line = self.line
            self.entries.append(self.entry)
            told = {"tag": name, **self.around, **told}
        elif name in AROUND:
            where = "file" if name == "file" else "title"
            self.around = {where: told.pop("name", ""), **told}
            return
        else:
            self.part = name if name == "verdict" or self.is_key(as_words(name)) else ""
        for each, words in told.items():
            _add(self.keys if self.entry is None else self.entry, each, words)

    def _is_whole(self, name: str, told: Mapping[str, str]) -> bool:
        """Whether a tag for a finding is no word in a sentence: it is closed below, or states a severity."""
        return self.at <= self.ends.get(name, -1) or "severity" in told

    def _close(self, name: str, tag: str) -> None:
        if self.entry is not None and name in (self.name, f"{self.name}s"):
            self.entry, self.part = None, ""
        elif name == self.part:
            self.part = ""
        elif self.entry is not None and tag:
            _add(self.entry, self.part or "problem", tag)


def _add(parts: dict[str, Any], name: str, text: str) -> None:
    """Add a text to those of a part, without the blanks around its lines; they are joined at the end."""
    if not text.strip():
        return
    said = unescape("\n".join(line.strip() for line in text.strip("\n").split("\n"))).strip()
    parts.setdefault(name, []).append(said)
