"""What a section or a table of a response is for, as its heading says (ANS-1)."""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from disputes.protocol.responses.answer_kinds import AnswerKind, is_answer, stated_kind
from disputes.protocol.text.documents import STATED, Line, cells
from tasks.text.regex import regex


class Role(StrEnum):
    """What a section does with the findings that it names."""

    PLAIN = "plain"
    RESPONSE = "response"  # it tells what was done about them
    RECAP = "recap"  # it repeats what was asked
    OPEN = "open"  # it lists what is still to do


NOUN = (
    r"(?:issues?|findings?|points?|items?|concerns?|comments?|feedback|suggestions?|requests?|notes?|reviews?"
    r"|reviewer)"
)


def _about(words: str) -> str:
    """Return a pattern for these words in a heading about findings: "Deferred issues"."""
    return (
        rf"^(?:{words})(?:$| (?:{NOUN}|to|until|till|for|from|in|this|since|made|after|based|history|log)\b)"
        rf"|\b{NOUN} (?:\w+ )?(?:{words})\b|\b(?:{words}) (?:\w+ ){{0,2}}{NOUN}\b"
    )


# The first one that fits counts. The kind holds for entries that state none themselves.
ROLES: tuple[tuple[re.Pattern[str], Role, AnswerKind | None], ...] = tuple(
    (regex(pattern), role, kind)
    for pattern, role, kind in [
        (_about("(?:not|un) ?(?:yet |being )?(?:addressed|fixed|done|implemented|changed)|won t fix|wontfix"
                "|will not fix|dropped|discarded"), Role.RESPONSE, AnswerKind.DISCARDED),
        (_about("deferred|postponed|out of scope|backlog|future work"), Role.RESPONSE, AnswerKind.DEFERRED),
        (_about("partial(?:ly)?(?: addressed| fixed| resolved| done)|partly(?: addressed| fixed| done)?"),
         Role.RESPONSE, AnswerKind.PARTLY),
        (_about("disagree\\w*|declined|disputed|rejected|contested|challenged|push(?:ed|ing)? back"),
         Role.RESPONSE, AnswerKind.DECLINED),
        (_about("moot(?:ed)?|no longer (?:applicable|relevant)|obsolete"), Role.RESPONSE, AnswerKind.MOOTED),
        (_about("accepted as is|as is|no changes? (?:needed|required|made)|by design|known limitations?"),
         Role.RESPONSE, AnswerKind.ACCEPTED_AS_IS),
        (_about("(?:user|human) decisions?(?: applied)?"), Role.RESPONSE, AnswerKind.USER_DECISION),
        (_about("(?:still )?open|(?:needs? )?(?:more )?(?:clarification|information|input)s?(?: needed)?"
                "|questions?|unclear|blocked|remaining|outstanding|unresolved|unanswered|pending|to ?do"
                "|next steps?"
                "|new|new gaps?(?: \\w+)?|(?:to|must) be (?:addressed|fixed)|to (?:address|fix|resolve)"),
         Role.OPEN, None),
        (_about("(?:(?:summary|list|overview) of )?(?:all )?(?:the )?(?:changes?|revisions?|fixes|updates)"
                "|revision history|change ?log|what (?:has )?changed|respon(?:se|ses|ding)|repl(?:y|ies)"
                "|answers?|address(?:ed|es|ing)?|resolved|resolutions|fixed|closed|incorporated|disposition"),
         Role.RESPONSE, None),
        (_about("background|context|recap|references?|related|see also|inputs?|raised|glossary|prior art"
                "|dependenc(?:y|ies)") + r"|\bproblem statement\b|\bwhat the reviewer\b", Role.RECAP, None),
    ]
)  # fmt: skip
# Columns that only describe a finding. A table with no other columns answers none.
DESCRIBING = frozenset(
    ["id", "ids", "#", "no", "nr", "issue", "issues", "finding", "findings", "concern", "concerns",
     "item", "items", "point", "points", "comment", "comments", "request", "topic",
     "problem", "question", "title", "name", "summary", "description", "severity", "priority", "impact",
     "risk", "gap", "gaps", "category", "type", "kind", "owner", "assignee", "round", "source",
     "reviewer", "raised", "by", "date", "count", "quote", "suggestion", "recommendation", "depends",
     "on", "related", "to", "blocks", "blocked", "location", "file", "line", "lines"]
)  # fmt: skip
# A table with one of these columns says what was done; its ids may be in any cell.
TELLING = regex(
    r"\b(?:version|rev|revision|revisions|chang\w+|resol\w+|respon\w+|repl(?:y|ies)|answers?|fix(?:es|ed)?|address\w*"
    r"|actions?|dispositions?|update[sd]?|how|outcome|status)\b"
)


