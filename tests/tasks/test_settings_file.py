"""Settings as files: the designs' keys come in, what goes out comes in the same, a fault names its line."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.configuration.policy import SETTINGS, ProjectSettings, default_of
from tasks.configuration.reading import (
    OPTIONAL,
    PLACES,
    SIZE_MAX,
    AgentEntry,
    FaultyFile,
    read_settings,
    read_value,
)
from tasks.configuration.schema import Ladders
from tasks.configuration.writing import write_settings
from tests.cases import for_each
from tests.tasks.valid_settings import SIGNS, valid_settings

SAMPLES = Path(__file__).parents[1] / "data" / "settings"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


def imported(text: str, **base: Any) -> dict[str, Any]:
    """What differs from the defaults once the file is read over `base`."""
    return read_settings(text).over(ProjectSettings.from_json(base)).changed()


def faults(text: str, **base: Any) -> list[tuple[int, str]]:
    """Line and message of all that is wrong."""
    with pytest.raises(FaultyFile) as refusal:
        read_settings(text).over(ProjectSettings.from_json(base))
    return [(fault.line, fault.message) for fault in refusal.value.faults]


# --- The files of the designs -------------------------------------------------------------------------------


@for_each(
    ("name", "changed"),
    [
        (
            "commands.yaml",
            {
                "build_command": "make site",
                "build_timeout": 900.0,
                "test_command": "make check",
                "test_timeout": 1200.0,
            },
        ),
        ("stale.yaml", {"timeout_days": 10, "alert_on_stale": "none"}),  # values with notes beside them
        ("arbitration.yml", {"on_dispute": "judge", "prompt_user": False}),  # the rest is the default
        (
            "ladders.yaml",
            {
                "model_ladder": {
                    "builder": {"0-1": "small", "2": "medium", "3-4": "large", "5+": "escalate"},
                    "inspector": {"0-2": "medium", "3+": "escalate"},
                }
            },
        ),
    ],
    ids=str,
)
def test_a_file_with_the_keys_of_a_design_is_taken_as_it_is(name: str, changed: dict[str, Any]) -> None:
    assert imported(sample(name)) == changed


def test_all_of_them_together_are_one_file() -> None:
    names = ("commands.yaml", "stale.yaml", "arbitration.yml", "ladders.yaml")
    together = imported("\n".join(map(sample, names)))

    assert together == {key: value for name in names for key, value in imported(sample(name)).items()}
    assert len(together) == 9


def test_the_agents_of_a_file_are_read() -> None:
    agents = read_settings(sample("arbitration.yml")).agents

    assert [agent.values for agent in agents] == [
        {"name": "writer", "command": "my-agent --quiet", "role": "coder"},
        {"name": "reader", "command": "other-agent", "role": "reviewer"},
        {"name": "umpire", "command": "my-agent", "role": "judge"},
    ]
    assert [agent.line for agent in agents] == [2, 6, 10]


def test_every_key_of_an_agent_is_read() -> None:
    text = """
agents:
  - {name: a, type: dev-agent, command: "run '{prompt}'", role: CODER, model: large, instructions: Be short.,
     domains: [web], focus: speed, priority: -1, slots: 2, pass: [MY_KEY], active: false}
  - {name: b, role: reviewer, cassettes: /tapes}
