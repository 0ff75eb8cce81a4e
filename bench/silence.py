"""Print what the calibrated silence check finds in real review rounds, beside the literal rule.

    python bench/silence.py

The rounds are beside the project; if they are absent, this says so.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from disputes.protocol.reviews.review import Verdict, read_review  # noqa: E402
from disputes.protocol.rounds.check import watched_findings  # noqa: E402
from disputes.protocol.rounds.sessions import ResponseTurn, ReviewTurn, Session, Turn, walk_session  # noqa: E402
from disputes.protocol.rounds.subjects import subject_of  # noqa: E402

CORPUS = ROOT.parent / "shared" / "corpus"
UNANSWERED = {"not_referenced", "not_addressed"}
GRAVE = {"HIGH", "CRITICAL"}
DOCUMENT = re.compile(r"round_(\d+)/(engineer|reviewer)(?:_v(\d+))?\.md$")


def main() -> int:
    if not (CORPUS / "labels.json").is_file():
        print(f"No rounds to measure: {CORPUS} is absent.")
        return 0
    labels = json.loads((CORPUS / "labels.json").read_text(encoding="utf-8"))
    by_transition(labels["transitions"])
    for name in sorted(folder.name for folder in (CORPUS / "rounds").iterdir() if folder.is_dir()):
        print_session(name, walk_session(turns_of(name)))
    return 0


def read(file: str) -> str:
    return (CORPUS / "rounds" / file).read_text(encoding="utf-8")


# --- A review and the next document -----------------------------------------------------------------------


def by_transition(transitions: list[dict[str, Any]]) -> None:
    """Print one line per transition: grave rows, literal H1, calibrated flags, and how many are right."""
    print("## A review and the next document: findings HIGH or CRITICAL\n")
    print("| Review | Next document | About | Rows | Literal H1 | Flags | Really unanswered | Off its gap |")
    print("|---|---|---|---|---|---|---|---|")
    totals = [0, 0, 0, 0, 0]
    for transition in transitions:
        grave = [row for row in transition["rows"] if row["severity"] in GRAVE]
        document = read(transition["engineer_file"])
        flags = flags_of(transition, document)
        open_codes = {row["issue"] for row in transition["rows"] if row["status"] in UNANSWERED}
        row = [
            len(grave),
            sum(literal_h1(str(each["issue"]), document) for each in grave),
            len(flags),
            sum(code in open_codes for code in flags),
            len(flags) if transition["scope"] == "other_gap" else 0,
        ]
        totals = [total + value for total, value in zip(totals, row, strict=True)]
        names = [transition["reviewer_file"], transition["engineer_file"], transition["scope"]]
        print(f"| {' | '.join([*names, *map(str, row)])} |")
    print(f"| all | | | {' | '.join(map(str, totals))} |\n")


def flags_of(transition: dict[str, Any], document: str) -> list[str]:
    """Return the codes that the calibrated rules flag in one transition."""
    review = read_review(read(transition["reviewer_file"]))
    reviewed = Path(transition["reviewer_file"].replace("reviewer", "engineer"))
    previous = read(str(reviewed)) if (CORPUS / "rounds" / reviewed).is_file() else ""
    proposed = sorted(subject_of(previous).gaps) if previous else []
    turns: list[Turn] = [
        ReviewTurn(1, watched_findings(review, proposed), proposed=tuple(proposed)),
        ResponseTurn(2, document),
    ]
    judgement = walk_session(turns).steps[-1].judgement
    return [flag.code for flag in judgement.flags] if judgement else []


def literal_h1(code: str, document: str) -> bool:
    """Whether the text lacks `Response to <id>`, `Addressing <id>` and `DISAGREE: <id>`, as approved."""
    return not any(f"{words} {code}" in document for words in ("Response to", "Addressing", "DISAGREE:"))


# --- A session to its end ---------------------------------------------------------------------------------


def turns_of(session: str) -> list[Turn]:
    """Return the documents of a session in order; second versions come after the review of the first."""
    folder = CORPUS / "rounds" / session
    files = [(match, path) for path in folder.rglob("*.md") if (match := DOCUMENT.search(path.as_posix()))]
    files.sort(key=lambda entry: (int(entry[0][1]), int(entry[0][3] or 1), entry[0][2]))
    turns: list[Turn] = []
    proposed: tuple[str, ...] = ()
    for match, path in files:
        text, name, number = (
            path.read_text(encoding="utf-8"),
            path.relative_to(folder).as_posix(),
            int(match[1]),
        )
        if match[2] == "engineer":
            proposed = tuple(sorted(subject_of(text).gaps))
            turns.append(ResponseTurn(number, text, name=name))
        else:
            turns.append(review_turn(text, number, proposed, name))
    return turns


def review_turn(text: str, number: int, proposed: tuple[str, ...], name: str) -> ReviewTurn:
    review = read_review(text)
    accepted = review.verdict in {Verdict.APPROVED, Verdict.NO_ISSUES_FOUND}
    done = tuple(prior.code for prior in review.prior if prior.status == "resolved")
    findings = watched_findings(review, proposed)
    return ReviewTurn(number, findings, proposed, proposed if accepted else (), done, name=name)


def print_session(name: str, session: Session) -> None:
    """Print what happened in a session, and what nobody had answered at its end."""
    print(f"## {name}: {len(session.findings)} findings\n")
    for step in session.steps:
        flags = step.judgement.flags if step.judgement else ()
        told = (
            ", ".join(f"{flag.code or '#' + str(flag.ordinal)} {flag.level}" for flag in flags) or "no flag"
        )
        print(
            f"- {step.name}: {len(step.raised)} raised, {len(step.answered)} answered, {len(step.due)} due, "
            f"{len(step.pending)} pending; {told}"
        )
    print(f"\nNever answered: {len(session.never_answered)}\n")
    for left in session.never_answered:
        finding = left.finding
        when = f"due in round {', '.join(map(str, left.was_due))}" if left.was_due else "never due"
        code = finding.code or f"#{finding.ordinal}"
        print(f"- {(finding.severity or 'none'):8} {code:14} {left.review}, {when}: {finding.title[:70]}")
    print()


if __name__ == "__main__":
    sys.exit(main())
