"""Core: the stages that a project's tasks go through, and the columns of tasks that were escalated.

A pipeline is an ordered list of stages (COL-1); each runs the whole cycle of work, verification and review.
Beside it there are the columns of specialists, one for each reason to escalate (COL-2). Nothing in this
module imports Django.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

from tasks.configuration.ladder import shown
from tasks.configuration.schema import Kind, SettingsError
from tasks.text.regex import regex

NORMAL, ESCALATION = "normal", "escalation"
ENTERS = (NORMAL, ESCALATION)
REASONS = ("concurrency", "security", "performance", "architecture", "unknown")
UNKNOWN = "unknown"
STAGES_MAX = 20
ABOUT_MAX = 2000
_NAME = regex(r"[a-z0-9][a-z0-9_-]{0,39}\Z")
# Columns that the board makes itself; a stage with one of these names would be mistaken for them.
RESERVED = frozenset({"human", "backflow", "deferred", "done", "needs-human", "failed", "escalated"})


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage, or one column of specialists."""

    name: str
    title: str = ""
    agent_type: str = ""  # which agents work here; empty: those of any type
    ladder: str = ""  # the name of its steps in model_ladder; empty: that of the agent type
    is_reviewed: bool = True  # if not, green work passes by itself
    enter: str = NORMAL
    reason: str = ""  # of an escalation column: why tasks are sent to it
    about: str = ""  # what its agents are told about their work here

    @property
    def label(self) -> str:
        """The stage's name for people."""
        return self.title or self.name.replace("_", " ").replace("-", " ").capitalize()

    @property
    def ladder_name(self) -> str:
        """The name of the stage's ladder in model_ladder."""
        return self.ladder or self.agent_type

    @property
    def is_escalation(self) -> bool:
        return self.enter == ESCALATION


DEV = Stage(
    "dev", "Development", "dev-agent",
    about="Write the code that makes the task true and its tests pass. A test of an earlier stage that is "
    "wrong is sent back with a comment, not changed here.",
)  # fmt: skip
FULL = (
    Stage(
        "stories", "Stories", "story-agent",
        about="Write down who needs this, what for, and how anybody can see that it is done: acceptance "
        "criteria as Markdown files of the repository. Change no code.",
    ),
    Stage(
        "arch", "Architecture", "architect-agent",
        about="Say how it is built: parts, interfaces, data, what may fail. Keep it in Markdown files of the "
        "repository, and hold to what the stories ask for. Change no code.",
    ),
    Stage(
        "tests", "Tests", "test-architect",
        about="Write the tests that the stories and the architecture call for. What is not built yet is "
        "marked as expected to fail, so that build and tests stay green.",
    ),
    DEV,
    Stage(
        "review", "Review", "review-agent", is_reviewed=False,
        about="Inspect the whole change as a reader who must live with it. Mend small things yourself; send "
        "what the developer must mend back with a comment.",
    ),
    Stage(
        "qa", "QA", "qa-agent",
        about="Use what was built as its users will, and try to break it. Add the tests that were missing. "
        "Where nothing is to be changed, hand in the commit as it is.",
    ),
)  # fmt: skip
PRESETS: dict[str, tuple[Stage, ...]] = {"simple": (DEV,), "full": FULL}

ESCALATIONS = (
    Stage("needs-senior-dev", "Needs a senior developer", "senior-dev-agent", enter=ESCALATION,
          reason=UNKNOWN, about="Others have failed at this task. Read what they tried, then solve it."),
    Stage("needs-concurrency-expert", "Needs a concurrency expert", "concurrency-specialist",
          enter=ESCALATION, reason="concurrency",
          about="Others got stuck on races, locks or order of events. Find the cause, then solve it."),
    Stage("needs-security-review", "Needs a security review", "security-specialist", enter=ESCALATION,
          reason="security", about="Others got stuck on a question of security. Make it safe, and say why."),
    Stage("needs-perf-tuning", "Needs performance tuning", "performance-specialist", enter=ESCALATION,
          reason="performance", about="Others could not make it fast enough. Measure first, then mend."),
    Stage("needs-arch-clarification", "Needs the architecture clarified", "architect-agent",
          enter=ESCALATION, reason="architecture",
          about="Others could not see how it fits the architecture. Settle that, then build it."),
)  # fmt: skip


