"""Core: the kinds of setting, and what each kind accepts.

A setting is one field of `policy.ProjectSettings`, made by `setting` below. The admin's form, the files of
`import_config` and `export_config`, and docs/settings.md are all made from the same entries.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.configuration import ladder
from tasks.configuration.ladder import STEPS_MAX, shown
from tasks.states import Severity
from tasks.text.branches import BRANCH_SAYS, is_branch_name
from tasks.text.regex import regex

TEXT_MAX = 10_000
PATH_MAX = 300
HOST = regex(
    r"(\*|(\*\.)?[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(:[0-9]{1,5})?", re.IGNORECASE
)
HOST_SAYS = "a name such as packages.example.org, with :8443 for another port; *.example.org or * for many"
_SEVERITIES = "critical, high, medium and low"


class SettingsError(ValueError):
    """A setting has an unknown key or an invalid value. `key` says where, such as policy.low."""

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True, slots=True)
class Kind(ABC):
    """One kind of value. `check` is strict, for the database; `read` forgives how people spell a value."""

    @abstractmethod
    def check(self, key: str, value: Any) -> Any:
        """Return the value as the settings store it. Raises SettingsError naming the key."""

    def read(self, value: Any) -> Any:
        """Return what a person wrote in the program's spelling if only that differs; otherwise unchanged."""
        return value

    def plain(self, value: Any) -> Any:
        """Return the value in JSON's own types."""
        return value

    def says(self) -> str:
        """Return in words which values are accepted."""
        return ""


def _wrong(key: str, value: Any, needed: str) -> SettingsError:
    return SettingsError(f"{key} is {shown(value)}; {needed} is needed.", key)


