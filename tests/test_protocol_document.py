"""docs/protocol.md and the code name the same rules, in both directions."""

import ast
import importlib
import re
import subprocess
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

from tests.sources import ROOT, nodes

DOCUMENT = ROOT / "docs/protocol.md"
RULE = re.compile(r"\*\*(?P<id>[A-Z]{2,4}-[1-9]\d?)\*\* .*`(?P<module>[\w.]+):(?P<name>[\w.]+)`", re.DOTALL)
TEXTS = {".py", ".html", ".txt", ".md", ".sh", ".js"}
# Ids that people or reviewers write, and names of things; the letters of a rule are none of these.
NO_RULES = {"CASE", "COND", "GAP", "HIGH", "ISO", "LOW", "MED", "NIT", "RFC", "SEC", "SHA", "UTF"}
# These read and write places in documents of others, which are named with a paragraph sign.
READ_PARAGRAPHS = {
    "disputes/web/dispute/quote.py", "disputes/protocol/text/locations.py",
    "disputes/protocol/silence/substance.py", "disputes/protocol/rulings/amendments.py",
}  # fmt: skip
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def rules() -> dict[str, tuple[str, str]]:
    """Of each rule of the document the module and the name that carry it."""
    blocks = [block for block in DOCUMENT.read_text().split("\n\n") if block.startswith("**")]
    found = [(block, RULE.fullmatch(block.strip())) for block in blocks]
    malformed = [block for block, match in found if match is None]
    assert not malformed, f"A rule is **ID** text `module:function`: {malformed}"
    ids = [match["id"] for _, match in found if match]
    assert len(ids) == len(set(ids)), "A rule is defined once."
    return {match["id"]: (match["module"], match["name"]) for _, match in found if match}


def ids_in(text: str) -> Iterator[str]:
    """The ids of rules that a text names; `DEC-2 to DEC-4` names three."""
    for letters, first, last in re.findall(
        r"\b([A-Z]{2,4})-([1-9]\d?)(?![\w-])(?: to \1-([1-9]\d?)\b)?", text
    ):
        if letters not in NO_RULES:
            yield from (f"{letters}-{number}" for number in range(int(first), int(last or first) + 1))


def product() -> Iterator[tuple[str, str]]:
    """Path and text of all code, templates, messages and documents; tests and what others wrote left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for path in listed.stdout.splitlines():
        if path.startswith("tests/") or Path(path).suffix not in TEXTS or path == "CHANGELOG.md":
            continue
        if (ROOT / path).is_file():
            yield path, (ROOT / path).read_text(encoding="utf-8")


def test_every_file_that_a_document_names_is_there() -> None:
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    named = re.compile(
        r"`((?:tasks|disputes|agents|steroidsweb|templates|tests|bench|docs|examples)/[\w./-]+)`"
    )
    missing = {
        f"{document.name}: {name}"
        for document in documents
        for name in named.findall(document.read_text(encoding="utf-8"))
        if not (ROOT / name).exists()
    }
    assert missing == set()


def stated(path: str, text: str) -> str:
    """The comments and docstrings of code, without its other strings; a document as it is."""
    if not path.endswith(".py"):
        return text
    docs = [ast.get_docstring(node) for node in nodes(ROOT / path) if isinstance(node, DOCUMENTED)]
    comments = re.findall(r"(?:^|\s)# .*", text)
    return "\n".join([*filter(None, docs), *comments])


def test_every_rule_that_is_named_is_defined_and_carried_by_what_the_document_says() -> None:
    defined = rules()

    for path, text in product():
        unknown = sorted(set(ids_in(stated(path, text))) - defined.keys())
        assert not unknown, f"{path} names rules that docs/protocol.md does not define: {unknown}"
    for rule, (module, name) in defined.items():
        home = importlib.import_module(module)
        carrier = reduce(getattr, name.split("."), home)
        told = f"{home.__doc__}\n{carrier.__doc__}"
        assert rule in set(ids_in(told)), f"The docstring of {module}:{name} does not name {rule}."


def test_there_is_one_notation_for_rules() -> None:
    defined = rules().keys()

    for path, text in product():
        signs = re.findall(r".{0,30}§.{0,10}", text) if path not in READ_PARAGRAPHS else []
        assert not signs, f"{path} cites a paragraph: {signs}"
        papers = re.findall(r"\b(?:MODELS|PROTOCOL|DESIGN) (?:§|S?\d|risk)", text)
        assert not papers, f"{path} cites a paper that is not in the repository: {papers}"
        # A string that is an id and nothing else is a value, which nobody is shown.
        told = [line for line in messages(path, text) if line not in defined and set(ids_in(line)) & defined]
        assert not told, f"{path} tells people rules by their ids, not in words: {told}"


def messages(path: str, text: str) -> list[str]:
    """What people may be told: the strings of code that are no docstrings, and templates."""
    if not path.endswith(".py"):
        return [text] if path.startswith("templates/") else []
    docs = {
        id(node.body[0].value)
        for node in nodes(ROOT / path)
        if isinstance(node, DOCUMENTED) and node.body and isinstance(node.body[0], ast.Expr)
    }
    strings = (node for node in nodes(ROOT / path) if isinstance(node, ast.Constant) and id(node) not in docs)
    return [node.value for node in strings if isinstance(node.value, str)]
