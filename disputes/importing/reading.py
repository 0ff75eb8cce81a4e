"""How a session's documents were understood, for people to check before rows are written. No Django."""

import json
from dataclasses import dataclass, field
from hashlib import sha256

from disputes.importing.folder import Document, SessionFolder, Trouble
from disputes.importing.plan import Plan, ReviewDocument, Work
from disputes.protocol.text.quotes import one_line
from tasks.text.counting import counted

WORDS_MAX = 160


@dataclass(frozen=True, slots=True)
class Item:
    """One finding or answer as it was understood; `line` is its line in the document."""

    number: int
    code: str
    word: str  # a finding's severity, or the kind of an answer
    place: str
    text: str
    line: int

    def __str__(self) -> str:
        place = f" at {self.place}" if self.place else ""
        named = f"{self.code or 'without a code'}, {self.word}{place} (line {self.line})"
        return f"{self.number}. {named}: {self.text}"


@dataclass(slots=True)
class Paper:
    """One document: what it says as a whole, its items, and the lines that were not understood."""

    path: str
    says: str
    items: list[Item] = field(default_factory=list)
    not_understood: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Reading:
    """A session as it was read; `digest` identifies these documents together with this reading of them."""

    name: str
    papers: list[Paper]
    troubles: list[str]
    blocked: bool  # a file cannot be read, so nothing of the session is imported
    digest: str = ""

    def lines(self) -> list[str]:
        """Return the reading as lines of text."""
        found = list(self.troubles)
        for paper in self.papers:
            found.append(f"{paper.path}: {paper.says}")
            found += [f"  {item}" for item in paper.items]
            found += [f"  Not understood, {line}" for line in paper.not_understood]
        return found


def reading_of(session: SessionFolder, plan: Plan) -> Reading:
    """Return how the plan understands the session's documents."""
    papers = {step.document.path: _paper(step) for step in plan.steps}
    troubles = [f"{each.path}: passed over, {each.reason}." for each in session.passed_over]
    troubles += [f"{each.path}: cannot be read, {each.reason}." for each in session.unreadable]
    for note in plan.notes:
        path, line = _place(note, papers)
        if path in papers:
            papers[path].not_understood.append(f"line {line}: {note.reason}." if line else f"{note.reason}.")
        else:
            troubles.append(f"{note.path}: {note.reason}.")
    if plan.decisions:
        troubles.append(f"decisions.md: {counted(len(plan.decisions.decisions), 'ruling')}.")
    reading = Reading(session.name, list(papers.values()), troubles, bool(session.unreadable))
    documents = [*session.documents, *([session.decisions] if session.decisions else [])]
    reading.digest = _digest(session, documents, reading)
    return reading


def _place(note: Trouble, papers: dict[str, Paper]) -> tuple[str, str]:
    path, _, line = note.path.rpartition(":")
    return (path, line) if path in papers else (note.path, "")


def _paper(step: Work | ReviewDocument) -> Paper:
    if isinstance(step, Work):
        gaps = ", ".join(gap for gap in step.sections if gap) or "the session as a whole"
        items = [
            Item(number, answer.code, str(answer.kind), "", one_line(answer.text, WORDS_MAX), answer.line)
            for number, answer in enumerate(step.response.answers, start=1)
        ]
        return Paper(step.document.path, f"works on {gaps}; {counted(len(items), 'answer')}.", items)
    items = [
        Item(
            number, found.code, str(found.severity or "no severity"), one_line(found.location, WORDS_MAX),
            one_line(found.title, WORDS_MAX), found.line,
        )
        for number, (_, found) in enumerate(step.findings, start=1)
    ]  # fmt: skip
    verdict = step.read.verdict.value.replace("_", " ").lower() if step.read.verdict else "no verdict"
    return Paper(step.document.path, f"{verdict}; {counted(len(items), 'finding')}.", items)


def _digest(session: SessionFolder, documents: list[Document], reading: Reading) -> str:
    known = [session.name, [(each.path, each.sha256) for each in documents], reading.lines()]
    return sha256(json.dumps(known).encode()).hexdigest()
