"""Reads what work is measured by: the project's rules, and the document that a task names as its source.

Nobody words the rules for their own review. Whoever judges a commit is told what held before it.
"""

from agents.hosts.git.mirror import Mirror
from disputes.protocol.text import chapters
from disputes.protocol.text.documents import MAX_BYTES, scan
from tasks.models import Review, Submission
from tasks.models.submission import FILES_TOLD

RULES = "AGENTS.md"
SOURCE_MAX = 32 * 1024  # characters that prompts show
SECTION_MAX = MAX_BYTES // 4


def measure_of(submission: Submission, fork: str, mirror: Mirror) -> str:
    """Return the commit whose rules and specification hold for a submission that left the branch at `fork`.

    That is `fork`, or else the last commit that a reviewer approved at an earlier stage of the task.
    """
    if submission.stage:
        before = submission.task.submissions.standing().filter(pk__lt=submission.pk)
        passed = before.exclude(stage=submission.stage).filter(reviews__verdict=Review.Verdict.APPROVED)
        last = passed.order_by("-pk").first()
        if last is not None and mirror.contains(submission.sha, last.sha):
            return last.sha
    return fork


def rewritten_by(submission: Submission, measure: str, mirror: Mirror) -> list[str]:
    """Return which of the rules and the specification the submission changes, by their paths."""
    named = dict.fromkeys([RULES, submission.task.source.partition("#")[0]])
    changed = {path for path, *_ in submission.diff_stat.get("files", ())}
    if measure == submission.diff_stat.get("fork") and len(changed) < FILES_TOLD:
        return [path for path in named if path in changed]
    most = SOURCE_MAX * 4
    return [
        path for path in named
        if path and mirror.read(measure, path, most) != mirror.read(submission.sha, path, most)
    ]  # fmt: skip


def holding(mirror: Mirror, measure: str, sha: str, source: str) -> str:
    """Return what a source says in the commit `measure` or, where that has no such file, in `sha`."""
    return read(mirror, measure, source) or (read(mirror, sha, source) if sha != measure else "")


def read(mirror: Mirror, sha: str, source: str) -> str:
    """Return the text of a source such as docs/SPEC.md#login in that commit; empty if there is none."""
    path, _, anchor = source.partition("#")
    text = mirror.read(sha, path, SOURCE_MAX * 4) if path else None
    return section_of(text, anchor) if text and anchor else text or ""


def section_of(text: str, anchor: str) -> str:
    """Return the part of a Markdown document below the heading that the anchor names, or else all of it."""
    lines = scan(text[:SECTION_MAX])
    found = chapters.named(chapters.chapters(lines), anchor)
    return "\n".join(line.text for line in lines[found.start : found.end]) if found else text
