"""Compose the prompt of a run from templates, in a fixed order (DEC-12).

The rulings come first. Then come the reason why the task runs again, the task, the findings to answer, the
rule not to touch the files of the process, and the format of the hand-in. Whatever people, agents and
repositories wrote is fenced, so that it reads as material and not as orders.

Each prompt has three parts. The first and the last are the program's own: rulings, prohibitions, hand-in. The
part between them says what the task is, and a project may write its own. The length of the whole is bounded:
if it does not fit, every section gets less space, and a list says what was cut.
"""

import logging
import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q
from django.template import TemplateSyntaxError

from agents.hosts.git.mirror import Mirror
from agents.models import PromptText, Run
from agents.prompts import context, opinions, rounds, specifications, templates, texts
from agents.prompts.sections import NAME_MAX, Cuts, Section, one_line
from agents.prompts.specifications import SOURCE_MAX
from agents.prompts.stages import stage_words
from agents.prompts.templates import TooMuch
from agents.recipes.recipe import Recipe
from disputes.models import Decision
from tasks.models import Project, Task
from tasks.text.counting import enumerated
from tasks.text.fences import closed

log = logging.getLogger(__name__)

PROMPT_MAX = 256 * 1024  # bytes of the whole prompt
BODY_MAX = 32 * 1024
GUIDE_MAX = 16 * 1024
INSTRUCTIONS_MAX = 16 * 1024
KNOWN_MAX = 50  # red tests of the target branch that a prompt names
COMMAND_MAX = 2_000
CUTS_MAX = 60  # lines of the list that says what was cut
# The shares of each section's budget that are tried in turn until the whole prompt fits.
SHARES = (1.0, 0.75, 0.5, 0.25, 0.1, 0.03, 0.0)
WITH_FIRST = frozenset({"coder", "reviewer", "engineer", "examiner"})


@dataclass
class Material:
    """What a prompt is made from, read from the repository before the transaction begins."""

    source: str = ""
    source_name: str = ""
    guide: str = ""
    guide_name: str = ""
    rewritten: list[str] = field(default_factory=list)  # which of these the commit under review changes
    documents: list[tuple[str, str]] = field(default_factory=list)  # (name, text); only for rounds
    commands: Recipe = field(default_factory=Recipe)


def gather(run: Run, mirror: Mirror, commands: Recipe) -> Material:
    """Read specification, AGENTS.md and documents as they are in the commit that the run starts from.

    Whoever judges that commit reads specification and AGENTS.md as they were before it.
    """
    base = measure = run.base_sha
    judged = None if run.role == Run.Role.CODER else context.under_review(run)
    if judged is not None and (fork := str(judged.diff_stat.get("fork", ""))):
        measure = specifications.measure_of(judged, fork, mirror)
    guide_name, guide = specifications.rules_of(mirror, measure, GUIDE_MAX * 2)
    return Material(
        source=specifications.holding(mirror, measure, base, run.task.source),
        source_name=run.task.source,
        guide=guide,
        guide_name=guide_name,
        rewritten=specifications.rewritten_by(judged, measure, mirror) if judged and measure != base else [],
        documents=rounds.documents_of(run, mirror) if rounds.is_round(run) else [],
        commands=commands,
    )


# --- Composing --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Composed:
    """A prompt, and the texts it was made from."""

    text: str
    template_hash: str
    own: PromptText | None  # the project's own text, if it has one
    example: str = ""  # where its example came from


def compose(run: Run, material: Material, decisions: list[Decision]) -> Composed:
    """Return the whole prompt with the project's own text, or with the program's if the project has none."""
    return compose_with(run, material, decisions, texts.in_use(run.project_id, name_of(run)))


def name_of(run: Run) -> str:
    """Return the name of the run's prompt: its role, or engineer or examiner in a round about documents."""
    return rounds.ROLES[Run.Role(run.role)] if rounds.is_round(run) else str(run.role)


def runs_told_by(name: str) -> Q:
    """Return the condition for runs whose prompt has that name; the other way round than `name_of`."""
    is_of_round = Q(role__in=rounds.ROLES, task__origin=Task.Origin.ROUNDS)
    for role, shown in rounds.ROLES.items():
        if shown == name:
            return is_of_round & Q(role=role)
    return Q(role=name) & ~is_of_round


