"""Core: reads lists of tasks in JSON, YAML, CSV or todo.txt, or with front matter in a file for each task."""

import csv
import json
import re
from collections.abc import Callable
from typing import Any

import yaml

from tasks.configuration.yaml_files import FaultyFile, compose
from tasks.text.counting import some_of
from tasks.text.regex import regex
from tasks.text.storable import read_json
from tasks.text.toml import read_toml
from tasks.todo import format
from tasks.todo.entries import CALLED, KEYS, NAMED, TEXTS, read_entries, spelled
from tasks.todo.format import Problem, TodoError
from tasks.todo.lenient import Reading

BEGINS = ('{"', "[{")
BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
PAIR = regex(r"(?:-[ ]+)?[\w-]{1,40}:(?:[ ].*)?")
TITLED = regex(r"\s*(?:-[ ]+)?(?:title|name|summary|description|id|slug)[ ]*:.*")
LIST_HEADS = {*KEYS["name"], *KEYS["status"], *KEYS["severity"], *TEXTS}  # beside a title, each shows a list
DELIMITERS = ",;\t"
FRONT_MATTER = regex(r"(?s)---[ \t]*\n(.*?\n)---[ \t]*(?:\n(.*))?")
TOML_FRONT_MATTER = regex(r"(?s)\+\+\+[ \t]*\n(.*?\n)\+\+\+[ \t]*(?:\n(.*))?")
TODO_TXT = regex(r"(x[ ]+(?=[0-9]{4}-))?(?:\(([A-Z])\)[ ]+)?(?:[0-9]{4}-[0-9]{2}-[0-9]{2}[ ]+){0,2}(\S.*)")
TODO_TXT_PAIR = regex(r"(?<!\S)([A-Za-z][\w-]{0,30}):(?!//)(\S+)")
TODO_TXT_END = regex(r"(?:(?:^|\s+)(?:[+@]\S+|[A-Za-z][\w-]{0,30}:(?!//)\S+))+$")
MARKED_UP = regex(r"[#>|*+-][ \t]|[-*+]\[|[0-9]{1,9}[.)][ ]|[-=~*]{3}|[\[{<]")
LETTERS = {"A": "high", "B": "medium"}  # as of Org's cookies
YAML_DEEP = 60
HEADS_MAX = 100_000  # characters of the names of columns
YAML_MAX = 1024 * 1024  # characters, of which its reader takes three seconds
FOLDER = "the files of a folder"  # the key below which each file has its entry, or null if it has none
TOO_DEEP = "This {} is nested too deeply, or holds a number that is too long."


def read_list(text: str) -> Reading | None:
    """Return the lists of a file in one of `READERS` in the form that `parse` reads.

    None if it is no such file. Raises TodoError if it is one, but cannot be read.
    """
    text = text.removeprefix(BOM)
    for notation, read in READERS.items():
        try:
            found = read(text)
            if found is not None:
                return read_entries(*_told(found, notation))
        except TodoError:
            raise
        except (RecursionError, ValueError) as error:  # the latter for a number of thousands of digits
            raise TodoError([Problem(0, "", TOO_DEEP.format(notation))]) from error
    return None


def _told(found: Any, notation: str) -> tuple[Any, str]:
    """Return the lists in what a file holds, and what is said of it."""
    files = found.get(FOLDER) if isinstance(found, dict) else None
    if not isinstance(files, dict):
        return found, f"The file is {notation}"
    others = [name for name, entry in files.items() if entry is None]
    left_out = f" (left out, without front matter: {some_of(others, NAMED)})" if others else ""
    return [entry for entry in files.values() if entry], f"The folder has a file for each task{left_out}"


def is_list(text: str) -> bool:
    """Whether the text is in one of these notations, or was meant to be."""
    try:
        return any(read(text.removeprefix(BOM)) is not None for read in READERS.values())
    except (RecursionError, ValueError):
        return True


def _refuse(text: str, line: int, reason: str) -> TodoError:
    return TodoError([Problem.at(format.split_lines(text), line, reason)])


# --- JSON -------------------------------------------------------------------------------------------------


def _json(text: str) -> Any:
    if "".join(text[:100].split())[:2] not in BEGINS:
        return None
    try:
        return read_json(_joined(text))
    except json.JSONDecodeError as error:
        reason = f"This is no valid JSON: {error.msg} at column {error.colno}."
        raise _refuse(text, error.lineno, reason) from error


def _joined(text: str) -> str:
    """Return JSON in which each line is an object as one list, with the same lines."""
    lines = [line.strip() for line in text.rstrip().split("\n")]
    if len(lines) > 1 and all(not line or line[0] + line[-1] == "{}" for line in lines):
        return "[" + "\n".join(line and f"{line}," for line in lines).removesuffix(",") + "]"
    return text


# --- YAML -------------------------------------------------------------------------------------------------


