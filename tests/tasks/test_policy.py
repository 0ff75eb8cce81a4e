"""The settings of a project: defaults that work, what may be set, and what is refused by name."""

import json
from dataclasses import FrozenInstanceError, fields
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.configuration.policy import (
    EFFECTS,
    GROUPS,
    HOLD,
    LOG,
    ON_FAILED,
    SETTINGS,
    SHIP,
    ProjectSettings,
    SettingsError,
)
from tasks.states import Severity
from tests.cases import for_each
from tests.tasks.valid_settings import valid_settings

DEFAULTS: dict[str, Any] = {
    "thin_content_chars": 200,
    "first_example_tokens": 1000,
    "gaps_per_round": 4,
    "records_branch": "",
    "records_path": "",
    "todo_path": "",
    "rollback_archives": "cold",
    "todo_branch": "",
    "specification": "",
    "policy": {"critical": "hold", "high": "hold", "medium": "ship", "low": "log"},
    "disputed_work": dict.fromkeys(("critical", "high", "medium", "low"), "keep"),
    "rejections_max": 15,
    "undo_seconds": 10.0,
    "mandatory": ["critical", "high"],
    "on_failed": "section",
    "detect_commands": True,
    "prepare_command": "",
    "prepare_timeout": 600.0,
    "allowed_hosts": "",
    "build_command": "",
    "build_timeout": 600.0,
    "test_command": "",
    "test_timeout": 600.0,
    "host_label": "",
    "review_after_rebase": False,
    # The limits, and the ones of the arbitration, the ladders and stuck loops
    "mandatory_opinions": ["must"],
    "on_dispute": "human",
    "prompt_user": True,
    "judge_escalate_to": "human",
    "low_auto_resolve": False,
    "judge_trust": 0.0,
    "precedent_days": 365,
    "rounds_to_human": 3,
    "nudge_hours": 4,
    "lead_hours": 24,
    "timeout_days": 7,
    "alert_on_stale": "log",
    "test_required": True,
    "disagree_round_share": 0.5,
    "disagree_min_denominator": 2,
    "disagree_absolute": 5,
    "disagree_session_share": 0.4,
    "session_window": 3,
    "same_finding_minimum": 0.3,
    "unaddressed_high_threshold": 2,
    "unaddressed_critical_threshold": 1,
    "critical_block": 2,
    "pattern_threshold": 3,
    "enable_semantic_check": True,
    "semantic_overlap_minimum": 0.3,
    "soft_match_overlap": 0.5,
    "false_positive_penalty": 0.1,
    "severity_weights": {"critical": 16, "high": 4, "medium": 2, "low": 1},
    "stall_threshold": None,
    "divergence_threshold": None,
    "critical_override": True,
    "max_rounds": None,
    "extend_by": 5,
    "hard_limit": 50,
    "complete_deferred_weight_max": 4,
    "max_retries": 2,
    "retry_example_tokens": 2000,
    "rollback_mode": "interactive",
    "max_rollbacks_session": 7,
    "analysis_after": 2,
    "backup_rounds": 3,
    "stages": ["dev"],
    "dispute_rounds_to_human": 3,
    "model_ladder": {},
    "reviewers": "first",
    "other_vendor_reviews": False,
    "mediator": False,
    "run_cost_max": None,
    "task_cost_max": None,
    "day_cost_max": None,
    "project_cost_max": None,
    "run_tokens_max": None,
    "task_tokens_max": None,
    "day_tokens_max": None,
}


def policy(**effects: str) -> dict[str, Any]:
    """Settings with these effects, the others as they are by default."""
    return {"policy": effects}


# --- Defaults ---------------------------------------------------------------------------------------------


@for_each("key", DEFAULTS)
def test_a_setting_has_its_default(key: str) -> None:
    assert ProjectSettings().to_json()[key] == DEFAULTS[key]


