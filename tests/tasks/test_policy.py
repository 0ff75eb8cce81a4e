"""The settings of a project: defaults that work, what may be set, and what is refused by name."""

import json
from dataclasses import FrozenInstanceError, fields
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.policy import EFFECTS, HOLD, LOG, ON_FAILED, SHIP, ProjectSettings, SettingsError
from tasks.states import Severity

DEFAULTS: dict[str, Any] = {
    "policy": {"critical": "hold", "high": "hold", "medium": "ship", "low": "log"},
    "rejections_max": 15,
    "undo_seconds": 10.0,
    "mandatory": ["critical", "high"],
    "on_failed": "section",
    "detect_commands": True,
    "build_command": "",
    "build_timeout": 600.0,
    "test_command": "",
    "test_timeout": 600.0,
    "review_after_rebase": False,
}


def policy(**effects: str) -> dict[str, Any]:
    """Settings with these effects, the others as they are by default."""
    return {"policy": effects}


# --- Defaults ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", DEFAULTS)
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
    ("build_timeout", 3600),  # the most
    ("test_timeout", 1),
    ("test_timeout", 3600.0),
    ("mandatory", []),  # nothing is: the coder may drop every finding
    ("mandatory", ["critical"]),  # ARB-1: which ones are mandatory is a setting of the project
    ("mandatory", ["critical", "high", "medium", "low"]),  # everything is
    ("on_failed", "section"),  # a failed task stops its section
    ("on_failed", "project"),  # it stops all of them
    ("on_failed", "continue"),  # it stops nothing
    ("detect_commands", False),  # only the commands named here
    ("build_command", "make all"),
    ("test_command", "make check && true"),  # the shell's language
    ("test_command", "prüfe"),  # any script
    ("review_after_rebase", True),
]


@pytest.mark.parametrize(("key", "value"), ALLOWED, ids=str)
def test_a_setting_may_be_changed(key: str, value: Any) -> None:
    changed = ProjectSettings.from_json({key: value}).to_json()

    assert changed == DEFAULTS | {key: value}


@pytest.mark.parametrize("key", ["undo_seconds", "build_timeout", "test_timeout"])
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
    ({"rejections_max": 0}, "rejections_max is at least 1"),
    ({"rejections_max": -3}, "rejections_max is at least 1"),
    ({"rejections_max": 1.5}, "rejections_max is 1.5; a int is needed"),
    ({"rejections_max": 15.0}, "rejections_max is 15.0; a int is needed"),  # a count is a whole number
    ({"rejections_max": "15"}, "rejections_max is '15'; a int is needed"),  # nothing is guessed
    ({"rejections_max": True}, "rejections_max is True; a int is needed"),  # true is no number
    ({"rejections_max": None}, "rejections_max is None; a int is needed"),
    ({"undo_seconds": -0.1}, "undo_seconds is between 0 and 3600"),
    ({"undo_seconds": 3600.1}, "undo_seconds is between 0 and 3600"),
    ({"undo_seconds": float("nan")}, "undo_seconds is between 0 and 3600"),  # JSON as Python reads it
    ({"undo_seconds": float("inf")}, "undo_seconds is between 0 and 3600"),
    ({"undo_seconds": "10"}, "undo_seconds is '10'; a float is needed"),
    ({"undo_seconds": False}, "undo_seconds is False; a float is needed"),
    ({"build_timeout": 0}, "build_timeout is between 1 and 3600 seconds"),
    ({"build_timeout": 0.99}, "build_timeout is between 1 and 3600 seconds"),
    ({"build_timeout": 3601}, "build_timeout is between 1 and 3600 seconds"),
    ({"build_timeout": float("nan")}, "build_timeout is between 1 and 3600 seconds"),
    ({"build_timeout": None}, "build_timeout is None; a float is needed"),
    ({"test_timeout": -1}, "test_timeout is between 1 and 3600 seconds"),
    ({"test_timeout": 1e9}, "test_timeout is between 1 and 3600 seconds"),
    ({"test_timeout": []}, "test_timeout is []; a float is needed"),
    ({"mandatory": ["urgent"]}, "mandatory holds unknown severities: urgent"),
    ({"mandatory": ["high", "b", "a"]}, "mandatory holds unknown severities: a, b"),
    ({"mandatory": ["HIGH"]}, "mandatory holds unknown severities: HIGH"),  # as in the database
    ({"mandatory": "high"}, "mandatory"),  # a word is no list of words
    ({"on_failed": "stop"}, "on_failed is 'stop'; it is one of section, project, continue"),
    ({"on_failed": ""}, "on_failed is ''"),
    ({"on_failed": None}, "on_failed is None; a str is needed"),
    ({"on_failed": ["section"]}, "on_failed is ['section']; a str is needed"),
    ({"detect_commands": 1}, "detect_commands is 1; a bool is needed"),
    ({"detect_commands": "yes"}, "detect_commands is 'yes'; a bool is needed"),
    ({"review_after_rebase": None}, "review_after_rebase is None; a bool is needed"),
    ({"build_command": ["make"]}, "build_command is ['make']; a str is needed"),  # the shell's language
    ({"build_command": None}, "build_command is None; a str is needed"),
    ({"test_command": 0}, "test_command is 0; a str is needed"),
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
]


