"""Core: the settings of one project as one validated value, stored as JSON in the project's row.

The fields below are the schema: the key, type, default, range and help of a setting are defined here only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tasks.configuration.schema import (
    Branch,
    Choice,
    Document,
    Flag,
    Hosts,
    Ladders,
    Number,
    PerSeverity,
    Setting,
    SettingsError,
    Text,
    Whole,
    Words,
    setting,
)
from tasks.configuration.stages import DEV, Stage, Stages
from tasks.states import Severity

__all__ = ["SETTINGS", "ProjectSettings", "SettingsError"]

HOLD, SHIP, LOG = "hold", "ship", "log"
EFFECTS = (HOLD, SHIP, LOG)
KEEP, BRANCH, LAND = "keep", "branch", "land"
DISPUTED_WORK = (KEEP, BRANCH, LAND)
ON_FAILED = ("section", "project", "continue")
ON_DISPUTE = ("human", "judge", "discard")
REVIEWERS = ("first", "all", "turn")
ROLLBACK_MODES = ("interactive", "auto_retry", "strict")
ARCHIVES = ("cold", "keep", "recent", "delete")
STALE_ALERTS = ("log", "webhook", "none")

RULES = "Conflicts"
COMMANDS = "Commands"
DISAGREEMENT = "Disagreement"
SILENCE = "Silence"
ROUNDS = "Convergence"
GATE = "Hand-ins"
ROLLBACK = "Rollback"
NOTIFICATIONS = "Notifications"
PIPELINE = "Stages"
AGENTS = "Agents"
MONEY = "Money"
RECORDS = "Records"
GROUPS = (
    RULES,
    COMMANDS,
    DISAGREEMENT,
    SILENCE,
    ROUNDS,
    GATE,
    ROLLBACK,
    NOTIFICATIONS,
    PIPELINE,
    AGENTS,
    MONEY,
    RECORDS,
)

SHELL_COMMANDS = ("prepare_command", "build_command", "test_command")  # what hosts run

_SHARE = Number(0, 1)
_SECONDS = Number(1, 86_400, "seconds")
_COUNT = Whole(1, 100)
_DOLLARS = Number(0.01, 100_000, "US dollars", none="no cap")
_TOKENS = Whole(1_000, 10**12, none="no cap")
_SEVERITIES = tuple(severity.value for severity in Severity)


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """How a project's work is done; every key has a default that works."""

    # --- Conflicts
    policy: dict[str, str] = setting(
        {Severity.CRITICAL: HOLD, Severity.HIGH: HOLD, Severity.MEDIUM: SHIP, Severity.LOW: LOG},
        PerSeverity(Choice(EFFECTS), "hold, ship or log", fixed=((Severity.CRITICAL, HOLD),)), RULES,
        "What an open conflict of that severity does: hold the task until the ruling, ship it and ask "
        "afterwards, or only log the conflict. Critical is always hold.",
    )  # fmt: skip
    disputed_work: dict[str, str] = setting(
        dict.fromkeys(Severity, KEEP),
        PerSeverity(Choice(DISPUTED_WORK), "keep, branch or land", fixed=((Severity.CRITICAL, KEEP),)), RULES,
        "Where work goes that a disagreement of that severity would hold: nowhere, to a branch of its own on "
        "the remote, disputed/<task>-<commit>, perhaps not built nor reviewed, or to the target branch "
        "once build, tests and the rest of the review are through, also where the reviewer opened the "
        "disagreement. The dispute stays open. Critical work always stays here, and what is about "
        "security goes to a branch of its own at most.",
    )  # fmt: skip
    mandatory: tuple[str, ...] = setting(
        (Severity.CRITICAL.value, Severity.HIGH.value), Words(_SEVERITIES, "severities"), RULES,
        "Severities of findings that must be settled before anything lands.", path="review.issues.mandatory",
    )  # fmt: skip
    mandatory_opinions: tuple[str, ...] = setting(
        ("must",), Words(("must", "should"), "tags"), RULES,
        "Tags of a review's remarks, [MUST] and [SHOULD], that the coder may not drop without an objection, "
        "whatever severities are mandatory.", path="review.opinions.mandatory",
    )  # fmt: skip
    on_dispute: str = setting(
        "human", Choice(ON_DISPUTE), RULES,
        "Who settles a conflict unless somebody chooses otherwise: a human, the judge, or nobody, "
        "because the finding is discarded.", path="review.on_dispute.default",
    )  # fmt: skip
    prompt_user: bool = setting(
        True, Flag(), RULES,
        "Whether people are asked before the choice of on_dispute is carried out. If not, the program rules "
        "in the name of who set it; never on a critical conflict.", path="review.on_dispute.prompt_user",
    )  # fmt: skip
    judge_escalate_to: str = setting(
        "human", Choice(("human",)), RULES, "Who rules where the judge is uncertain.",
        path="review.judge.escalate_to",
    )  # fmt: skip
    judge_trust: float = setting(
        0.0, Number(0, 0.99), RULES,
        "The judge is asked about each new disagreement, and rules alone on those of a severity on which its "
        "agreement with people here is at least this share, with 95 % confidence. 0: never. One in five "
        "still waits for people; critical ones and those about security always do.",
        path="review.judge.trust",
    )  # fmt: skip
    mediator: bool = setting(
        False, Flag(), RULES,
        "Whether a mediator is asked for a proposal where no rule finds a middle way.",
        path="review.mediator",
    )  # fmt: skip
    low_auto_resolve: bool = setting(
        False, Flag(), RULES,
        "Settle a low conflict for the coder where people ruled so on the last three that read alike. It is "
        "a ruling in the name of who set this, and can be undone.",
    )  # fmt: skip
    precedent_days: int | None = setting(
        365, Whole(1, 36_500, none="never"), RULES,
        "Days after which a ruling is no longer shown or counted as a precedent.",
    )  # fmt: skip
    rounds_to_human: int = setting(
        3, _COUNT, RULES, "A task whose findings repeat over so many rounds goes to a human.",
    )  # fmt: skip
    rejections_max: int = setting(
        15, Whole(1, 10_000), RULES, "After so many rejections the task fails and asks for help."
    )
    on_failed: str = setting(
        "section", Choice(ON_FAILED), RULES,
        "What stops when a task fails: its section, the project, or nothing (continue).",
    )  # fmt: skip
    undo_seconds: float = setting(
        10.0, Number(0, 3600, "seconds"), RULES, "A ruling made on a page takes effect after so long."
    )

    # --- Commands
    detect_commands: bool = setting(
        True, Flag(), COMMANDS,
        "Whether commands are looked for, by trying, where all are empty; if not, nothing is run.",
    )  # fmt: skip
    prepare_command: str = setting(
        "", Text(), COMMANDS,
        "Shell command that brings what build and tests need, such as pip install -e '.[tests]'.",
        path="prepare.command",
    )  # fmt: skip
    prepare_timeout: float = setting(
        600.0, _SECONDS, COMMANDS, "Seconds after which preparing counts as failed.", path="prepare.timeout"
    )
    allowed_hosts: str = setting(
        "", Hosts(), COMMANDS,
        "Hosts that prepare, build and tests may reach from inside the sandbox, separated by spaces. While "
        "it is empty and no task has landed, a trial of the target branch may reach what is public; what it "
        "reached is kept here.",
        path="sandbox.allowed_hosts",
    )  # fmt: skip
    build_command: str = setting(
        "", Text(), COMMANDS, "Shell command that builds. If any command is set, none is looked for.",
        path="build.command",
    )  # fmt: skip
    build_timeout: float = setting(
        600.0, _SECONDS, COMMANDS, "Seconds after which the build counts as failed.", path="build.timeout"
    )
    test_command: str = setting(
        "", Text(), COMMANDS, "Shell command that tests. If any command is set, none is looked for.",
        path="test.command",
    )  # fmt: skip
    test_timeout: float = setting(
        600.0, _SECONDS, COMMANDS, "Seconds after which the tests count as failed.", path="test.timeout"
    )
    test_required: bool = setting(
        True, Flag(), COMMANDS,
        "Whether red tests send the work back. If not, the reviewer and the task's page are told of them; a "
        "red build still sends it back.", path="test.required",
    )  # fmt: skip
    host_label: str = setting(
        "", Text(), COMMANDS,
        "Only hosts that have this label (STEROIDS_HOST_LABELS) run anything of it; empty: every host may.",
    )  # fmt: skip
    review_after_rebase: bool = setting(
        False, Flag(), COMMANDS,
        "Whether work that must be rebased before landing is reviewed once more as it is then: once, however "
        "often the target branch moves on.",
    )  # fmt: skip

    # --- Disagreement
    disagree_round_share: float = setting(
        0.5, _SHARE, DISAGREEMENT,
        "Warn when more than this share of a round's critical and high findings is disputed.",
    )  # fmt: skip
    disagree_min_denominator: int = setting(
        2, _COUNT, DISAGREEMENT, "That share is only taken of at least so many answered findings.",
    )  # fmt: skip
    disagree_absolute: int = setting(
        5, Whole(0, 1000), DISAGREEMENT, "More disagreements than this in one round must be justified.",
    )  # fmt: skip
    disagree_session_share: float = setting(
        0.4, _SHARE, DISAGREEMENT,
        "Alert when more than this share is disputed over the rounds of session_window.",
    )  # fmt: skip
    session_window: int = setting(
        3, _COUNT, DISAGREEMENT, "Rounds with critical or high findings for disagree_session_share.",
    )  # fmt: skip
    same_finding_minimum: float = setting(
        0.3, _SHARE, DISAGREEMENT,
        "Likeness from which a finding at the same place counts as an earlier one raised again.",
    )  # fmt: skip

    # --- Silence
    unaddressed_high_threshold: int = setting(
        2, _COUNT, SILENCE, "From so many unanswered high findings in a round on, people are warned.",
    )  # fmt: skip
    unaddressed_critical_threshold: int = setting(
        1, _COUNT, SILENCE, "From so many unanswered critical findings on, people are warned.",
    )  # fmt: skip
    critical_block: int = setting(
        2, _COUNT, SILENCE, "From so many unanswered critical findings on, the round waits for a human.",
    )  # fmt: skip
    pattern_threshold: int = setting(
        3, _COUNT, SILENCE, "A concern unanswered in so many rounds is systematic, whatever its severity.",
    )  # fmt: skip
    enable_semantic_check: bool = setting(
        True, Flag(), SILENCE, "Whether the words of a finding are looked for in what changed.",
    )  # fmt: skip
    semantic_overlap_minimum: float = setting(
        0.3, _SHARE, SILENCE, "Share of a finding's words that a change must hold to count as an answer.",
    )  # fmt: skip
    soft_match_overlap: float = setting(
        0.5, _SHARE, SILENCE, "Share of its words from which a finding may be answered without its id.",
    )  # fmt: skip
    false_positive_penalty: float = setting(
        0.1, _SHARE, SILENCE, "What a heuristic's weight loses when a human calls its flag wrong.",
    )  # fmt: skip

    # --- Convergence
    severity_weights: dict[str, int] = setting(
        {Severity.CRITICAL: 16, Severity.HIGH: 4, Severity.MEDIUM: 2, Severity.LOW: 1},
        PerSeverity(Whole(0, 1000), "a whole number"), ROUNDS,
        "How much a task of that severity weighs. None weighs more than a graver one.",
    )  # fmt: skip
    stall_threshold: int | None = setting(
        None, Whole(1, 100, none="2 below 10 tasks, 3 up to 30, 4 above"), ROUNDS,
        "Rounds without net progress that make a stall. Left empty, a project of up to 3 tasks is never "
        "called stalled.",
    )  # fmt: skip
    divergence_threshold: int | None = setting(
        None, Whole(0, 10_000, none="8 below 10 tasks, 12 up to 30, 16 above"), ROUNDS,
        "Weight by which new work may exceed settled work before people are warned.",
    )  # fmt: skip
    critical_override: bool = setting(
        True, Flag(), ROUNDS, "Whether any new critical task is a warning, whatever the weights say.",
    )  # fmt: skip
    max_rounds: int | None = setting(
        None, Whole(1, 1000, none="six rounds for ten tasks, at least ten"), ROUNDS,
        "Rounds after which a human chooses to go on or to end.",
    )  # fmt: skip
    extend_by: int = setting(5, _COUNT, ROUNDS, "Rounds that are added when somebody chooses to go on.")
    hard_limit: int = setting(
        50, Whole(1, 1000), ROUNDS, "Rounds beyond which nobody can extend; max_rounds is not more.",
    )  # fmt: skip
    complete_deferred_weight_max: int = setting(
        4, Whole(0, 10_000), ROUNDS, "Weight of deferred work with which a project still counts as complete.",
    )  # fmt: skip

    # --- Hand-ins
    max_retries: int = setting(
        2, Whole(0, 20), GATE, "Runs that are repeated because of their hand-in, after the first one.",
    )  # fmt: skip
    retry_example_tokens: int = setting(
        2000, Whole(0, 100_000), GATE, "Length of the example in a retry's prompt; 4 characters a token.",
    )  # fmt: skip

    thin_content_chars: int = setting(
        200, Whole(0, 100_000), GATE,
        "A gap's section in a proposal that has fewer characters is called thin. That is a warning.",
    )  # fmt: skip
    first_example_tokens: int = setting(
        1000, Whole(0, 100_000), GATE,
        "Length of the example in the first prompt of a round about documents; 4 characters a token.",
    )  # fmt: skip
    gaps_per_round: int = setting(
        4, _COUNT, GATE, "How many gaps the engineer of a round about documents is given at once, at most.",
    )  # fmt: skip

    # --- Rollback
    rollback_mode: str = setting(
        "interactive", Choice(ROLLBACK_MODES), ROLLBACK,
        "A round about documents whose retries are used up: ask every time (interactive), begin it again by "
        "itself the first time (auto_retry), or ask every time with an analysis after the first (strict).",
    )  # fmt: skip
    max_rollbacks_session: int = setting(
        7, Whole(0, 10), ROLLBACK, "How often rounds of one task may be taken back."
    )
    analysis_after: int = setting(
        2, _COUNT, ROLLBACK, "Failed attempts at one round after which their causes are analysed."
    )
    backup_rounds: int = setting(3, Whole(1, 5), ROLLBACK, "How many rounds back the choice reaches.")

    rollback_archives: str = setting(
        "cold", Choice(ARCHIVES), ROLLBACK,
        "What becomes of the commits of rounds that were taken back once the project has ended: kept for the "
        "days of the retention settings (cold), for good (keep), those of each task's last rollback for good "
        "(recent), or let go that night (delete). Documents, reviews and rulings stay in any case.",
    )  # fmt: skip

    # --- Notifications
    nudge_hours: int = setting(
        4, Whole(0, 720), NOTIFICATIONS,
        "Hours after which who holds a dispute is reminded of it; 0 is never. Time decides nothing.",
    )  # fmt: skip
    lead_hours: int = setting(
        24, Whole(0, 720), NOTIFICATIONS,
        "Hours after which the people on call and the leads are told that nobody has ruled; 0 is never.",
    )  # fmt: skip
    timeout_days: int = setting(
        7, Whole(1, 365), NOTIFICATIONS, "A dispute that is open for more days than this is stale.",
        path="disputes.timeoutDays",
    )  # fmt: skip
    alert_on_stale: str = setting(
        "log", Choice(STALE_ALERTS), NOTIFICATIONS,
        "What follows when a dispute is stale: an event and a line in the log (log), also a message to its "
        "holder, the leads and the project's channels (webhook), or nothing (none).",
        path="disputes.alertOnStale",
    )  # fmt: skip

    # --- Stages
    stages: tuple[Stage, ...] = setting(
        (DEV,), Stages(), PIPELINE,
        "The stages that each task goes through in this order: a list of names or of mappings with name, "
        "title, agent_type, ladder, is_reviewed and about. A further entry with enter escalation and a "
        "reason takes the place of the usual column of specialists for that reason.",
    )  # fmt: skip
    dispute_rounds_to_human: int = setting(
        3, _COUNT, PIPELINE,
        "Two stages that answer each other so often, and still disagree, make a human decide.",
    )  # fmt: skip

    # --- Agents
    model_ladder: dict[str, dict[str, str]] = setting(
        {}, Ladders(), AGENTS,
        'For each type of agent the model by the count of failures, such as {"dev-agent": {"0-1": "small", '
        '"2-3": "large", "4+": "escalate"}}. A word is the model or the tier of an agent, or a model that '
        "the first agent of the type is told to take.",
    )  # fmt: skip
    reviewers: str = setting(
        "first", Choice(REVIEWERS), AGENTS,
        "Who reviews a submission: the first reviewer that is free (first), each of them at the same time, "
        "where the strictest verdict stands (all), or one after the other by rounds (turn).",
    )  # fmt: skip
    other_vendor_reviews: bool = setting(
        False, Flag(), AGENTS,
        "Whether nobody reviews the work of a model of its own vendor; where only such reviewers are "
        "there, the task waits and says so.",
    )  # fmt: skip

    # --- Money
    run_cost_max: float | None = setting(
        None, _DOLLARS, MONEY, "What one run may cost. It is stopped there, and a human is asked."
    )
    task_cost_max: float | None = setting(
        None, _DOLLARS, MONEY, "What all runs of a task may cost together. Then a human is asked."
    )
    day_cost_max: float | None = setting(
        None, _DOLLARS, MONEY,
        "What the project's runs may cost in one UTC day. Nothing is started until the day is over.",
    )  # fmt: skip
    project_cost_max: float | None = setting(
        None, _DOLLARS, MONEY,
        "What all runs of the project may cost. Nothing is started until it is raised.",
    )  # fmt: skip
    run_tokens_max: int | None = setting(
        None, _TOKENS, MONEY,
        "Tokens of one run, for agents whose cost nobody knows. Those from a cache do not count.",
    )  # fmt: skip
    task_tokens_max: int | None = setting(None, _TOKENS, MONEY, "Tokens of all runs of a task together.")
    day_tokens_max: int | None = setting(None, _TOKENS, MONEY, "Tokens of the project's runs in one UTC day.")

    # --- Records
    records_branch: str = setting(
        "", Branch(), RECORDS,
        "The branch of the repository on which the program keeps dispute.md and decisions.md, and the folder "
        "of the rounds about documents. Empty: none. It is made where it is missing, and never forced.",
    )  # fmt: skip
    records_path: str = setting(
        "", Text(), RECORDS, "The folder on that branch in which they lie; empty: its top.",
    )  # fmt: skip
    todo_path: str = setting(
        "", Document(), RECORDS,
        "The TODO.md in the repository that the project follows, on its target branch: new lines become "
        "tasks, and ticked boxes close theirs. Empty: none.",
    )  # fmt: skip
    todo_branch: str = setting(
        "", Branch(), RECORDS,
        "The branch on which the program ticks the boxes of tasks that landed; the target branch, or one of "
        "its own that somebody merges. Empty: it ticks none.",
    )  # fmt: skip
    specification: str = setting(
        "", Document(), RECORDS,
        "The specification in the repository, into which people may have rulings drafted as amendments. "
        "Empty: none.",
    )  # fmt: skip

    def __post_init__(self) -> None:
        for key, entry in SETTINGS.items():
            object.__setattr__(self, key, entry.kind.check(key, getattr(self, key)))
        if fault := self.disorder():
            raise fault

    def disorder(self) -> SettingsError | None:
        """Return the error if two values are valid by themselves but not together; otherwise None."""
        weights = list(self.severity_weights.values())
        if weights != sorted(weights, reverse=True):
            return SettingsError(
                "severity_weights gives a graver severity no less weight.", "severity_weights"
            )
        if self.max_rounds is not None and self.max_rounds > self.hard_limit:
            return SettingsError(f"max_rounds is at most hard_limit, {self.hard_limit}.", "max_rounds")
        return None

    @classmethod
    def from_json(cls, data: Any) -> "ProjectSettings":
        """Return the settings in `data` over the defaults. Raises SettingsError naming the key at fault."""
        if not isinstance(data, dict):
            raise SettingsError("settings are a JSON object.")
        if unknown := sorted(str(key) for key in set(data) - set(SETTINGS)):
            raise SettingsError(f"unknown setting: {', '.join(unknown)}.", unknown[0])
        return cls(**{key: completed(key, value) for key, value in data.items()})

    @classmethod
    def salvaged(cls, data: Any) -> "tuple[ProjectSettings, list[SettingsError]]":
        """Return what can be used of a row that was edited past every check, and the errors in the rest."""
        good, faults = {}, []
        for key, value in data.items() if isinstance(data, dict) else ():
            try:
                if key not in SETTINGS:
                    raise SettingsError(f"unknown setting: {key}.", str(key))
                good[key] = SETTINGS[key].kind.check(key, completed(key, value))
            except SettingsError as error:
                faults.append(error)
        try:
            return cls(**good), faults
        except SettingsError as error:
            return cls(**{key: value for key, value in good.items() if key != error.key}), [*faults, error]

    def replaced(self, changes: Mapping[str, Any]) -> "ProjectSettings":
        """Return the settings with these values; in a value per severity, severities left out keep theirs."""
        told = self.to_json()
        for key, value in changes.items():
            is_partial = (
                key in told and isinstance(SETTINGS[key].kind, PerSeverity) and isinstance(value, Mapping)
            )
            told[key] = {**told[key], **value} if is_partial else value
        return ProjectSettings.from_json(told)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON values."""
        return {key: self.plain(key) for key in SETTINGS}

    def plain(self, key: str) -> Any:
        """Return one setting as a plain JSON value."""
        return SETTINGS[key].kind.plain(getattr(self, key))

    def changed(self) -> dict[str, Any]:
        """Return what differs from the defaults, as plain JSON values: what a project's row stores."""
        defaults = DEFAULTS.to_json()
        return {key: value for key, value in self.to_json().items() if value != defaults[key]}

    def effect(self, severity: str) -> str:
        """Return hold, ship or log for a conflict of this severity; an unknown severity counts as medium."""
        return self.policy.get(severity, self.policy[Severity.MEDIUM])

    def is_mandatory(self, severity: str | None, word: str = "") -> bool:
        """Whether a finding must be settled, by its severity or by its reviewer's tag, such as MUST."""
        return severity in self.mandatory or word.strip().lower() in self.mandatory_opinions


SETTINGS: dict[str, Setting] = {item.name: item.metadata["setting"] for item in fields(ProjectSettings)}
DEFAULTS = ProjectSettings()


def in_words(key: str, value: Any) -> str:
    """Return a plain value in words for people: in help, in tables and in the record of a change."""
    kind = SETTINGS[key].kind
    if value is None and isinstance(kind, Whole | Number):
        return kind.none
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(kind, Stages):
        return kind.in_words(value)
    if isinstance(kind, Ladders):
        return "; ".join(f"{name} {in_words('policy', steps)}" for name, steps in value.items()) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value) or "empty"


def default_of(key: str) -> str:
    """Return the default of a setting in words."""
    return in_words(key, DEFAULTS.plain(key))


def completed(key: str, value: Any) -> Any:
    """Return the value; if it is one per severity, those it leaves out get their defaults."""
    if isinstance(SETTINGS[key].kind, PerSeverity) and isinstance(value, Mapping):
        return {**getattr(DEFAULTS, key), **value}
    return value
