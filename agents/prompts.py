"""What each role is told. The texts are templates; the order of the parts is fixed (MODELS 37).

Rulings come first, then why it runs again, the task, the findings to answer, the rule to keep hands off, and
the format of the hand-in. What people, agents and repositories wrote is fenced: it is material, not orders.
"""

import re
import shlex
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.template import Context, Engine, Template

from agents import judging_prompts, retrying
from agents.models import Run
from agents.runtime.detect import Commands
from agents.runtime.git import Mirror
from disputes import intake, rulings
from disputes.models import Decision
from disputes.protocol.documents import MAX_BYTES, scan
from disputes.protocol.options import Option
from disputes.protocol.wording import ruling_lines
from tasks.models import Submission, Verification

# The parts together stay below this, so that the rules at the end are never cut.
PROMPT_MAX = 256 * 1024
BODY_MAX = 32 * 1024
FINDINGS_MAX = 32 * 1024
SOURCE_MAX = 32 * 1024
SECTION_MAX = MAX_BYTES // 4
GUIDE_MAX = 16 * 1024
DIFF_MAX = 120 * 1024
TAIL_MAX = 6 * 1024


@lru_cache(maxsize=1)
def _engine() -> Engine:
    return Engine(dirs=[settings.BASE_DIR / "templates" / "prompts"], autoescape=False)


@lru_cache(maxsize=8)
def _template(name: str) -> Template:
    return _engine().get_template(name)


def fenced(text: str, info: str = "text") -> str:
    """The text between fences that nothing in it can close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{info}\n{text.rstrip()}\n{fence}"


def one_line(text: str) -> str:
    """The text without line ends, so that nothing in it begins a line of the prompt."""
    return " ".join(text.split())


def cut(text: str, limit: int, what: str) -> str:
    """The text up to the limit, saying so where something was left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[{what}: {len(text) - limit} characters left out]"


@dataclass
class Material:
    """What a prompt is made of, read from the repository before the transaction begins."""

    source: str = ""
    source_name: str = ""
    guide: str = ""
    commands: Commands = field(default_factory=Commands)


def gather(run: Run, mirror: Mirror, commands: Commands) -> Material:
    """Specification and AGENTS.md as they are in the commit that the run starts from."""
    path, _, anchor = run.task.source.partition("#")
    text = mirror.read(run.base_sha, path, SOURCE_MAX * 4) if path else None
    source = section_of(text, anchor) if text and anchor else text or ""
    guide = mirror.read(run.base_sha, "AGENTS.md", GUIDE_MAX * 2) or ""
    return Material(
        source=cut(source, SOURCE_MAX, run.task.source),
        source_name=run.task.source,
        guide=cut(guide, GUIDE_MAX, "AGENTS.md"),
        commands=commands,
    )


def section_of(text: str, anchor: str) -> str:
    """The part of a Markdown document below the heading that the anchor names; all of it if there is none."""
    lines = scan(text[:SECTION_MAX])
    wanted = _slug(anchor)
    start = level = 0
    for index, line in enumerate(lines):
        if not (heading := line.heading):
            continue
        if level and heading[0] <= level:
            return "\n".join(part.text for part in lines[start:index])
        if not level and _slug(heading[1]) == wanted:
            start, level = index, heading[0]
    return "\n".join(part.text for part in lines[start:]) if level else text


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def render(run: Run, material: Material, decisions: list[Decision]) -> str:
    """The whole prompt of a run."""
    task = run.task
    context: dict[str, Any] = {
        "run": run,
        "task": task,
        "title": one_line(task.title),
        "round": run.round,
        "agent": run.agent,
        "material": material,
        "body": fenced(cut(task.body, BODY_MAX, "description")) if task.body.strip() else "",
        "source": fenced(material.source) if material.source else "",
        "guide": fenced(material.guide) if material.guide else "",
        "commit_form": shlex.quote(f"{_commit_word(task.tags)}: {one_line(task.title)}"),
        "docs_only": not (material.commands.build or material.commands.test),
    }
    if run.role in Run.OPINION_ROLES:
        name = f"{run.role}.md"
        text = _template(name).render(Context(context | judging_prompts.told(run), autoescape=False))
    elif run.role == Run.Role.REVIEWER:
        text = _template("reviewer.md").render(
            Context(context | _for_reviewer(run, decisions), autoescape=False)
        )
    else:
        text = _template("coder.md").render(Context(context | _for_coder(run, decisions), autoescape=False))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _commit_word(tags: list[str]) -> str:
    words = {"bug": "fix", "fix": "fix", "docs": "docs", "refactor": "refactor", "test": "test"}
    return next((words[tag] for tag in tags if tag in words), "feat")


