"""What a judge and a mediator are told of a conflict: the code, the item, the objection (ARB-6).

All of it was written by others and is fenced. Whatever had to be cut is named above it.
"""

import re
from typing import Any

from agents.models import Run
from agents.prompts.sections import Section, one_line
from disputes.models import Conflict
from tasks.models import Finding

ITEM_MAX = 16 * 1024
OBJECTION_MAX = 24 * 1024
CODE_MAX = 16 * 1024
DIFF_MAX = 64 * 1024
EVIDENCE_MAX = 4 * 1024
PLACE_MAX = 300


def told(run: Run) -> dict[str, Any]:
    """Return the values of the template; every text has its budget and is fenced.

    Raises ValueError if the run was not asked for an opinion.
    """
    if run.opinion is None:
        raise ValueError(f"Run {run.pk} was asked for no opinion.")
    conflict = Conflict.objects.select_related("finding", "raised_as", "submission", "dispute__task").get(
        pk=run.opinion.conflict_id
    )
    finding = conflict.shown_finding
    path = one_line(finding.path)[:PLACE_MAX] if finding else ""
    diff = conflict.submission.diff if conflict.submission else ""
    of_file = diff_of(diff, finding.path) if finding and finding.path else ""
    clone = "the clone holds the whole code"
    return {
        "conflict": conflict.ref,
        "severity": conflict.severity.upper(),
        "sha": run.sha,
        "place": one_line(finding.location).replace("`", "'")[:PLACE_MAX] if finding else "",
        "item": Section("the finding", _item(conflict), ITEM_MAX, instead="Not stated."),
        "objection": Section("the objection", _objection(conflict), OBJECTION_MAX, instead="Not stated."),
        "code": Section("the code", _code(finding) if finding else "", CODE_MAX, where=clone),
        "diff": Section("the diff", of_file or diff, DIFF_MAX, "diff", where=clone),
        "diff_of": path.replace("`", "'") if of_file else "",
        "evidence": Section("what the program noticed", "\n".join(map(str, conflict.evidence)), EVIDENCE_MAX),
    }


def _labelled(*pairs: tuple[str, str]) -> str:
    return "\n\n".join(f"{label}:\n{text.strip()}" for label, text in pairs if text.strip())


def _item(conflict: Conflict) -> str:
    finding = conflict.shown_finding
    if finding is None:
        return _labelled(("Question", conflict.question), ("Reviewer", conflict.reviewer_position))
    said = {finding.title, finding.suggestion}
    position = "" if conflict.reviewer_position in said | {finding.text} else conflict.reviewer_position
    as_written = "" if finding.text in said else finding.text
    return _labelled(
        ("Finding", finding.title), ("Impact", finding.impact), ("Suggestion", finding.suggestion),
        ("Position", position), ("As written", as_written),
    )  # fmt: skip


def _objection(conflict: Conflict) -> str:
    return _labelled(
        ("Position", conflict.coder_position), ("Rationale", conflict.coder_rationale),
        ("Alternative", conflict.alternative),
    )  # fmt: skip


def _code(finding: Finding) -> str:
    """Return the lines around the finding's place, with their numbers; empty if there is no excerpt."""
    if not finding.excerpt:
        return ""
    first = finding.excerpt_start or 1
    lines = finding.excerpt.split("\n")
    return "\n".join(f"{number:>5}  {line}" for number, line in enumerate(lines, first))


def diff_of(diff: str, path: str) -> str:
    """Return the part of a diff that is about one file; empty if the diff does not change that file."""
    parts = re.split(r"(?m)^(?=diff --git )", diff)
    wanted = re.compile(rf"(?m)^(?:\+\+\+ b/|--- a/){re.escape(path)}$")
    return next((part for part in parts if wanted.search(part)), "")