@lru_cache(maxsize=256)
def role_of(heading: str) -> tuple[Role, AnswerKind | None]:
    """Return what a section with this heading does, and the kind of its entries that state none."""
    plain = " ".join(re.findall(r"[a-z]+", re.sub(r"\(?\bissue-\S*", " ", heading.lower())))
    for pattern, role, kind in ROLES:
        if pattern.search(plain):
            return role, kind
    return (Role.RESPONSE, stated_kind(heading)) if is_answer(heading) else (Role.PLAIN, None)


def row_cells(row: str) -> tuple[str, ...]:
    """Return the cells of a table row, with or without bars around it."""
    return cells(row if is_row(row) else f"|{row.strip()}")


SEPARATOR = regex(r"[\s|:\-]+")


def is_separator(text: str) -> bool:
    """Whether a line separates the header of a table from its rows."""
    return "-" in text and "|" in text and SEPARATOR.fullmatch(text) is not None


def is_row(text: str) -> bool:
    """Whether a line begins like the row of a table."""
    return text.lstrip(" \t")[:1] == "|"


@dataclass(frozen=True, slots=True)
class LineContext:
    """The context of a line: the purpose of its section, and the header of its table."""

    role: Role = Role.PLAIN
    kind: AnswerKind | None = None
    head: tuple[str, ...] = ()  # the header cells of the table; empty outside a table or if it has no header

    @property
    def describes(self) -> bool:
        """Whether all columns of the table after the first only describe findings."""
        return bool(self.head) and all(
            word in DESCRIBING for cell in self.head[1:] for word in re.findall(r"[a-z#]+", cell.lower())
        )

    def is_describing(self, column: int) -> bool:
        """Whether a column only describes findings, such as their titles, severities or places."""
        words = re.findall(r"[a-z#]+", self.head[column].lower()) if column < len(self.head) else []
        return bool(words) and all(word in DESCRIBING for word in words)

    @property
    def tells(self) -> bool:
        """Whether the table says what was done."""
        return any(TELLING.search(cell.lower()) for cell in self.head)


# A line that ends with a colon serves as the heading of the list below it: "Issues addressed:".
LABEL_LEVEL = 7
OF_A_LIST = "-*+ \t|0123456789"  # first characters in a list or a table; a blank line ends neither
BOLD = frozenset({"**", "__"})


class SectionTracker:
    """A reader that follows a document line by line and knows the context of the current one."""

    def __init__(self) -> None:
        self._headings: list[tuple[int, str]] = []
        self._head: tuple[str, ...] = ()
        self._before = ""

    def follow(self, line: Line) -> None:
        """Move on to the next line of the document."""
        text = line.text
        if line.mode is not STATED or "|" not in text:
            self._before, self._head = "", ()
        elif is_separator(text):
            self._head = row_cells(self._before) if self._before else ()
        else:
            self._before = text
        if (heading := line.heading) is not None:
            self._open(*heading)
        elif line.mode is STATED and (text[:1] not in OF_A_LIST or text[:2] in BOLD):
            self._close(LABEL_LEVEL)
            if text.rstrip(" *_")[-1:] == ":":
                self._open(LABEL_LEVEL, text.strip(" *_:"))

    def _open(self, level: int, words: str) -> None:
        self._close(level)
        self._headings.append((level, words))

    def _close(self, level: int) -> None:
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()

    @property
    def place(self) -> LineContext:
        """The context of the current line; the nearest heading that states a purpose counts."""
        for _, words in reversed(self._headings):
            role, kind = role_of(words[:200])
            if role is not Role.PLAIN:
                return LineContext(role, kind, self._head)
        return LineContext(head=self._head)