def test_the_defaults_are_all_the_settings_there_are() -> None:
    assert {field.name for field in fields(ProjectSettings)} == set(DEFAULTS)


def test_no_settings_are_the_defaults() -> None:
    assert ProjectSettings.from_json({}) == ProjectSettings()


def test_two_projects_do_not_share_a_policy() -> None:
    one, other = ProjectSettings(), ProjectSettings()
    one.policy["low"] = HOLD

    assert other.policy["low"] == LOG


def test_the_settings_of_a_project_are_one_value() -> None:
    with pytest.raises(FrozenInstanceError):
        ProjectSettings().undo_seconds = 0  # type: ignore[misc]


# --- What may be set --------------------------------------------------------------------------------------

ALLOWED = [
    ("rejections_max", 1),  # the first rejection is the last one
    ("rejections_max", 15),  # the default, said aloud
    ("rejections_max", 1000),  # as good as none
    ("undo_seconds", 0),  # a ruling takes effect at once
    ("undo_seconds", 0.5),  # a fraction
    ("undo_seconds", 10),  # a whole number stands for a float
    ("undo_seconds", 3600),  # the most
    ("build_timeout", 1),  # the least
    ("build_timeout", 1.5),
    ("build_timeout", 86_400),  # the most
    ("test_timeout", 1),
    ("test_timeout", 86_400.0),
    ("mandatory", []),  # nothing is: the coder may drop every finding
    ("mandatory", ["critical"]),  # ARB-1: which ones are mandatory is a setting of the project
    ("mandatory", ["critical", "high", "medium", "low"]),  # everything is
    ("on_failed", "section"),  # a failed task stops its section
    ("on_failed", "project"),  # it stops all of them
    ("on_failed", "continue"),  # it stops nothing
    ("detect_commands", False),  # only the commands named here
    ("allowed_hosts", "packages.example.org *.example.net:8443 *"),
    ("build_command", "make all"),
    ("test_command", "make check && true"),  # the shell's language
    ("test_command", "prüfe"),  # any script
    ("host_label", "gpu"),
    ("review_after_rebase", True),
    ("mandatory_opinions", ["must", "should"]),
    ("on_dispute", "judge"),
    ("on_dispute", "discard"),
    ("alert_on_stale", "none"),
    ("disagree_round_share", 0),
    ("disagree_round_share", 1),
    ("severity_weights", {"critical": 8, "high": 4, "medium": 2, "low": 1}),
    ("severity_weights", {"critical": 1, "high": 1, "medium": 1, "low": 1}),  # none weighs more
    ("max_rounds", 50),  # as many as hard_limit
    ("max_rounds", None),  # the formula of END-4, said aloud
    ("stall_threshold", 2),  # else by the number of tasks
    ("divergence_threshold", 8),
    ("max_retries", 0),  # VAL-8: the first run is no retry
    ("rollback_mode", "auto_retry"),  # RB-7
    ("rollback_mode", "strict"),
    ("max_rollbacks_session", 10),  # RB-5
    ("backup_rounds", 5),
    ("model_ladder", {"dev": {"0": "small", "1-3": "large", "4+": "escalate"}}),  # LAD-1
    ("model_ladder", {"dev": {"0+": "large"}, "qa": {"0-1": "small", "2+": "large"}}),  # never gives up
]


@for_each(("key", "value"), ALLOWED, ids=str)
def test_a_setting_may_be_changed(key: str, value: Any) -> None:
    changed = ProjectSettings.from_json({key: value}).to_json()

    assert changed == DEFAULTS | {key: value}


@for_each("key", ["undo_seconds", "build_timeout", "test_timeout"])
def test_a_whole_number_of_seconds_becomes_a_float(key: str) -> None:
    assert isinstance(getattr(ProjectSettings.from_json({key: 5}), key), float)


def test_a_tuple_is_as_good_as_a_list() -> None:
    assert ProjectSettings.from_json({"mandatory": ("high",)}).mandatory == ("high",)