class Config(Protocol):
    """What this module asks of a project's settings."""

    @property
    def stages(self) -> tuple[Stage, ...]: ...


# --- Asking -----------------------------------------------------------------------------------------------


def stages_of(config: Config) -> tuple[Stage, ...]:
    """Return the stages of the pipeline in order; there is at least one."""
    return tuple(stage for stage in config.stages if not stage.is_escalation)


def escalations_of(config: Config) -> tuple[Stage, ...]:
    """Return the column for each reason to escalate: the project's own if it has one, else the usual one."""
    own = {stage.reason: stage for stage in config.stages if stage.is_escalation}
    return tuple(own.get(usual.reason, usual) for usual in ESCALATIONS)


def escalation_for(config: Config, reason: str) -> Stage:
    """Return the column for the reason; an unknown reason goes to the senior developer's (LAD-3)."""
    columns = {stage.reason: stage for stage in escalations_of(config)}
    return columns.get(reason.strip().lower(), columns[UNKNOWN])


def stage_named(config: Config, name: str) -> Stage | None:
    """Return the stage or the escalation column of that name; None if the project has none."""
    return next((stage for stage in (*config.stages, *escalations_of(config)) if stage.name == name), None)


def first_stage(config: Config) -> Stage:
    """Return the stage at which a new task begins."""
    return stages_of(config)[0]


def next_stage(config: Config, name: str) -> Stage | None:
    """Return the stage after this one; None after the last, and if the name is not in the pipeline."""
    return _beside(config, name, 1)


def previous_stage(config: Config, name: str) -> Stage | None:
    """Return the stage before this one; None before the first, and if the name is not in the pipeline."""
    return _beside(config, name, -1)


def _beside(config: Config, name: str, step: int) -> Stage | None:
    stages = stages_of(config)
    at = position(config, name) - 1
    return stages[at + step] if at >= 0 and 0 <= at + step < len(stages) else None


def position(config: Config, name: str) -> int:
    """Return the number of the stage in the pipeline, from 1; 0 if the name is not in it."""
    names = [stage.name for stage in stages_of(config)]
    return names.index(name) + 1 if name in names else 0


def onward(config: Config, stage: str, home: str) -> Stage | None:
    """Return the stage that approved work goes to; None if it is finished.

    From an escalation column it goes to the stage after `home`, otherwise to the one after `stage`.
    """
    here = stage_named(config, stage)
    return next_stage(config, home if here and here.is_escalation else stage)


def where(config: Config, name: str, home: str = "", *, is_escalated: bool = False) -> str:
    """Return a task's stage for people; empty if the project has only one and the task is not escalated."""
    here = stage_named(config, name)
    total = len(stages_of(config))
    if here is None or (total == 1 and not here.is_escalation):
        return ""
    if here.is_escalation:
        return f"{here.label}, from {home}" if home else here.label
    place = f"{here.label} ({position(config, name)} of {total})"
    return f"{place}, sent back by {home}" if home and not is_escalated else place


# --- The setting ------------------------------------------------------------------------------------------

_KNOWN = {stage.name: stage for stage in reversed((*FULL, *ESCALATIONS))}
KEYS = tuple(Stage.__dataclass_fields__)
_LIMITS = {"name": 40, "title": 60, "agent_type": 60, "ladder": 60, "enter": 20, "reason": 20}


