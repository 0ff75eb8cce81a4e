"""Reads what work is measured by: the project's rules, and the document that a task names as its source.

Nobody words the rules for their own review. Whoever judges a commit is told what held before it.
"""

from agents.hosts.git.mirror import Mirror
from agents.hosts.git.repository import inside
from disputes.protocol.text import chapters
from disputes.protocol.text.documents import MAX_BYTES, scan
from tasks.models import Review, Submission
from tasks.models.submission import FILES_TOLD

# Files in which projects keep their rules for agents; those of the first one hold.
RULES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md")
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
    rules, _ = rules_of(mirror, measure, SOURCE_MAX)
    holding = RULES[: RULES.index(rules) + 1] if rules else RULES
    named = dict.fromkeys(filter(None, [*holding, inside(submission.task.source.partition("#")[0])]))
    changed = {path for path, *_ in submission.diff_stat.get("files", ())}
    if measure == submission.diff_stat.get("fork") and len(changed) < FILES_TOLD:
        return [path for path in named if path in changed]
    before, after = (mirror.read_all(sha, named, SOURCE_MAX * 4) for sha in (measure, submission.sha))
    return [path for path in named if before.get(path) != after.get(path)]


def rules_of(mirror: Mirror, sha: str, limit: int) -> tuple[str, str]:
    """Return path and beginning of the project's rules in a commit, or two empty texts.

    A link says only what it links to, and some files only import another: neither holds any rules.
    """
    for path, text in mirror.read_all(sha, RULES, limit).items():
        said = text.strip()
        if said and said.removeprefix("@").removeprefix("./").removeprefix("../") not in RULES:
            return path, text
    return "", ""


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
