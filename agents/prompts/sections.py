"""The pieces of a prompt, each fenced and with its own budget.

A fence keeps a text from being read as an order. What is cut is remembered by name, for the list in the
prompt that says what was left out.
"""

from dataclasses import dataclass, field
from typing import Any

from disputes.protocol.text.quotes import fenced
from tasks.text.fences import closed

NAME_MAX = 200


def one_line(text: str) -> str:
    """Return the text without line breaks, so that nothing in it begins a line of the prompt."""
    return " ".join(text.split())


def cut(text: str, limit: int, what: str) -> str:
    """Return the beginning of the text up to the limit, with a note if something was left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[{what}: {len(text) - limit} characters left out]"


def cut_head(text: str, limit: int) -> str:
    """Return the last lines of the text up to the limit, with a note if its beginning was left out."""
    if len(text) <= limit:
        return text
    end = text[-limit:]
    end = end[end.find("\n", 0, limit // 2) + 1 :]
    return f"[{len(text) - len(end)} characters left out]\n{end}"


@dataclass(frozen=True, slots=True)
class Section:
    """A text from elsewhere, with its budget."""

    name: str  # such as specification
    text: str
    limit: int  # characters
    info: str = "text"
    where: str = ""  # where the whole text can be found: read docs/SPEC.md in the clone
    keeps_end: bool = False
    is_fenced: bool = True  # False only for what people with rights wrote, and for parts already fenced
    instead: str = ""  # what is shown if the text is empty
    label: str = ""  # what the note about a cut calls it, if not by its name


@dataclass
class Cuts:
    """What did not fit, one line each; `share` is the share of every budget that may be used."""

    share: float = 1.0
    lines: list[str] = field(default_factory=list)

    def fit(self, section: Section) -> str:
        """Return the section as the prompt shows it, and note what was cut."""
        if not section.text.strip():
            return section.instead
        limit = max(int(section.limit * self.share), 0)
        text = section.text
        if len(text) > limit:
            where = f": {section.where}" if section.where else ""
            name = one_line(section.name)[:NAME_MAX].replace("`", "'")
            self.lines.append(f"{name} ({limit:,} of {len(text):,} characters){where}")
            label = one_line(section.label or section.name)[:NAME_MAX]
            text = cut_head(text, limit) if section.keeps_end else cut(text, limit, label)
        return fenced(text, section.info) if section.is_fenced else closed(text)

    def fit_all(self, value: Any) -> Any:
        """Return the value with every section in it fitted, however deeply nested."""
        match value:
            case Section():
                return self.fit(value)
            case dict():
                return {key: self.fit_all(each) for key, each in value.items()}
            case list():
                return [self.fit_all(each) for each in value]
        return value