def _yaml(text: str) -> Any:
    lines = [line for line in format.split_lines(text.removeprefix("---\n")) if line.strip()]
    told = [line for line in lines if not line.startswith("#")]
    is_other = any(
        format.HEADING.fullmatch(line) or format.TASK.fullmatch(line) or line == "---" for line in lines
    )
    if is_other or not told or not PAIR.fullmatch(told[0]) or not any(map(TITLED.fullmatch, told)):
        return None
    return yaml_value(text)


def yaml_value(text: str) -> Any:
    """Return what a YAML text holds, with dates as texts. Raises TodoError for a text that is no YAML."""
    try:
        root = compose(text, YAML_MAX, is_plain=True)
    except FaultyFile as error:
        fault = error.faults[0]
        raise _refuse(text, fault.line, f"This cannot be read as YAML: {fault.message}") from error
    return _value(root, YAML_DEEP)


def _value(node: yaml.Node | None, deep: int) -> Any:
    if not deep:
        raise RecursionError
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _value(value, deep - 1) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_value(each, deep - 1) for each in node.value]
    kind = node.tag.rpartition(":")[2] if node else "null"
    if kind == "null":
        return None
    text = str(node.value) if node else ""
    if kind == "bool":
        return text.lower() in ("true", "yes", "on")
    return int(text) if kind == "int" and text.isdecimal() else text


# --- CSV --------------------------------------------------------------------------------------------------


def _csv(text: str) -> list[dict[str, Any]] | None:
    first = text[:HEADS_MAX].partition("\n")[0]
    for delimiter in DELIMITERS:
        heads = next(csv.reader([first], delimiter=delimiter), [])
        known = {spelled(head) for head in heads}
        if known.intersection(("title", *CALLED)) and known & LIST_HEADS - {"description"}:
            break
    else:
        return None
    try:
        rows = list(csv.reader(text.splitlines(keepends=True)[1:], delimiter=delimiter))
    except csv.Error as error:
        raise _refuse(text, 1, f"This cannot be read as CSV: {error}.") from error
    return [_entry(heads, row) for row in rows if any(cell.strip() for cell in row)]


def _entry(heads: list[str], row: list[str]) -> dict[str, Any]:
    """Return a row as an entry; the cells of columns with one name are a list."""
    entry: dict[str, Any] = {}
    for head, cell in zip(heads, row, strict=False):
        if cell.strip() and head in entry:
            entry[head] = [*([entry[head]] if isinstance(entry[head], str) else entry[head]), cell]
        elif cell.strip():
            entry[head] = cell
    return entry


# --- todo.txt ---------------------------------------------------------------------------------------------


def _todo_txt(text: str) -> list[dict[str, Any]] | None:
    """Return the tasks of a todo.txt: one in each line, of which some have a priority or are done."""
    lines = [line.strip() for line in format.split_lines(text) if line.strip()]
    read = [TODO_TXT.fullmatch(line) for line in lines]
    if any(map(MARKED_UP.match, lines)) or not any(line and (line[1] or line[2]) for line in read):
        return None
    return [_todo_txt_entry(line) for line in filter(None, read)]


def _todo_txt_entry(line: re.Match[str]) -> dict[str, Any]:
    told: dict[str, Any] = {"done": bool(line[1]), "tags": re.findall(r"(?<!\S)[+@](\S+)", line[3])}
    told |= {key: value for key, value in TODO_TXT_PAIR.findall(line[3]) if key not in told}
    level = line[2] or told.pop("pri", "")
    said = TODO_TXT_PAIR.sub("", TODO_TXT_END.sub("", line[3])).strip()
    if level:
        told["priority"] = LETTERS.get(level.upper(), "low")
    return told | {"title": said or line[3]}


READERS: dict[str, Callable[[str], Any]] = {"JSON": _json, "YAML": _yaml, "CSV": _csv, "todo.txt": _todo_txt}


# --- A file for each task ---------------------------------------------------------------------------------


def entry_of(name: str, text: str) -> dict[str, Any] | None:
    """Return the entry that a file with front matter is; None if it has none.

    `name` is the file's, its title if nothing else is. Raises TodoError if its front matter cannot be read.
    """
    text = text.removeprefix(BOM).replace("\r\n", "\n")
    if match := TOML_FRONT_MATTER.fullmatch(text):
        told: Any = _toml_value(text, match[1])
    else:
        match = FRONT_MATTER.fullmatch(text)
        told = yaml_value(match[1]) if match else None
    if match is None or not isinstance(told, dict):
        return None
    body = (match[2] or "").strip()
    top = format.TOP_HEADING.match(body)
    given = {spelled(key) for key in told}
    if not given.intersection(("title", "name", "summary")):
        told["title"] = top[1] if top else name
    return told | {"body": body}


def _toml_value(text: str, front: str) -> Any:
    try:
        return json.loads(json.dumps(read_toml(front), default=str))
    except ValueError as error:
        raise _refuse(text, 1, f"This cannot be read as TOML: {error}.") from error