def _for_coder(run: Run, decisions: list[Decision]) -> dict[str, Any]:
    task = run.task
    last = task.last_submission()
    red = last if last and last.round == task.round and last.state in {"red", "lost"} else None
    tail = ""
    if red and red.state == Submission.State.RED:
        result = Verification.objects.filter(project=task.project, sha=red.sha).order_by("-at").first()
        tail = fenced(cut_head(result.tail, TAIL_MAX)) if result else ""
    earlier = Run.objects.filter(task=task, role=Run.Role.CODER, round=run.round, status=Run.Status.ENDED)
    back = task.rollbacks.order_by("-pk").first()
    if back:
        earlier = earlier.filter(queued_at__gt=back.at)
    resumed = earlier.exclude(outcome=Run.Outcome.HANDED_IN).order_by("-pk").first()
    clash = task.landings.filter(status="conflict").order_by("-pk").first()
    findings = intake.findings_to_answer(task)
    return {
        "rulings": "\n".join(rulings.lines_for_coder(decisions)),
        "back": back if back and (not last or back.at > last.at) else None,
        "back_reason": fenced(cut(back.reason, GUIDE_MAX, "reason")) if back else "",
        "red": red,
        "red_tail": tail,
        "resumed": resumed if resumed and (not last or resumed.queued_at > last.at) else None,
        "clash": clash if clash and clash.submission_id == (last.pk if last else None) else None,
        "findings": findings,
        "mandatory": any(finding.mandatory for finding in findings),
        "finding_texts": [
            (finding, fenced(cut(_finding_text(finding), FINDINGS_MAX // len(findings), finding.code)))
            for finding in findings
        ],
        "red_problem": fenced(one_line(red.problem)) if red else "",
        "clash_problem": fenced(clash.problem) if clash else "",
        **retrying.told(retrying.to_mend(earlier)),
        "resumed_reason": fenced(resumed.reason) if resumed and resumed.reason else "",
    }


def cut_head(text: str, limit: int) -> str:
    """The end of the text, saying so where its beginning was left out."""
    if len(text) <= limit:
        return text
    return f"[{len(text) - limit} characters left out]\n{text[-limit:]}"


def _finding_text(finding: Any) -> str:
    parts = [finding.title]
    for label, value in (
        ("Location", finding.location), ("Impact", finding.impact), ("Suggestion", finding.suggestion),
    ):  # fmt: skip
        if value:
            parts.append(f"{label}: {value}")
    return "\n".join(parts)


def _for_reviewer(run: Run, decisions: list[Decision]) -> dict[str, Any]:
    task = run.task
    submission = task.submissions.standing().filter(sha=run.sha).order_by("-pk").first()
    result = Verification.objects.filter(project=task.project, sha=run.sha).order_by("-at").first()
    settled = rulings.settled_lines(task)
    ruled = [decision for decision in decisions if decision.expects_change]
    clarified = [decision.text for decision in decisions if decision.option == Option.CLARIFY]
    earlier = Run.objects.filter(task=task, role=Run.Role.REVIEWER, sha=run.sha, status=Run.Status.ENDED)
    given = submission.answers.select_related("finding") if submission else []
    answers = [f"{answer.finding.code}: {answer.kind}. {one_line(answer.text)}" for answer in given]
    return {
        "submission": submission,
        "verification": result,
        "diff": fenced(cut(submission.diff, DIFF_MAX, "diff"), "diff") if submission else "",
        "response": fenced(cut(submission.response, GUIDE_MAX, "response"))
        if submission and submission.response
        else "",
        "answers": fenced(cut("\n".join(answers), GUIDE_MAX, "answers")) if answers else "",
        "settled": fenced(cut("\n".join(settled), FINDINGS_MAX, "settled points")) if settled else "",
        "ruled": "\n".join(ruling_lines(rulings.ruling_of(decision) for decision in ruled)[2:]),
        "clarified": "\n\n".join(clarified),
        **retrying.told(retrying.to_mend(earlier)),
        "again": submission is not None and submission.reviews.exists(),
    }