def test_the_settings_given_are_not_changed() -> None:
    given_settings = {"mandatory": ["high"], "policy": {"low": "hold"}, "undo_seconds": 3}
    ProjectSettings.from_json(given_settings)

    assert given_settings == {"mandatory": ["high"], "policy": {"low": "hold"}, "undo_seconds": 3}


# --- What may not -----------------------------------------------------------------------------------------

REFUSED = [
    ({"polcy": {}}, "unknown setting: polcy"),  # a slip of the pen
    ({"b": 1, "a": 2}, "unknown setting: a, b"),  # all of them, in order
    ({"rejections_max": 0}, "rejections_max is 0; it is between 1 and 10000"),
    ({"rejections_max": -3}, "rejections_max is -3; it is between 1 and 10000"),
    ({"rejections_max": 1.5}, "rejections_max is 1.5; a whole number is needed"),
    (
        {"rejections_max": 15.0},
        "rejections_max is 15.0; a whole number is needed",
    ),  # a count is a whole number
    ({"rejections_max": "15"}, "rejections_max is '15'; a whole number is needed"),  # nothing is guessed
    ({"rejections_max": True}, "rejections_max is True; a whole number is needed"),  # true is no number
    ({"rejections_max": None}, "rejections_max is None; a whole number is needed"),
    ({"undo_seconds": -0.1}, "undo_seconds is -0.1; it is between 0 and 3600"),
    ({"undo_seconds": 3600.1}, "undo_seconds is 3600.1; it is between 0 and 3600"),
    (
        {"undo_seconds": float("nan")},
        "undo_seconds is nan; it is between 0 and 3600",
    ),  # JSON as Python reads it
    ({"undo_seconds": float("inf")}, "undo_seconds is inf; it is between 0 and 3600"),
    ({"undo_seconds": "10"}, "undo_seconds is '10'; a number is needed"),
    ({"undo_seconds": False}, "undo_seconds is False; a number is needed"),
    ({"build_timeout": 0}, "build_timeout is 0; it is between 1 and 86400 seconds"),
    ({"build_timeout": 0.99}, "build_timeout is 0.99; it is between 1 and 86400 seconds"),
    ({"build_timeout": 86_401}, "build_timeout is 86401; it is between 1 and 86400 seconds"),
    ({"build_timeout": float("nan")}, "build_timeout is nan; it is between 1 and 86400 seconds"),
    ({"build_timeout": None}, "build_timeout is None; a number is needed"),
    ({"test_timeout": -1}, "test_timeout is -1; it is between 1 and 86400 seconds"),
    ({"test_timeout": 1e9}, "test_timeout is 1000000000.0; it is between 1 and 86400 seconds"),
    ({"test_timeout": []}, "test_timeout is []; a number is needed"),
    ({"mandatory": ["urgent"]}, "mandatory holds unknown severities: urgent"),
    ({"mandatory": ["high", "b", "a"]}, "mandatory holds unknown severities: a, b"),
    ({"mandatory": ["HIGH"]}, "mandatory holds unknown severities: HIGH"),  # as in the database
    ({"mandatory": "high"}, "mandatory"),  # a word is no list of words
    ({"on_failed": "stop"}, "on_failed is 'stop'; it is one of section, project, continue"),
    ({"on_failed": ""}, "on_failed is ''"),
    ({"on_failed": None}, "on_failed is None; it is one of"),
    ({"on_failed": ["section"]}, "on_failed is ['section']; it is one of"),
    ({"detect_commands": 1}, "detect_commands is 1; true or false is needed"),
    ({"detect_commands": "yes"}, "detect_commands is 'yes'; true or false is needed"),
    ({"review_after_rebase": None}, "review_after_rebase is None; true or false is needed"),
    ({"build_command": ["make"]}, "build_command is ['make']; a text is needed"),  # the shell's language
    ({"build_command": None}, "build_command is None; a text is needed"),
    ({"test_command": 0}, "test_command is 0; a text is needed"),
    ({"allowed_hosts": "a.example b c/d"}, "allowed_hosts holds 'c/d'; a host is a name such as"),
    ({"todo_branch": "a b"}, "todo_branch is 'a b'; the name of a branch such as main"),
    ({"records_branch": "refs/heads/x"}, "records_branch is 'refs/heads/x'; the name of a branch"),
    ({"policy": "hold"}, "policy maps each severity to hold, ship or log"),
    ({"policy": ["hold"]}, "policy maps each severity to hold, ship or log"),
    ({"policy": None}, "policy maps each severity to hold, ship or log"),
    (policy(urgent="hold"), "policy names each of critical, high, medium and low once"),
    (policy(High="hold"), "policy names each of critical, high, medium and low once"),
    (policy(high="block"), "policy.high is 'block'; it is one of hold, ship, log"),
    (policy(low=""), "policy.low is ''; it is one of hold, ship, log"),
    (policy(medium="HOLD"), "policy.medium is 'HOLD'; it is one of hold, ship, log"),
    ({"policy": {"low": None}}, "policy.low is None; it is one of hold, ship, log"),
    ({"policy": {"low": ["log"]}}, "policy.low is ['log']; it is one of hold, ship, log"),
    (policy(critical="ship"), "policy.critical is always hold"),  # a critical conflict waits for a human
    (policy(critical="log"), "policy.critical is always hold"),
    ({"mandatory_opinions": ["could"]}, "mandatory_opinions holds unknown tags: could"),
    ({"on_dispute": "vote"}, "on_dispute is 'vote'; it is one of human, judge, discard"),
    ({"judge_escalate_to": "judge"}, "judge_escalate_to is 'judge'; it is always human"),  # ARB-7
    ({"alert_on_stale": None}, "alert_on_stale is None; it is one of log, webhook, none"),
    ({"disagree_round_share": 1.01}, "disagree_round_share is 1.01; it is between 0 and 1"),
    ({"severity_weights": {"low": 3}}, "severity_weights gives a graver severity no less weight"),
    ({"severity_weights": {"low": -1}}, "severity_weights.low is -1; it is between 0 and 1000"),
    ({"severity_weights": {"low": 0.5}}, "severity_weights.low is 0.5; a whole number is needed"),
    ({"severity_weights": {"none": 1}}, "severity_weights names each of critical, high, medium and low"),
    ({"severity_weights": 16}, "severity_weights maps each severity to a whole number"),
    ({"max_rounds": 0}, "max_rounds is 0; it is between 1 and 1000, or empty"),
    ({"max_rounds": 51}, "max_rounds is at most hard_limit, 50"),
    ({"max_rounds": 9, "hard_limit": 8}, "max_rounds is at most hard_limit, 8"),
    ({"hard_limit": None}, "hard_limit is None; a whole number is needed"),  # only max_rounds has a formula
    ({"max_rollbacks_session": 11}, "max_rollbacks_session is 11; it is between 0 and 10"),  # RB-5
    ({"backup_rounds": 6}, "backup_rounds is 6; it is between 1 and 5"),
    ({"rollback_mode": "INTERACTIVE"}, "rollback_mode is 'INTERACTIVE'; it is one of interactive"),
    ({"build_command": "x" * 10_001}, "build_command has 10001 characters; 10000 are the most"),
    ({"model_ladder": []}, "model_ladder maps types of agent to their ladders"),
    ({"model_ladder": {"": {"0+": "a"}}}, "model_ladder names a type of agent by a text"),
    ({"model_ladder": {"dev": {}}}, "model_ladder.dev maps ranges of failures to models"),
    ({"model_ladder": {"dev": "small"}}, "model_ladder.dev maps ranges of failures to models"),
]