@pytest.mark.parametrize(("settings", "message"), REFUSED, ids=str)
def test_a_setting_is_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        ProjectSettings.from_json(settings)

    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(("severity", "effect"), list(product(["high", "medium", "low"], EFFECTS)), ids=str)
def test_any_effect_may_be_chosen_below_critical(severity: str, effect: str) -> None:
    settings = ProjectSettings.from_json(policy(**{severity: effect}))

    assert settings.effect(severity) == effect


@pytest.mark.parametrize(("severity", "effect"), list(product(["high", "medium", "low"], EFFECTS)), ids=str)
def test_the_severities_that_are_not_named_keep_their_effect(severity: str, effect: str) -> None:
    settings = ProjectSettings.from_json(policy(**{severity: effect})).to_json()["policy"]

    assert settings == DEFAULTS["policy"] | {severity: effect}


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("effect", EFFECTS)
def test_an_unknown_severity_follows_what_medium_is_set_to(effect: str) -> None:
    assert ProjectSettings.from_json(policy(medium=effect)).effect("unheard of") == effect


def test_the_words_are_the_ones_of_the_database() -> None:
    assert EFFECTS == ("hold", "ship", "log")
    assert ON_FAILED == ("section", "project", "continue")


# --- As JSON ----------------------------------------------------------------------------------------------

SECONDS = st.floats(1, 3600)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "policy": st.fixed_dictionaries(
            {}, optional={severity: st.sampled_from(EFFECTS) for severity in ("high", "medium", "low")}
        ),
        "rejections_max": st.integers(1, 10_000),
        "undo_seconds": st.floats(0, 3600),
        "mandatory": st.lists(st.sampled_from([severity.value for severity in Severity])),
        "on_failed": st.sampled_from(ON_FAILED),
        "detect_commands": st.booleans(),
        "build_command": st.text(),
        "build_timeout": SECONDS,
        "test_command": st.text(),
        "test_timeout": SECONDS,
        "review_after_rebase": st.booleans(),
    },
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(SETTINGS)
def test_settings_survive_the_way_through_the_database(settings: dict[str, Any]) -> None:
    made = ProjectSettings.from_json(settings)
    stored = json.loads(json.dumps(made.to_json()))

    assert ProjectSettings.from_json(stored) == made


@given(SETTINGS)
def test_whatever_is_set_a_critical_conflict_holds(settings: dict[str, Any]) -> None:
    assert ProjectSettings.from_json(settings).effect("critical") == HOLD


@given(st.sampled_from([key for key in DEFAULTS if key != "mandatory"]), ANY_JSON)
def test_any_value_is_either_taken_as_it_is_or_refused(key: str, value: Any) -> None:
    try:
        taken, refusal = getattr(ProjectSettings.from_json({key: value}), key), ""
    except SettingsError as error:
        taken, refusal = value, str(error)

    assert not refusal or key in refusal
    assert key == "policy" or taken is value or taken == value


def test_the_json_is_plain() -> None:
    plain = json.loads(json.dumps(DEFAULTS))

    assert json.loads(json.dumps(ProjectSettings().to_json())) == plain


def test_the_json_is_a_copy() -> None:
    settings = ProjectSettings()
    settings.to_json()["policy"]["low"] = HOLD
    settings.to_json()["mandatory"].clear()

    assert settings == ProjectSettings()
