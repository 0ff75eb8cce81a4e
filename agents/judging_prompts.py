"""What a judge and a mediator are told of a conflict: the code, the item, the objection (ARB-6).

All of it was written by others and stands between fences. What had to be cut is named above it.
"""

import re
from typing import Any

from agents.models import Run
from disputes.models import Conflict
from tasks.models import Finding

ITEM_MAX = 16 * 1024
OBJECTION_MAX = 24 * 1024
CODE_MAX = 16 * 1024
DIFF_MAX = 64 * 1024
EVIDENCE_MAX = 4 * 1024
PLACE_MAX = 300


def told(run: Run) -> dict[str, Any]:
    """The parts of the template, fenced and bounded."""
    from agents.prompts import fenced, one_line  # that module renders with ours

    if run.opinion is None:
        raise ValueError(f"Run {run.pk} was asked for no opinion.")
    conflict = Conflict.objects.select_related("finding", "submission", "dispute__task").get(
        pk=run.opinion.conflict_id
    )
    left_out: list[str] = []

    def part(text: str, limit: int, name: str, info: str = "text") -> str:
        if not text.strip():
            return ""
        if len(text) > limit:
            left_out.append(f"{name} ({len(text) - limit} characters)")
        return fenced(text[:limit], info)

    finding = conflict.finding
    path = one_line(finding.path)[:PLACE_MAX] if finding else ""
    diff = conflict.submission.diff if conflict.submission else ""
    of_file = diff_of(diff, finding.path) if finding and finding.path else ""
    parts = {
        "conflict": conflict,
        "place": one_line(finding.location).replace("`", "'")[:PLACE_MAX] if finding else "",
        "item": part(_item(conflict), ITEM_MAX, "the finding") or "Not stated.",
        "objection": part(_objection(conflict), OBJECTION_MAX, "the objection") or "Not stated.",
        "code": part(_code(finding), CODE_MAX, "the code") if finding else "",
        "diff": part(of_file or diff, DIFF_MAX, "the diff", "diff"),
        "diff_of": path.replace("`", "'") if of_file else "",
        "evidence": part("\n".join(map(str, conflict.evidence)), EVIDENCE_MAX, "what the program noticed"),
    }
    return parts | {"left_out": ", ".join(left_out)}


def _labelled(*pairs: tuple[str, str]) -> str:
    return "\n\n".join(f"{label}:\n{text.strip()}" for label, text in pairs if text.strip())


def _item(conflict: Conflict) -> str:
    finding = conflict.finding
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
    """The lines around the place, with their numbers."""
    if not finding.excerpt:
        return ""
    first = finding.excerpt_start or 1
    lines = finding.excerpt.split("\n")
    return "\n".join(f"{number:>5}  {line}" for number, line in enumerate(lines, first))


def diff_of(diff: str, path: str) -> str:
    """The part of a diff that is about one file; empty where it changes it not."""
    parts = re.split(r"(?m)^(?=diff --git )", diff)
    wanted = re.compile(rf"(?m)^(?:\+\+\+ b/|--- a/){re.escape(path)}$")
    return next((part for part in parts if wanted.search(part)), "")