# LAD-1: a bad ladder is refused, naming the fault.
BAD_LADDERS = [
    ({"1+": "a"}, "1+ leaves 0 out"),
    ({"0-1": "a", "4+": "b"}, "4+ leaves 2-3 out"),
    ({"0-2": "a", "2+": "b"}, "2+ overlaps the step before"),
    ({"0-1": "a", "0-1 ": "b"}, "0-1  is no range"),
    ({"0": "a", "0+": "b"}, "0+ overlaps the step before"),
    ({"0+": "a", "5+": "b"}, "5+ comes after the open end"),
    ({"0-1": "a"}, 'model_ladder.dev has no open end; its last step is one such as "2+"'),
    ({"0-1": "escalate", "2+": "b"}, "0-1 escalates, so it is the last step: 0+"),
    ({"3-1": "a"}, "3-1 ends before it starts"),
    ({"-1": "a"}, "-1 is no range of failures: 0-1, 2 or 3+"),
    ({"often": "a"}, "often is no range of failures"),
    ({"0+": ""}, "0+ is ''; a model or escalate is needed"),
    ({"0+": None}, "0+ is None; a model or escalate is needed"),
    ({0: "a"}, "model_ladder.dev is no range of failures"),  # a value made past JSON
    ({str(count): "a" for count in range(51)}, "model_ladder.dev has more than 50 steps"),
]