@dataclass(frozen=True, slots=True)
class Stages(Kind):
    """A list of stages, each a name or a mapping, or the name of a preset. Faults name the entry, from 1."""

    def check(self, key: str, value: Any) -> tuple[Stage, ...]:
        if isinstance(value, str):
            if value not in PRESETS:
                raise SettingsError(f"{key} is {shown(value)}; a preset is one of {', '.join(PRESETS)}.", key)
            return PRESETS[value]
        if not isinstance(value, list | tuple):
            raise SettingsError(f"{key} is a list of stages, or one of {', '.join(PRESETS)}.", key)
        if len(value) > STAGES_MAX:
            raise SettingsError(f"{key} has {len(value)} entries; {STAGES_MAX} are the most.", key)
        stages = tuple(self._stage(f"{key}.{number}", entry) for number, entry in enumerate(value, 1))
        self._together(key, stages)
        return stages

    def _stage(self, where: str, entry: Any) -> Stage:
        """Return the stage for one entry; what a mapping leaves out is as in the known stage of that name."""
        if isinstance(entry, Stage):
            return entry
        if isinstance(entry, str):
            entry = {"name": entry}
        if not isinstance(entry, Mapping):
            raise SettingsError(
                f"{where} is {shown(entry)}; a name or a mapping with a name is needed.", where
            )
        if unknown := sorted(str(word) for word in entry if word not in KEYS):
            raise _fault(where, f"{unknown[0][:60]} is unknown. Known are {', '.join(KEYS)}.", unknown[0])
        name = entry.get("name")
        if not isinstance(name, str) or not _NAME.match(name):
            raise _fault(where, f"its name is {shown(name)}; at most 40 of a-z, 0-9, - and _ are needed.")
        if name in RESERVED:
            raise _fault(where, f"{name} is a column of the board already.")
        for word, given in entry.items():
            self._word(where, word, given)
        stage = replace(_KNOWN.get(name, Stage(name, agent_type=f"{name}-agent")), **entry)
        if stage.enter not in ENTERS:
            says = f"enter is {shown(stage.enter)}; it is one of {', '.join(ENTERS)}."
            raise _fault(where, says, "enter")
        if stage.is_escalation and stage.reason not in REASONS:
            raise _fault(where, f"an escalation column has a reason, one of {', '.join(REASONS)}.", "reason")
        if not stage.is_escalation and stage.reason:
            raise _fault(where, "only an escalation column has a reason.", "reason")
        return stage

    def _word(self, where: str, word: str, given: Any) -> None:
        if word == "is_reviewed":
            if not isinstance(given, bool):
                raise _fault(where, f"is_reviewed is {shown(given)}; true or false is needed.", word)
            return
        most = _LIMITS.get(word, ABOUT_MAX)
        if not isinstance(given, str) or len(given) > most:
            raise _fault(where, f"{word} is a text of at most {most} characters.", word)
        if word != "about" and not (given.isprintable() and given == given.strip()):
            raise _fault(where, f"{word} is one line without spaces around it.", word)

    def _together(self, key: str, stages: tuple[Stage, ...]) -> None:
        seen: dict[str, int] = {}
        reasons: dict[str, int] = {}
        for number, stage in enumerate(stages, 1):
            where = f"{key}.{number}"
            if stage.name in seen:
                raise _fault(where, f"{stage.name} is entry {seen[stage.name]} already.")
            if stage.is_escalation and stage.reason in reasons:
                raise _fault(where, f"entry {reasons[stage.reason]} is for {stage.reason} already.")
            seen[stage.name] = number
            if stage.is_escalation:
                reasons[stage.reason] = number
        pipeline = [stage for stage in stages if not stage.is_escalation]
        if not pipeline:
            raise SettingsError(f"{key} has at least one stage that is no escalation column.", key)
        usual = {stage.name for stage in ESCALATIONS if stage.reason not in reasons}
        for stage in stages:
            if stage.name in usual and not stage.is_escalation:
                says = f"{stage.name} is the name of an escalation column."
                raise _fault(f"{key}.{seen[stage.name]}", says)
        last = pipeline[-1].name
        if not pipeline[-1].is_reviewed:
            says = f"{last} is the last stage; what lands has been reviewed, so is_reviewed is true there."
            raise _fault(f"{key}.{seen[last]}", says)

    def plain(self, value: Any) -> list[Any]:
        return [_plain(stage) for stage in value]

    def in_words(self, value: list[Any]) -> str:
        """Return the stages as people read them."""
        stages = self.check("stages", value)
        return ", ".join(stage.name + ("" if stage.is_reviewed else " (no review)") for stage in stages)

    def says(self) -> str:
        return "a list of stages (names, or mappings with a name), or a preset: " + ", ".join(PRESETS)


def _fault(where: str, says: str, word: str = "") -> SettingsError:
    """Return the error about an entry, or about one word of it."""
    return SettingsError(f"{where}: {says}", f"{where}.{word}" if word else where)


def _plain(stage: Stage) -> Any:
    """Return the shortest entry that is read as this stage: its name, and what differs from the usual one."""
    usual = _KNOWN.get(stage.name) or Stage(stage.name, agent_type=f"{stage.name}-agent")
    given = {each.name: getattr(stage, each.name) for each in fields(stage)}
    own = {word: value for word, value in given.items() if value != getattr(usual, word)}
    return {"name": stage.name, **own} if own else stage.name
