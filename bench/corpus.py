"""How well the parsers read real review rounds: findings, severities, verdicts and answers against labels.

    python bench/corpus.py [--json] [--misses] [--leave-out SESSION]

The rounds and their labels are beside the project, in ../shared/corpus; without them, nothing is measured.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared" / "corpus"
sys.path.insert(0, str(ROOT))

from disputes.protocol.responses.response import read_response  # noqa: E402
from disputes.protocol.reviews.review import ReadReview, Verdict, read_review  # noqa: E402

NEAR = 2  # lines by which a label and a finding may differ and still be the same point
# What the coder may have done with a finding whose answer has to name it.
ANSWERED = frozenset({"addressed", "deferred", "user_decision", "mooted_by_redesign"})


@dataclass
class Tally:
    """The counts of one or many documents."""

    labelled: int = 0
    found: int = 0
    hits: int = 0
    severities: int = 0
    verdicts: int = 0
    right_verdicts: int = 0
    prior: int = 0
    right_prior: int = 0
    wrong_prior: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def f1(self) -> float:
        return 2 * self.hits / (self.labelled + self.found) if self.labelled + self.found else 1.0

    def add(self, other: "Tally") -> None:
        for counted in fields(self):
            if counted.name != "notes":
                setattr(self, counted.name, getattr(self, counted.name) + getattr(other, counted.name))
        self.notes += other.notes

    def as_row(self) -> dict[str, Any]:
        return {
            "labelled": self.labelled, "found": self.found, "hits": self.hits, "f1": round(self.f1, 4),
            "severity_right": self.severities, "verdicts": self.verdicts,
            "verdicts_right": self.right_verdicts, "prior": self.prior, "prior_right": self.right_prior,
            "prior_invented": self.wrong_prior,
        }  # fmt: skip


def read(path: str) -> str:
    return (CORPUS / "rounds" / path).read_text(encoding="utf-8", errors="replace")


def worst(verdicts: Iterable[str]) -> str:
    order = list(Verdict)
    known = [Verdict(verdict) for verdict in verdicts if verdict in set(Verdict)]
    return max(known, key=order.index).value if known else "UNKNOWN"


def measure_review(label: Mapping[str, Any], review: ReadReview) -> Tally:
    """Measure one review against its labels. Observations count neither as hits nor as inventions."""
    issues = [item for item in label["issues"] if item["kind"] == "issue"]
    passed_over = {item["line"] for item in label["issues"]} - {item["line"] for item in issues}
    tally = Tally(labelled=len(issues), verdicts=1)
    free = list(review.findings)
    for item in issues:
        near = [found for found in free if abs(found.line - item["line"]) <= NEAR]
        best = min(near, key=lambda found: abs(found.line - item["line"]), default=None)
        if best is None:
            tally.notes.append(f"{label['file']}:{item['line']} missed: {item['title'][:60]}")
            continue
        free.remove(best)
        tally.hits += 1
        severity = best.severity.upper() if best.severity else None
        if severity == item["severity"]:
            tally.severities += 1
        else:
            tally.notes.append(f"{label['file']}:{item['line']} is {item['severity']}, read as {severity}")
    invented = [found for found in free if all(abs(found.line - line) > NEAR for line in passed_over)]
    tally.found = tally.hits + len(invented)
    tally.notes += [f"{label['file']}:{found.line} invented: {found.title[:60]}" for found in invented]
    told = {status.code: status.status.value for status in review.prior}
    wanted = {item["issue"]: item["normalized"] for item in label["prior_issue_status"]}
    tally.prior = len(wanted)
    tally.right_prior = sum(told.get(code) == status for code, status in wanted.items())
    tally.wrong_prior = len(set(told) - set(wanted))
    if told != wanted:
        tally.notes.append(f"{label['file']} tells {sorted(wanted.items())}, read as {sorted(told.items())}")
    expected = worst(verdict["normalized"] for verdict in label["verdicts"])
    stated = review.verdict.value if review.verdict else "UNKNOWN"
    if expected == stated:
        tally.right_verdicts = 1
    else:
        tally.notes.append(f"{label['file']} is {expected}, read as {stated}")
    return tally


def measure_reviews(labels: Mapping[str, Any], leave_out: str) -> dict[str, Tally]:
    """Return a tally for each session, and one for all of them."""
    sessions: dict[str, Tally] = {}
    for label in labels["reviewers"]:
        session = label["file"].partition("/")[0]
        if session != leave_out:
            tally = measure_review(label, read_review(read(label["file"])))
            sessions.setdefault(session, Tally()).add(tally)
    total = Tally()
    for tally in sessions.values():
        total.add(tally)
    return {**sessions, "all": total}


def measure_answers(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Count whether the reader of responses finds the answers that name their finding, and no others."""
    expected = found = missed = invented = 0
    notes: list[str] = []
    for transition in labels["transitions"]:
        rows = transition["rows"]
        known = [row["issue"] for row in rows if row["issue"] and not row["issue"].startswith("#")]
        answered = {row["issue"] for row in rows if row["status"] in ANSWERED}
        wanted = {row["issue"] for row in rows if row["issue"] in answered and row["id_present"]}
        answers = read_response(read(transition["engineer_file"]), known=known).answers
        named = {answer.code for answer in answers} & set(known)
        missed += len(wanted - named)
        invented += len(named - answered)
        expected += len(wanted)
        found += len(wanted & named)
        file = transition["engineer_file"]
        notes += [f"{file} missed the answer to {code}" for code in sorted(wanted - named)]
        notes += [f"{file} invented an answer to {code}" for code in sorted(named - answered)]
    return {"expected": expected, "found": found, "missed": missed, "invented": invented, "notes": notes}


def table(tallies: Mapping[str, Tally]) -> str:
    head = ("findings", "hits", "found", "F1", "severity", "verdicts", "earlier")
    lines = [f"{'session':<28}" + "".join(f"{name:>10}" for name in head)]
    for name, tally in tallies.items():
        lines.append(
            f"{name:<28}{tally.labelled:>10}{tally.hits:>10}{tally.found:>10}{tally.f1:>10.3f}"
            f"{tally.severities / (tally.hits or 1):>10.1%}{f'{tally.right_verdicts}/{tally.verdicts}':>10}"
            f"{f'{tally.right_prior}/{tally.prior}':>10}"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--misses", action="store_true", help="name every miss")
    parser.add_argument("--leave-out", default="", metavar="SESSION", help="a session that is not measured")
    options = parser.parse_args(arguments)
    if not (CORPUS / "labels.json").is_file():
        print(f"There is no corpus at {CORPUS}: nothing is measured.")
        return 0
    labels = json.loads((CORPUS / "labels.json").read_text(encoding="utf-8"))
    tallies = measure_reviews(labels, options.leave_out)
    answers = measure_answers(labels)
    if options.json:
        rows = {name: tally.as_row() for name, tally in tallies.items()}
        print(json.dumps({"reviews": rows, "answers": answers, "misses": tallies["all"].notes}, indent=2))
        return 0
    print(table(tallies))
    print(
        f"\nanswers that name their finding: {answers['found']} of {answers['expected']}, "
        f"{answers['missed']} missed, {answers['invented']} invented"
    )
    if options.misses:
        print("\n" + "\n".join([*tallies["all"].notes, *answers["notes"]]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
