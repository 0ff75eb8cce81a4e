"""The first line of a finding as read: its kind of line, and what it says (FND-1)."""

import re
from dataclasses import dataclass
from enum import StrEnum

from tasks.text.regex import regex

LETTERS = regex(r"[^\W\d_]")
COUNT = regex(r"\d+(?:/\d+)?(?: (?:issues?|findings?|total))?")
EMPTY = regex(
    r"\W*(?:none|n/a|nil|nothing"
    r"|(?:no|zero)[ -](?:\w+ ){0,4}(?:issues?|concerns?|problems?|findings?|gaps?|blockers?))\b"
    r"(?: (?:within|identified|found|noted|remaining|critical|at this time|to report|detected|observed)\b"
    r"|\W*$|[.,;:(*-])",
    re.IGNORECASE,
)


class Shape(StrEnum):
    """The kind of line that a finding begins with."""

    HEADING = "heading"
    BOLD = "bold-para"
    ITEM = "item"
    PLAIN = "plain"
    TAG = "tag"
    RECORD = "record"  # labelled lines without a title


@dataclass(slots=True)
class Start:
    """A line that may begin a finding; whether it does depends on what surrounds it.

    The readers beside this module fill it in step by step; nothing changes it after that.
    """

    # The kind of line
    shape: Shape
    indent: int = 0
    level: int = 0  # the level of a heading
    numbered: bool = False  # whether its list marker is a number
    numbering: str = ""  # the number inside its heading or bold words
    bold: bool = False
    tick: str = ""  # "x" or " "
    struck: bool = False
    # What the line says
    title: str = ""
    words: tuple[str, ...] = ()  # the severities, as written
    trailing: bool = False  # whether one of them is at the end of the line
    leading: bool = False  # whether one of them, or a sign for one, is at the beginning
    rest: str = ""  # the text after the bold words
    prose: bool = False  # whether it begins a paragraph in sentences
    loose: bool = False  # whether such a paragraph counts only below a request
    closed: bool = False  # whether a colon or a similar mark follows the bold words or the id
    field: str = ""  # the part of a finding that the line begins instead of a finding
    labelled: bool = False  # **Issue:** text
    tag: str = ""
    # How the line names the finding
    coded: bool = False  # whether it has an id: codes or a native one
    codes: tuple[str, ...] = ()
    native: str = ""
    own: bool = False  # whether the native id is the reviewer's own and may be no id at all: SEC-01, F1
    note: str = ""  # what is in parentheses after the id: NEW
    bracket: bool = False

    @property
    def all_codes(self) -> tuple[str, ...]:
        """The codes that the line names, or else its native id."""
        return self.codes or ((self.native.upper(),) if self.native else ())

    @property
    def whole(self) -> bool:
        """Whether the bold words are the whole line."""
        return self.bold and not self.rest

    @property
    def empty(self) -> bool:
        """Whether the line says that there is nothing to raise (FND-3), or has no letters in its title."""
        if not self.title[:1].isalpha() and not LETTERS.search(self.title):
            return True
        return EMPTY.match(f"{self.title[:80]} {self.rest[:80]}") is not None