@dataclass(frozen=True, slots=True)
class Flag(Kind):
    """True or false."""

    def check(self, key: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise _wrong(key, value, "true or false")
        return value

    def says(self) -> str:
        return "true or false"


@dataclass(frozen=True, slots=True)
class Whole(Kind):
    """A whole number; None is allowed only if `none` says what it means."""

    low: int
    high: int
    none: str = ""

    def check(self, key: str, value: Any) -> int | None:
        if value is None and self.none:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong(key, value, "a whole number")
        if not self.low <= value <= self.high:
            raise SettingsError(f"{key} is {shown(value)}; it is {self.says()}.", key)
        return value

    def says(self) -> str:
        return f"between {self.low} and {self.high}" + (f", or empty: {self.none}" if self.none else "")


@dataclass(frozen=True, slots=True)
class Number(Kind):
    """A number that may have a fraction; None is allowed only if `none` says what it means."""

    low: float
    high: float
    unit: str = ""
    none: str = ""

    def check(self, key: str, value: Any) -> float | None:
        if value is None and self.none:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _wrong(key, value, "a number")
        if not self.low <= value <= self.high:  # NaN is in no range
            raise SettingsError(f"{key} is {shown(value)}; it is {self.says()}.", key)
        return float(value)

    def says(self) -> str:
        said = f"between {self.low:g} and {self.high:g}" + (f" {self.unit}" if self.unit else "")
        return said + (f", or empty: {self.none}" if self.none else "")


@dataclass(frozen=True, slots=True)
class Text(Kind):
    """Any text, such as a shell command."""

    def check(self, key: str, value: Any) -> str:
        if not isinstance(value, str):
            raise _wrong(key, value, "a text")
        if len(value) > TEXT_MAX:
            raise SettingsError(f"{key} has {len(value)} characters; {TEXT_MAX} are the most.", key)
        return value

    def says(self) -> str:
        return "text"


@dataclass(frozen=True, slots=True)
class Choice(Kind):
    """One of a few words."""

    words: tuple[str, ...]

    def check(self, key: str, value: Any) -> str:
        if not isinstance(value, str) or value not in self.words:
            raise SettingsError(f"{key} is {shown(value)}; it is {self.says()}.", key)
        return str(value)

    def read(self, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    def says(self) -> str:
        return f"one of {', '.join(self.words)}" if len(self.words) > 1 else f"always {self.words[0]}"


@dataclass(frozen=True, slots=True)
class Words(Kind):
    """Any number of a few words."""

    words: tuple[str, ...]
    noun: str

    def check(self, key: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(word, str) for word in value):
            raise SettingsError(f"{key} is a list of {self.noun}.", key)
        if unknown := sorted(set(value) - set(self.words)):
            raise SettingsError(f"{key} holds unknown {self.noun}: {shown(', '.join(unknown))[1:-1]}.", key)
        return tuple(str(word) for word in value)

    def read(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [word.lower() if isinstance(word, str) else word for word in value]

    def plain(self, value: Any) -> list[str]:
        return list(value)

    def says(self) -> str:
        return f"some of {', '.join(self.words)}"


@dataclass(frozen=True, slots=True)
class Hosts(Text):
    """Names of hosts, separated by spaces."""

    def check(self, key: str, value: Any) -> str:
        text = super(Hosts, self).check(key, value)
        if wrong := next((word for word in text.split() if not HOST.fullmatch(word)), ""):
            raise SettingsError(f"{key} holds {shown(wrong)}; a host is {HOST_SAYS}.", key)
        return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class Branch(Text):
    """The name of a branch, or nothing."""

    def check(self, key: str, value: Any) -> str:
        name = super(Branch, self).check(key, value).strip()
        if name and not is_branch_name(name):
            raise _wrong(key, value, self.says())
        return name

    def says(self) -> str:
        return BRANCH_SAYS


@dataclass(frozen=True, slots=True)
class Document(Text):
    """The path of a Markdown file in the repository, or nothing."""

    def check(self, key: str, value: Any) -> str:
        path = super(Document, self).check(key, value).strip()
        parts = path.split("/")
        is_fine = len(path) <= PATH_MAX and path.isprintable() and not {"", ".", "..", ".git"} & set(parts)
        if path and not (is_fine and path.lower().endswith((".md", ".markdown"))):
            raise _wrong(key, value, self.says())
        return path

    def says(self) -> str:
        return "the path of a Markdown file in the repository, such as docs/SPEC.md"


@dataclass(frozen=True, slots=True)
class Texts(Kind):
    """A list of texts."""

    def check(self, key: str, value: Any) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise SettingsError(f"{key} is a list of texts.", key)
        return list(value)

    def says(self) -> str:
        return "a list of texts"


@dataclass(frozen=True, slots=True)
class PerSeverity(Kind):
    """A value for each severity; a severity that is left out keeps its default."""

    each: Kind
    what: str
    fixed: tuple[tuple[str, Any], ...] = ()  # what nobody may change

    def check(self, key: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise SettingsError(f"{key} maps each severity to {self.what}.", key)
        if set(value) != set(Severity):
            raise SettingsError(f"{key} names each of {_SEVERITIES} once.", key)
        checked = {
            severity.value: self.each.check(f"{key}.{severity}", value[severity]) for severity in Severity
        }
        for severity, only in self.fixed:
            if checked[severity] != only:
                raise SettingsError(f"{key}.{severity} is always {only}.", f"{key}.{severity}")
        return checked

    def read(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        names = {name: name.lower() if isinstance(name, str) else name for name in value}
        if len(set(names.values())) < len(names):
            return value
        return {names[name]: self.each.read(one) for name, one in value.items()}

    def plain(self, value: Any) -> dict[str, Any]:
        return {str(name): one for name, one in value.items()}

    def says(self) -> str:
        return f"for each severity {self.each.says()}"


@dataclass(frozen=True, slots=True)
class Ladders(Kind):
    """A ladder for each type of agent: models by the count of failures, {"0-1": "small", "2+": "escalate"}.

    The ranges start at 0 and have neither gap nor overlap; exactly one, the last, is open (LAD-1). They are
    stored in order.
    """

    def check(self, key: str, value: Any) -> dict[str, dict[str, str]]:
        if not isinstance(value, Mapping):
            raise SettingsError(f"{key} maps types of agent to their ladders.", key)
        if len(value) > STEPS_MAX:
            raise SettingsError(f"{key} names more than {STEPS_MAX} types of agent.", key)
        return {self._name(key, kind): self._ladder(f"{key}.{kind}", steps) for kind, steps in value.items()}

    def _name(self, key: str, kind: Any) -> str:
        if not isinstance(kind, str) or not kind.strip() or len(kind) > 60:
            raise SettingsError(f"{key} names a type of agent by a text of at most 60 characters.", key)
        return kind

    def _ladder(self, key: str, steps: Any) -> dict[str, str]:
        try:
            return {step.range: step.word for step in ladder.read(steps)}
        except ladder.BadLadder as error:
            where = f"{key}.{error.range}" if error.range else key
            raise SettingsError(f"{where} {error.fault}", where) from error

    def plain(self, value: Any) -> dict[str, dict[str, str]]:
        return {kind: dict(steps) for kind, steps in value.items()}

    def says(self) -> str:
        return "for each type of agent: ranges of failures, each with a model, the last one open"


# --- Entries ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setting:
    """What people are told about a setting. Its name and its default are those of the field."""

    kind: Kind
    group: str
    help: str
    path: str = ""  # its path in a file; empty: its own name


def setting(default: Any, kind: Kind, group: str, help: str, *, path: str = "") -> Any:  # noqa: A002
    """Return a dataclass field for a setting, with its default and everything that is said about it."""
    entry = {"setting": Setting(kind, group, help, path)}
    if isinstance(default, Mapping):
        make: Callable[[], Any] = lambda: kind.plain(default)  # noqa: E731  (each value has its own)
        return field(default_factory=make, metadata=entry)
    return field(default=default, metadata=entry)
