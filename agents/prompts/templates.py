"""Fills the texts of prompts, including those that a project's maintainers wrote.

A maintainer's text sees plain words and nothing else: no rows, no settings, no files. It may use few tags and
filters and no loops; its variables are checked when it is saved, and a budget of characters bounds the rest.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.template import Context, Engine, Template, TemplateSyntaxError
from django.template.base import DebugLexer, FilterExpression, Parser, TokenType

from tasks.text.fences import open_fence

TEXT_MAX = 32 * 1024  # bytes
BUDGET = 1024 * 1024  # characters that a text may read while it is filled
DEPTH_MAX = 20  # levels of nested tags
TAGS = frozenset({"if", "elif", "else", "endif", "comment", "endcomment"})
FILTERS = frozenset(
    {"default", "upper", "lower", "title", "capfirst", "length", "first", "last", "yesno", "truncatechars"}
)
OPERATORS = frozenset({"and", "or", "not", "in", "is", "==", "!=", "<", ">", "<=", ">="})

# --- The variables that a text may use ---

COMMON = {
    "ref", "title", "round", "stage", "stage_about", "model", "name", "instructions", "body", "source",
    "source_name", "guide", "guide_name",
}  # fmt: skip
OPINION = COMMON | {
    "conflict", "severity", "sha", "place", "item", "objection", "code", "diff", "diff_of", "evidence",
}  # fmt: skip
SHAPES = {
    "coder": COMMON | {"prepare", "build", "test", "docs_only", "known_red", "red_tests_pass"},
    "reviewer": COMMON
    | {
        "sha", "again", "focus", "is_verified", "is_green", "red_tests", "seconds", "answers", "response",
        "diff", "must_settle",
    },
    "engineer": COMMON | {"brief", "gaps", "other_gaps", "documents", "last_review"},
    "examiner": COMMON
    | {
        "sha", "focus", "final", "brief", "gaps", "other_gaps", "proposal", "answers", "earlier_findings",
        "checks", "diff",
    },
    "judge": OPINION,
    "mediator": OPINION,
}  # fmt: skip
# Without these variables a run could not know what it is about.
NEEDED = {
    "coder": ("title", "body", "source"),
    "reviewer": ("title", "body", "diff"),
    "engineer": ("title", "gaps"),
    "examiner": ("title", "gaps", "proposal"),
    "judge": ("item", "objection"),
    "mediator": ("item", "objection"),
}


class TooMuch(Exception):
    """The text would read or write more than its budget allows."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in a text, with its line."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


# --- The program's own texts ------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _own_engine() -> Engine:
    return Engine(dirs=[settings.BASE_DIR / "templates" / "prompts"], autoescape=False)


@lru_cache(maxsize=32)
def _own(name: str) -> Template:
    return _own_engine().get_template(name)


def own_source(name: str) -> str:
    """Return the source of one of the program's own texts, with its includes expanded."""
    source = str(_own(f"{name}.md").source)
    return re.sub(r'{% include "([a-z_]+)\.md" %}', lambda found: own_source(found[1]).rstrip(), source)


def fill_own(name: str, data: Mapping[str, Any]) -> str:
    """Return one of the program's own texts, filled with the data."""
    return str(_own(f"{name}.md").render(Context(dict(data), autoescape=False)))


# --- Texts of projects ------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _engine() -> Engine:
    """Return an engine without folders, file loaders, libraries and context processors."""
    return Engine(
        loaders=[("django.template.loaders.locmem.Loader", {})], autoescape=False, string_if_invalid=""
    )


class Metered(Context):
    """A context that counts what is read, so that even a text that was never checked comes to an end."""

    def __init__(self, data: Mapping[str, Any], size: int) -> None:
        self.left, self.size = BUDGET, size
        super().__init__(dict(data), autoescape=False)

    def _spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise TooMuch("The text repeats itself more often than a prompt may.")

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        self._spend(_size(value))
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        self._spend(self.size + _size(value))
        super().__setitem__(key, value)


def _size(value: Any) -> int:
    match value:
        case str():
            return len(value) + 1
        case dict():
            return sum(map(_size, value.values())) + 1
        case list():
            return len(value) + 1
    return 1


def fill(text: str, data: Mapping[str, Any]) -> str:
    """Return a project's own text, filled with the data.

    Raises TooMuch, and TemplateSyntaxError for a text that was never checked.
    """
    return str(_engine().from_string(text).render(Metered(data, len(text))))