def compose_with(run: Run, material: Material, decisions: list[Decision], own: PromptText | None) -> Composed:
    """Return the whole prompt with the project's text `own` between the program's parts.

    If that text cannot be filled, because it was never checked or exceeds its budget, the program's text is
    used instead: work does not stop for it, and the run's page says which text was used.
    """
    data = _common(run, material)
    name = name_of(run)
    if run.role in Run.OPINION_ROLES:
        data |= opinions.told(run)
    elif name == "engineer":
        data |= rounds.for_engineer(run, decisions, material.documents)
    elif name == "examiner":
        data |= rounds.for_examiner(run, decisions)
    elif run.role == Run.Role.REVIEWER:
        data |= context.for_reviewer(run, decisions)
    else:
        data |= context.for_coder(run, decisions)
    for text in (own, None):
        try:
            found = _fitting(run, data, text)
        except (TooMuch, TemplateSyntaxError) as error:
            log.warning("%s cannot be used for run %s: %s", text, run.pk, error)
            continue
        if found is not None:
            return Composed(
                found,
                templates.hash_of(name, text.text if text else None),
                text,
                data.get("example_source", ""),
            )
    raise AssertionError(f"The prompt of run {run.pk} does not fit, whatever is cut.")


def _fitting(run: Run, data: dict[str, Any], own: PromptText | None) -> str | None:
    """Return the prompt with as much of each section as fits, or None if it is too long even without them."""
    for share in SHARES:
        text = _assembled(name_of(run), data, own.text if own else None, share)
        if len(text.encode("utf-8", "replace")) <= PROMPT_MAX:
            return text
    return None


def _assembled(name: str, data: dict[str, Any], own: str | None, share: float) -> str:
    cuts = Cuts(share)
    rows = data.get("decisions", [])
    ruled = context.rulings_text(rows, share, cuts.lines)
    fitted = cuts.fit_all({key: value for key, value in data.items() if key != "decisions"})
    shape = templates.SHAPES[name]
    plain = {word: fitted.get(word, "") for word in shape} | fitted["for_texts"]
    body = templates.fill_own(name, plain) if own is None else templates.fill(own, plain)
    body = closed(body)  # a project's text must not swallow what follows it
    frame = fitted | {"ruled": ruled, "cuts": cuts.lines[:CUTS_MAX], "task": {"ref": fitted["ref"]}}
    parts = [
        templates.fill_own(f"{name}_first", frame) if name in WITH_FIRST else "",
        body,
        templates.fill_own(f"{name}_last", frame),
    ]
    text = "\n\n".join(part.strip("\n") for part in parts if part.strip())
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _common(run: Run, material: Material) -> dict[str, Any]:
    """Return what every role is told, as plain values and sections without database rows."""
    task, agent = run.task, run.agent
    staged = stage_words(run)
    where = f"read {one_line(material.source_name)[:NAME_MAX]} in the clone"
    here = staged.get("at_stage") or {}
    return {
        "ref": task.ref,
        "title": one_line(task.title),
        "round": run.round,
        "model": one_line(agent.model) if agent else "",
        "name": agent.name if agent else "",
        "instructions": Section(
            "your instructions", agent.instructions if agent else "", INSTRUCTIONS_MAX, is_fenced=False
        ),
        "body": Section("description", task.body, BODY_MAX, where=f"steroids tasks show {task.ref}"),
        "source": Section(
            "specification", material.source, SOURCE_MAX, where=where, label=material.source_name
        ),
        "source_name": one_line(material.source_name)[:NAME_MAX],
        "guide": Section(
            "the project's rules", material.guide, GUIDE_MAX,
            where=f"read {material.guide_name} in the clone", label=material.guide_name,
        ),
        "guide_name": material.guide_name,
        "rewritten": one_line(enumerated(material.rewritten))[: 2 * NAME_MAX].replace("`", "'"),
        "prepare": one_line(material.commands.prepare)[:COMMAND_MAX],
        "build": one_line(material.commands.build)[:COMMAND_MAX],
        "test": one_line(material.commands.test)[:COMMAND_MAX],
        "docs_only": not any(material.commands.commands),
        "known_red": _known_red(task.project),
        "red_tests_pass": not task.project.config.test_required,
        "commit_form": shlex.quote(f"{_commit_word(task.tags)}: {one_line(task.title)}"),
        **staged,
        "for_texts": {"stage": here.get("label", ""), "stage_about": here.get("about", "")},
    }  # fmt: skip


def _known_red(project: Project) -> str:
    """Return the names of the tests accepted as red on the target branch; empty if there are none."""
    names = project.base_known.get("failed", []) if project.base_state == Project.Base.ACCEPTED else []
    return one_line(", ".join(names[:KNOWN_MAX]))[:COMMAND_MAX]


def _commit_word(tags: list[str]) -> str:
    words = {"bug": "fix", "fix": "fix", "docs": "docs", "refactor": "refactor", "test": "test"}
    return next((words[tag] for tag in tags if tag in words), "feat")