"""
    first, second = read_settings(text).agents

    assert first.values["role"] == "coder"
    assert (first.values["type"], first.values["pass"], first.values["active"]) == (
        "dev-agent",
        ["MY_KEY"],
        False,
    )
    assert second.values == {"name": "b", "role": "reviewer", "cassettes": "/tapes"}


# --- What a file says ---------------------------------------------------------------------------------------


@for_each(
    ("text", "changed"),
    [
        ("", {}),
        ("# only a comment", {}),
        ("build:\n", {}),  # an empty section says nothing
        ("build: {_note: ours, command: make}", {"build_command": "make"}),  # notes stand anywhere
        ("build: {command: on-call}", {"build_command": "on-call"}),
        (
            "policy: {low: SHIP}",
            {"policy": {"critical": "hold", "high": "hold", "medium": "ship", "low": "ship"}},
        ),
        ("rollback_mode: AUTO_RETRY", {"rollback_mode": "auto_retry"}),  # as the protocol writes it
        ("max_rounds: 12", {"max_rounds": 12}),
        ("max_rounds: null", {}),
        ("max_rounds:", {}),
        ("undo_seconds: 3", {"undo_seconds": 3.0}),
        ("review: {issues: {mandatory: [HIGH]}}", {}),  # ARB-1: MUST, HIGH and CRITICAL are mandatory
        (
            "review: {issues: {mandatory: [HIGH], optional: [CRITICAL]}}",  # said aloud
            {"mandatory": ["high"]},
        ),
        ("review: {issues: {mandatory: [MEDIUM]}}", {"mandatory": ["medium"]}),
        ("review: {issues: {mandatory: []}}", {"mandatory": []}),
        ("model_ladder: {dev: {0: a, 1+: b}}", {"model_ladder": {"dev": {"0": "a", "1+": "b"}}}),
        (
            "build: &both {timeout: 5}\ntest: *both",  # said once
            {"build_timeout": 5.0, "test_timeout": 5.0},
        ),
    ],
    ids=str,
)
def test_a_file_says_what_it_says(text: str, changed: dict[str, Any]) -> None:
    assert imported(text) == changed


def test_what_a_file_does_not_name_stays() -> None:
    assert imported("rejections_max: 3", undo_seconds=1) == {"rejections_max": 3, "undo_seconds": 1.0}


def test_severities_that_a_file_does_not_name_stay() -> None:
    assert imported("policy: {low: hold}", policy={"high": "log"})["policy"] == {
        "critical": "hold", "high": "log", "medium": "ship", "low": "hold",
    }  # fmt: skip


def test_a_ladder_in_a_file_replaces_the_one_before() -> None:
    base = {"model_ladder": {"qa": {"0+": "large"}}}

    assert imported("model_ladder: {dev: {0+: small}}", **base) == {"model_ladder": {"dev": {"0+": "small"}}}


# --- Faults -------------------------------------------------------------------------------------------------

LADDER = "model_ladder:\n  dev:\n    0-1: small\n    {step}\n"
AGENT = "agents:\n  - name: a\n    role: coder\n    {line}\n"


@for_each(
    ("text", "line", "message"),
    [
        (
            "\nbuild:\n  command: make\n  timeout: 0\n",
            4,
            "build.timeout is 0; it is between 1 and 86400 seconds.",
        ),
        ("build:\n  timeout: long", 2, "build.timeout is 'long'; a number is needed."),
        ("build:\n  timeout: .nan", 2, "build.timeout is nan; it is between"),
        ("build: {\n  command: [make]\n}", 2, "build.command is ['make']; a text is needed."),
        ("build: {command: true}", 1, "build.command is True; a text is needed."),
        ("build: {command: }", 1, "build.command is None; a text is needed."),
        ("build: make", 1, "build holds keys with values"),
        ("build: [command]", 1, "build holds keys with values"),
        ("- build", 1, "the file holds keys with values"),
        ("just text", 1, "the file holds keys with values"),
        ("\n\nbuidl: {}", 3, "buidl is unknown. Did you mean build?"),
        ("build:\n  comand: x", 2, "build.comand is unknown. Did you mean build.command?"),
        ("build_command: make", 1, "build_command is unknown. It is written build.command."),
        ("mandatory: [high]", 1, "mandatory is unknown. It is written review.issues.mandatory."),
        ("xyzzy: 1", 1, "xyzzy is unknown."),
        ("? [a, b]\n: 1", 1, "the file has a key that is no word."),
        ("hard_limit: 40\nextend_by: 3\nhard_limit: 41", 3, "hard_limit stands there twice."),
        ("test:\n  required: 1", 2, "test.required is 1; true or false is needed."),
        (
            "\nreview:\n  on_dispute:\n    default: vote",
            4,
            "review.on_dispute.default is 'vote'; it is one of",
        ),
        (
            "review:\n  issues:\n    mandatory: [URGENT]",
            3,
            "review.issues.mandatory holds unknown severities",
        ),
        ("review:\n  issues:\n    mandatory: HIGH", 3, "review.issues.mandatory is a list of severities."),
        (
            "review:\n  issues:\n    mandatory: [HIGH]\n    optional: [LOW, HIGH]",
            4,
            "high cannot be both mandatory and optional.",
        ),
        ("review:\n  opinions:\n    optional: [SHOULD]", 3, "review.opinions.mandatory has to stand beside"),
        (
            "review:\n  opinions:\n    optional: [COULD]",
            3,
            "review.opinions.optional holds unknown tags: could.",
        ),
        ("review: {issues: {optional: [{a: b}]}}", 1, "review.issues.optional is a list of severities."),
        ("disputes:\n  timeoutDays: {_default: 7}", 2, "disputes.timeoutDays has notes and not one value."),
        (
            "disputes:\n  timeoutDays:\n    _default: 7\n    value: 0",
            2,
            "disputes.timeoutDays is 0; it is between",
        ),
        (
            "disputes:\n  alertOnStale: mail",
            2,
            "disputes.alertOnStale is 'mail'; it is one of log, webhook, none.",
        ),
        ("policy:\n  low: log\n  high: stop", 3, "policy.high is 'stop'; it is one of hold, ship, log."),
        ("policy:\n  critical: ship", 2, "policy.critical is always hold."),
        ("policy:\n  urgent: hold", 1, "policy names each of critical, high, medium and low once."),
        ("policy: {low: log, LOW: log}", 1, "policy names each of critical"),
        (LADDER.format(step="3+: large"), 4, "model_ladder.dev.3+ leaves 2 out."),
        (LADDER.format(step="1+: large"), 4, "model_ladder.dev.1+ overlaps the step before."),
        (LADDER.format(step="2+: 5"), 4, "model_ladder.dev.2+ is 5; a model or escalate is needed."),
        (LADDER.format(step="often: large"), 4, "model_ladder.dev.often is no range of failures"),
        (LADDER.format(step="2-3: large"), 2, "model_ladder.dev has no open end"),
        (LADDER.format(step="2+: {a: {b: {c: d}}}"), 4, "model_ladder.dev.2+.a is nested too deeply."),
        ("model_ladder: small", 1, "model_ladder maps types of agent to their ladders."),
        ("rejections_max: 2024-99-99", 1, "rejections_max holds a value that cannot be read."),
        ("rejections_max: !!int x", 1, "rejections_max holds a value that cannot be read."),
        ("rejections_max: !!python/name:os.system x", 1, "rejections_max holds a value that cannot be read."),
        ("rejections_max: 2024-01-01", 1, "rejections_max is datetime.date(2024, 1, 1); a whole number"),
        ("rejections_max: " + "9" * 5000, 1, "rejections_max holds a value that cannot be read."),
        ("rejections_max: " + "9" * 400, 1, "rejections_max is 9999"),
        ("rejections_max: &a [*a]", 1, "rejections_max is nested too deeply."),
        # No YAML at all.
        ("build:\n\tcommand: make", 2, "no YAML: found character '\\t' that cannot start any token."),
        ("build: {command: make", 1, "no YAML: expected ',' or '}'"),
        ("a: b: c", 1, "no YAML: mapping values are not allowed here."),
        ("build: *nothing", 1, "no YAML: found undefined alias 'nothing'."),
        ("build: {}\n---\ntest: {}", 2, "no YAML: but found another document."),
        ("build: {}\ntest: \x07", 2, "there is a character that YAML does not allow."),
        *(
            (opening * 25_000, 1, "no YAML for people: it is nested too deeply.")
            for opening in ("[", "{", "a: [", "- ", "? ")
        ),
        ("#" * (SIZE_MAX + 1), 1, f"the file has {SIZE_MAX + 1} characters"),
        # Agents.
        ("agents: {a: b}", 1, "agents is a list"),
        ("agents:\n  - writer", 2, "agents holds keys with values"),
        ("agents:\n  - role: coder", 2, "agents, ?: name is missing."),
        ("agents:\n  - name: a\n", 2, "agents, a: role is missing."),
        (AGENT.format(line="comand: x"), 4, "agents: comand is unknown. Did you mean command?"),
        (AGENT.format(line="zzz: x"), 4, "agents: zzz is unknown. Known are name, type, command, role"),
        (AGENT.format(line="slots: 0"), 4, "agents.slots is 0; it is between 1 and 1000."),
        (AGENT.format(line="domains: web"), 4, "agents.domains is a list of texts."),
        (AGENT.format(line="command: it's"), 4, "agents, a: command cannot be split"),
        (AGENT.format(line='command: ""'), 4, "agents, a: command is empty."),
        (AGENT.format(line="- b"), 4, "no YAML: expected <block end>"),
        (
            "agents:\n  - {name: a, role: chief}",
            2,
            "agents.role is 'chief'; it is one of coder, reviewer, judge, mediator.",
        ),
        (
            AGENT.format(line="command: a\n    cassettes: /b"),
            5,
            "agents, a: an agent has a command or cassettes",
        ),
        (
            AGENT.format(line="command: x") + "  - {name: a, role: coder}",
            5,
            "agents, a: stands there twice.",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_fault_names_its_line_and_its_key(text: str, line: int, message: str) -> None:
    found = faults(text)

    assert len(found) == 1
    assert found[0][0] == line
    assert found[0][1].startswith(message)


def test_all_faults_are_told_at_once_in_the_order_of_their_lines() -> None:
    text = "test: {timeout: 0}\nagents: [{name: a}]\nbuild: {timeout: 0}\nnonsense: 1\n"

    assert [line for line, _ in faults(text)] == [1, 2, 3, 4]


def test_a_fault_tells_the_name_of_the_file() -> None:
    with pytest.raises(FaultyFile) as refusal:
        read_settings("a: 1\nbuild: 2")

    assert refusal.value.lines("team.yaml") == [
        "team.yaml:1: a is unknown.",
        "team.yaml:2: build holds keys with values: `key: value`.",
    ]


@for_each(
    ("text", "base", "line"),
    [
        ("extend_by: 2\nmax_rounds: 20\n", {"hard_limit": 10}, 2),
        ("extend_by: 2\nhard_limit: 10\n", {"max_rounds": 20}, 2),  # the other one is not in the file
        ("max_rounds: 20\nhard_limit: 10\n", {}, 1),
    ],
)
def test_two_values_that_do_not_go_together_are_a_fault_of_the_file(
    text: str, base: dict[str, Any], line: int
) -> None:
    assert faults(text, **base) == [(line, "max_rounds is at most hard_limit, 10.")]


def test_aliases_do_not_blow_up() -> None:
    lines = ["a: &l0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"b{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 40)]

    assert len(faults("\n".join([*lines, "rejections_max: *l39"]))) == 40 + 9**3


# --- Out and in again ---------------------------------------------------------------------------------------

ANY = st.text(SIGNS)
WORDS = st.text(SIGNS, min_size=1, max_size=30)
AGENTS = st.fixed_dictionaries(
    {"name": WORDS, "role": st.sampled_from(["coder", "reviewer", "judge", "mediator"])},
    optional={
        "type": ANY, "model": ANY, "instructions": ANY, "domains": st.lists(ANY),
        "focus": ANY, "priority": st.integers(-9, 9), "slots": st.integers(1, 9),
        "pass": st.lists(WORDS), "active": st.booleans(), "cassettes": ANY,
    },
)  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(valid_settings(), valid_settings())
def test_settings_survive_the_way_through_a_file_into_any_project(
    some: dict[str, Any], others: dict[str, Any]
) -> None:
    made = ProjectSettings.from_json(some)
    text = write_settings(made, title="Settings of ledger")

    assert read_settings(text).over(ProjectSettings.from_json(others)) == made


@settings(deadline=None, max_examples=40)
@given(st.lists(AGENTS, max_size=3, unique_by=lambda agent: agent["name"]))
def test_agents_survive_the_way_through_a_file(agents: list[dict[str, Any]]) -> None:
    text = write_settings(ProjectSettings(), agents)

    assert [entry.values for entry in read_settings(text).agents] == agents


@for_each("command", ["", "make", "a: b", "yes", "- x", "# no", "a\nb\n", "'\"", "prüfe", "\x85 ", " x "])
def test_a_command_survives_whatever_it_holds(command: str) -> None:
    text = write_settings(ProjectSettings(build_command=command))

    assert imported(text).get("build_command", "") == command


@given(st.text() | st.sampled_from(["build", "review", "agents"]).map(lambda name: f"{name}: {{a: [1]}}"))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found: Any = read_settings(text).over(ProjectSettings())
    except FaultyFile as error:
        found = error.faults

    assert found


def test_a_file_shows_every_key_with_its_help_and_default() -> None:
    text = write_settings(ProjectSettings())
    read = read_settings(text)
    comments = " ".join(line.strip(" #") for line in text.splitlines() if line.strip().startswith("#"))

    assert set(read.values) == set(SETTINGS)
    for key, entry in SETTINGS.items():
        assert f"{entry.help} " in comments
        assert f"Default: {default_of(key)}." in comments


def test_no_section_is_opened_twice() -> None:
    heads = [
        line
        for line in write_settings(ProjectSettings()).splitlines()
        if line.endswith(":") and line[0].isalpha()
    ]

    assert len(heads) == len(set(heads))


def test_every_place_of_a_file_belongs_to_one_key() -> None:
    assert sorted(PLACES.values()) == sorted(SETTINGS)
    assert set(OPTIONAL) & set(PLACES) == set()


# --- One value ----------------------------------------------------------------------------------------------


def test_a_ladder_is_read_alone() -> None:
    assert read_value(Ladders(), "dev:\n  0: a\n  1+: b", "model_ladder") == {"dev": {"0": "a", "1+": "b"}}


@for_each(
    ("text", "line"), [("dev:\n  0: a\n  2+: b", 3), ("dev: [", 1), ("dev:\n  0: a\n  0: b\n", 3), ("", 1)]
)
def test_a_fault_in_one_value_has_its_line(text: str, line: int) -> None:
    with pytest.raises(FaultyFile) as refusal:
        read_value(Ladders(), text, "model_ladder")

    assert [fault.line for fault in refusal.value.faults] == [line]


def test_an_entry_tells_where_a_key_of_it_stands() -> None:
    entry = AgentEntry({"name": "a"}, 3, {"role": 4})

    assert (entry.fault("role", "no").line, entry.fault("slots", "no").line) == (4, 3)


# --- A ladder for each type of agent ------------------------------------------------------------------------

FOUR_LADDERS = """\
model_ladder:
  dev-agent:
    0-1: glm-4       # Simple stuff might work
    2-3: sonnet      # Medium complexity
    4-5: opus        # Hard problems
    6+: escalate     # Give up, need help

  test-architect:
    0-1: sonnet      # Tests need reasoning
    2-3: opus
    4+: escalate

  story-agent:
    0-2: haiku       # Stories are simpler
    3-4: sonnet
    5+: escalate

  qa-agent:
    0-1: sonnet      # QA needs attention
    2-3: opus
    4+: escalate
"""


def test_a_file_of_ladders_is_taken_as_people_write_it() -> None:
    taken = imported(FOUR_LADDERS)["model_ladder"]

    assert taken["dev-agent"] == {"0-1": "glm-4", "2-3": "sonnet", "4-5": "opus", "6+": "escalate"}
    assert {kind: list(ladder.values())[-1] for kind, ladder in taken.items()} == dict.fromkeys(
        ("dev-agent", "test-architect", "story-agent", "qa-agent"), "escalate"
    )