def check(name: str, text: str) -> list[Fault]:
    """Return every fault of a text that is to replace the program's; empty if it can be used."""
    if name not in SHAPES:
        return [Fault(1, f"{name!r} is no prompt; there are {', '.join(SHAPES)}.")]
    if (size := len(text.encode("utf-8", "replace"))) > TEXT_MAX:
        return [Fault(1, f"it has {size} bytes; {TEXT_MAX} are the most.")]
    if not text.strip():
        return [Fault(1, "it is empty.")]
    used: set[str] = set()
    faults = list(_faults(text, SHAPES[name], used)) or _syntax(text)
    if not faults and (fence := open_fence(text)):
        faults.append(Fault(text.count("\n") + 1, f"a fence of {fence[:10]} is never closed."))
    if not faults and (missing := [word for word in NEEDED[name] if word not in used]):
        names = ", ".join(f"{{{{ {word} }}}}" for word in missing)
        faults.append(Fault(1, f"it never says {names}; without it nobody knows what to do."))
    return faults


def _syntax(text: str) -> list[Fault]:
    """Return the fault that shows only in the whole text, such as a tag that is never closed."""
    try:
        _engine().from_string(text)
    except (TemplateSyntaxError, RecursionError) as error:
        token = getattr(error, "token", None)
        return [Fault(getattr(token, "lineno", None) or 1, f"{error}".rstrip(".") + ".")]
    return []


def _faults(text: str, shape: set[str], used: set[str]) -> Iterator[Fault]:
    """Yield the tags, filters and variables that are not allowed, in the order of the text."""
    in_comment, depth = False, 0
    for token in DebugLexer(text).tokenize():
        word, line = (token.contents.split() or [""])[0], token.lineno or 1
        is_tag = token.token_type is TokenType.BLOCK
        if in_comment:
            in_comment = not (is_tag and word == "endcomment")
        elif token.token_type is TokenType.VAR:
            yield from _in_expression(token.contents, line, shape, used)
        elif is_tag and word not in TAGS:
            yield Fault(
                line, f"the tag {word[:40]!r} is not allowed; allowed are if, elif, else and comment."
            )
        elif is_tag:
            in_comment, depth = word == "comment", depth + {"if": 1, "endif": -1}.get(word, 0)
            if depth > DEPTH_MAX:
                yield Fault(line, f"more than {DEPTH_MAX} tags stand within each other.")
                return
            for part in token.split_contents()[1:] if word in {"if", "elif"} else ():
                if part not in OPERATORS:
                    yield from _in_expression(part, line, shape, used)


def _in_expression(expression: str, line: int, shape: set[str], used: set[str]) -> Iterator[Fault]:
    """Yield the faults of one variable with its filters, and add the names it uses to `used`."""
    plain = re.sub(r"\"[^\"]*\"|'[^']*'", "''", expression)
    if bad := [name for name in re.findall(r"\|\s*([A-Za-z_]\w*)", plain) if name not in FILTERS]:
        allowed = ", ".join(sorted(FILTERS))
        yield Fault(line, f"the filter {bad[0][:40]!r} is not allowed; allowed are {allowed}.")
        return
    try:
        parsed = FilterExpression(expression.strip(), Parser([], builtins=_engine().template_builtins))
    except TemplateSyntaxError as error:
        yield Fault(line, f"{error}".rstrip(".") + ".")
        return
    arguments = [value for _, args in parsed.filters for is_variable, value in args if is_variable]
    for variable in (parsed.var, *arguments):
        lookups = getattr(variable, "lookups", None)
        if lookups is None:
            continue  # a literal
        used.add(lookups[0])
        if len(lookups) > 1 or lookups[0] not in shape:
            known = ", ".join(sorted(shape))
            yield Fault(line, f"there is no variable {'.'.join(lookups)[:80]!r}; there are {known}.")


def hash_of(name: str, own: str | None = None) -> str:
    """Return the hash of the texts that a prompt is filled from.

    These are the program's parts, and between them the project's own text or else the program's.
    """
    middle = own_source(name) if own is None else own
    frames = [own_source(each) for each in (f"{name}_first", f"{name}_last") if _has(each)]
    return sha256("\0".join([middle, *frames]).encode("utf-8", "replace")).hexdigest()


def _has(name: str) -> bool:
    return (settings.BASE_DIR / "templates" / "prompts" / f"{name}.md").exists()
