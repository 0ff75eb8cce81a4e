"""Core: modules and the like that what was run did not find, by the words of each language.

They explain a red run but excuse nothing: the work itself may have removed what is not found.
"""

from agents.reading.output import plain
from agents.reading.results import UNPRINTABLE
from tasks.text.counting import some_of
from tasks.text.regex import regex

SHOWN = 3
NAME = r"(?P<it>@?\w[\w:./@-]{0,100})"
ABSENT = (
    (
        "Perl module",
        regex(rf"Can't locate \S{{1,200}} in @INC \(you may need to install the {NAME} module\)"),
    ),
    ("Python module", regex(rf"ModuleNotFoundError: No module named '{NAME}'")),
    ("package", regex(rf"Error: Cannot find (?:module|package) '{NAME}'")),
    ("Ruby library", regex(rf"cannot load such file -- {NAME} \(LoadError\)")),
    ("browser of Playwright", regex(rf"Executable doesn't exist at /\S{{1,300}}/ms-playwright/{NAME}")),
)


def not_found(output: str) -> str:
    """Return a sentence about what was not found, the first few of one kind; empty if nothing says so."""
    text = plain(output)
    for what, pattern in ABSENT:
        names = list(dict.fromkeys(UNPRINTABLE.sub(" ", found["it"]) for found in pattern.finditer(text)))
        if names:
            plural = "" if len(names) == 1 else "s"
            return f"It did not find the {what}{plural} {some_of(names, SHOWN)}."
    return ""