@for_each(("ladder", "fault"), BAD_LADDERS, ids=lambda value: str(value)[:40])
def test_a_bad_ladder_is_refused_naming_its_step(ladder: dict[Any, Any], fault: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        ProjectSettings.from_json({"model_ladder": {"dev": ladder}})

    assert fault in str(refusal.value)
    assert refusal.value.key.startswith("model_ladder.dev")


def test_the_steps_of_a_ladder_are_kept_in_their_order() -> None:
    # A database may hand them back in another one.
    stored = {"dev": {"10+": "escalate", "2-9": "large", "0-1": "small"}}
    ladder = ProjectSettings.from_json({"model_ladder": stored}).model_ladder["dev"]

    assert list(ladder) == ["0-1", "2-9", "10+"]


@for_each(("settings", "message"), REFUSED, ids=str)
def test_a_setting_is_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        ProjectSettings.from_json(settings)

    assert str(refusal.value).startswith(message)


@for_each(("settings", "message"), REFUSED, ids=str)
def test_a_refusal_holds_the_key(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        ProjectSettings.from_json(settings)

    assert refusal.value.key
    assert refusal.value.key in str(refusal.value)


@for_each(
    "settings",
    [
        {"mandatory": 5},  # no list: TypeError, "'int' object is not iterable"
        {"mandatory": None},  # no list
        {"mandatory": [1]},  # no words: TypeError while the message is put together
        {"mandatory": [["high"]]},  # no words: TypeError, "unhashable type"
        {"undo_seconds": 10**400},  # JSON has such numbers: OverflowError
        {"build_timeout": 10**400},
        [],  # the column may hold any JSON; this one passes as "no settings"
        ["policy"],  # ValueError of dict()
        None,  # TypeError of set()
    ],
    ids=lambda settings: str(settings)[:30],
)
def test_whatever_json_holds_is_refused_in_the_same_way(settings: Any) -> None:
    with pytest.raises(SettingsError):
        ProjectSettings.from_json(settings)


def test_a_refusal_is_a_value_error() -> None:
    assert issubclass(SettingsError, ValueError)


def test_the_value_itself_refuses_a_policy_with_a_hole() -> None:
    with pytest.raises(SettingsError, match=r"^policy names each of critical, high, medium and low once\.$"):
        ProjectSettings(policy={"critical": "hold"})


# --- The policy -------------------------------------------------------------------------------------------


@for_each(("severity", "effect"), list(product(["high", "medium", "low"], EFFECTS)), ids=str)
def test_any_effect_may_be_chosen_below_critical(severity: str, effect: str) -> None:
    settings = ProjectSettings.from_json(policy(**{severity: effect}))

    assert settings.effect(severity) == effect


@for_each(("severity", "effect"), list(product(["high", "medium", "low"], EFFECTS)), ids=str)
def test_the_severities_that_are_not_named_keep_their_effect(severity: str, effect: str) -> None:
    settings = ProjectSettings.from_json(policy(**{severity: effect})).to_json()["policy"]

    assert settings == DEFAULTS["policy"] | {severity: effect}


@for_each(
    ("severity", "effect"),
    [
        ("critical", HOLD),  # waits for a human, always
        ("high", HOLD),  # waits for a human
        ("medium", SHIP),  # lands; the ruling comes after
        ("low", LOG),  # recorded; nothing waits
        (Severity.LOW, LOG),  # the member is as good as its word
        ("", SHIP),  # SEV-9: none counts as medium
        ("urgent", SHIP),  # SEV-9: an unknown one counts as medium
        ("CRITICAL", SHIP),  # reading capitals is the parser's work
    ],
)
def test_a_conflict_has_the_effect_of_its_severity(severity: str, effect: str) -> None:
    assert ProjectSettings().effect(severity) == effect


@for_each("effect", EFFECTS)
def test_an_unknown_severity_follows_what_medium_is_set_to(effect: str) -> None:
    assert ProjectSettings.from_json(policy(medium=effect)).effect("unheard of") == effect


def test_the_words_are_the_ones_of_the_database() -> None:
    assert EFFECTS == ("hold", "ship", "log")
    assert ON_FAILED == ("section", "project", "continue")


# --- As JSON ----------------------------------------------------------------------------------------------

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(valid_settings())
def test_settings_survive_the_way_through_the_database(settings: dict[str, Any]) -> None:
    made = ProjectSettings.from_json(settings)
    stored = json.loads(json.dumps(made.to_json()))

    assert ProjectSettings.from_json(stored) == made


@given(valid_settings())
def test_whatever_is_set_a_critical_conflict_holds(settings: dict[str, Any]) -> None:
    assert ProjectSettings.from_json(settings).effect("critical") == HOLD


@given(st.sampled_from([key for key in DEFAULTS if not key.startswith("mandatory")]), ANY_JSON)
def test_any_value_is_either_taken_as_it_is_or_refused(key: str, value: Any) -> None:
    try:
        taken, refusal = getattr(ProjectSettings.from_json({key: value}), key), ""
    except SettingsError as error:
        taken, refusal = value, str(error)

    assert not refusal or key in refusal
    assert key in ("policy", "disputed_work", "severity_weights") or taken is value or taken == value


def test_the_json_is_plain() -> None:
    plain = json.loads(json.dumps(DEFAULTS))

    assert json.loads(json.dumps(ProjectSettings().to_json())) == plain


def test_the_json_is_a_copy() -> None:
    settings = ProjectSettings()
    settings.to_json()["policy"]["low"] = HOLD
    settings.to_json()["mandatory"].clear()
    settings.to_json()["model_ladder"]["dev"] = {}

    assert settings == ProjectSettings()


@given(valid_settings())
def test_what_differs_from_the_defaults_is_enough_to_keep(settings: dict[str, Any]) -> None:
    made = ProjectSettings.from_json(settings)

    assert ProjectSettings.from_json(made.changed()) == made
    assert ProjectSettings().changed() == {}


# --- The schema -------------------------------------------------------------------------------------------


@for_each("key", SETTINGS)
def test_a_key_says_what_it_does_and_what_it_accepts(key: str) -> None:
    entry = SETTINGS[key]

    assert entry.help.endswith(".")
    assert entry.kind.says()
    assert entry.group in GROUPS


def test_no_two_keys_stand_at_the_same_place_of_a_file() -> None:
    places = [entry.path or key for key, entry in SETTINGS.items()]

    assert len(set(places)) == len(places)
