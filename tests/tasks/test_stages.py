"""Core: stages, their order, the columns of specialists, and what the setting refuses (COL-1, COL-2)."""

from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.configuration.policy import ProjectSettings, SettingsError
from tasks.configuration.reading import FaultyFile, read_settings
from tasks.configuration.stages import (
    DEV,
    ESCALATIONS,
    FULL,
    Stage,
    Stages,
    escalation_for,
    escalations_of,
    first_stage,
    next_stage,
    onward,
    position,
    previous_stage,
    stage_named,
    stages_of,
)
from tasks.configuration.writing import write_settings
from tests.cases import for_each
from tests.tasks.valid_settings import stages

FULL_NAMES = ["stories", "arch", "tests", "dev", "review", "qa"]


def settings(value: Any) -> ProjectSettings:
    return ProjectSettings.from_json({"stages": value})


def test_a_project_has_one_stage_unless_it_says_otherwise() -> None:
    config = ProjectSettings()

    assert stages_of(config) == (DEV,)
    assert first_stage(config).name == "dev"
    assert next_stage(config, "dev") is previous_stage(config, "dev") is None


def test_the_full_preset_has_the_six_stages_in_order() -> None:
    config = settings("full")

    assert [stage.name for stage in stages_of(config)] == FULL_NAMES
    assert stages_of(settings("simple")) == (DEV,)
    assert [position(config, name) for name in (*FULL_NAMES, "elsewhere")] == [1, 2, 3, 4, 5, 6, 0]


def test_neighbours_of_a_stage() -> None:
    config = settings("full")

    assert next_stage(config, "dev") == stage_named(config, "review")
    assert previous_stage(config, "dev") == stage_named(config, "tests")
    assert previous_stage(config, "stories") is None
    assert next_stage(config, "qa") is None
    assert next_stage(config, "elsewhere") is previous_stage(config, "elsewhere") is None


@for_each(
    ("reason", "column"),
    [
        ("concurrency", "needs-concurrency-expert"),
        ("security", "needs-security-review"),
        ("performance", "needs-perf-tuning"),
        ("architecture", "needs-arch-clarification"),
        ("unknown", "needs-senior-dev"),
        (" Security ", "needs-security-review"),
        ("something else", "needs-senior-dev"),
        ("", "needs-senior-dev"),
    ],
)
def test_each_reason_to_escalate_has_its_column(reason: str, column: str) -> None:
    assert escalation_for(ProjectSettings(), reason).name == column


def test_a_project_may_have_a_column_of_its_own() -> None:
    config = settings(["dev", {"name": "needs-dba", "enter": "escalation", "reason": "performance"}])

    assert escalation_for(config, "performance").name == "needs-dba"
    assert [stage.name for stage in stages_of(config)] == ["dev"]
    assert len(escalations_of(config)) == len(ESCALATIONS)
    assert stage_named(config, "needs-perf-tuning") is None


def test_a_specialists_work_goes_on_from_where_the_task_came() -> None:
    config = settings("full")

    after = onward(config, "needs-security-review", "dev")

    assert after == stage_named(config, "review")
    assert onward(config, "needs-security-review", "qa") is None
    assert onward(config, "qa", "") is None
    assert onward(config, "tests", "dev") == stage_named(config, "dev")


def test_a_mapping_changes_the_stage_that_is_known_by_its_name() -> None:
    config = settings([{"name": "qa", "ladder": "careful"}, "dev"])

    qa = stage_named(config, "qa")
    assert qa is not None
    assert (qa.agent_type, qa.ladder_name, qa.title) == ("qa-agent", "careful", "QA")
    assert stage_named(settings(["docs"]), "docs") == Stage("docs", agent_type="docs-agent")


@for_each(
    ("value", "fault"),
    [
        ("everything", "stages is 'everything'; a preset is one of simple, full."),
        (7, "stages is a list of stages, or one of simple, full."),
        ([], "stages has at least one stage that is no escalation column."),
        (["dev"] * 2, "stages.2: dev is entry 1 already."),
        (["dev", 7], "stages.2 is 7; a name or a mapping with a name is needed."),
        (["Dev"], "stages.1: its name is 'Dev'; at most 40 of a-z, 0-9, - and _ are needed."),
        ([{"title": "x"}], "stages.1: its name is None; at most 40 of a-z, 0-9, - and _ are needed."),
        (["a" * 41], "its name is"),
        (["dev\n"], "its name is"),
        (["done"], "stages.1: done is a column of the board already."),
        ([{"name": "dev", "agent": "x"}], "stages.1: agent is unknown. Known are name, title,"),
        ([{"name": "dev", "is_reviewed": "no"}], "stages.1: is_reviewed is 'no'; true or false is needed."),
        ([{"name": "dev", "title": "x" * 61}], "stages.1: title is a text of at most 60 characters."),
        ([{"name": "dev", "title": "a\nb"}], "stages.1: title is one line without spaces around it."),
        ([{"name": "dev", "about": 7}], "stages.1: about is a text of at most 2000 characters."),
        ([{"name": "dev", "enter": "sideways"}], "enter is 'sideways'; it is one of normal, escalation."),
        (["dev", {"name": "x", "enter": "escalation"}], "stages.2: an escalation column has a reason"),
        ([{"name": "dev", "reason": "security"}], "stages.1: only an escalation column has a reason."),
        (
            ["dev", *({"name": name, "enter": "escalation", "reason": "security"} for name in "ab")],
            "stages.3: entry 2 is for security already.",
        ),
        ([{"name": "needs-senior-dev", "enter": "normal", "reason": ""}], "is the name of an escalation"),
        (["dev", {"name": "qa", "is_reviewed": False}], "stages.2: qa is the last stage; what lands has"),
        ([f"s{number}" for number in range(21)], "stages has 21 entries; 20 are the most."),
    ],
)
def test_what_is_wrong_is_refused_naming_the_entry(value: Any, fault: str) -> None:
    with pytest.raises(SettingsError) as refused:
        settings(value)

    assert fault in str(refused.value)


def test_a_fault_in_a_file_names_its_line() -> None:
    text = "stages:\n  - dev\n  - name: qa\n    is_reviewed: perhaps\n  - docs\n"

    with pytest.raises(FaultyFile) as refused:
        read_settings(text)

    assert [(fault.line, fault.message) for fault in refused.value.faults] == [
        (4, "stages.2: is_reviewed is 'perhaps'; true or false is needed.")
    ]


def test_a_file_may_name_a_preset() -> None:
    assert read_settings("stages: full\n").over(ProjectSettings()).stages == FULL


def test_the_words_for_people_say_which_stage_nobody_reviews() -> None:
    plain = settings("full").to_json()["stages"]

    assert Stages().in_words(plain) == "stories, arch, tests, dev, review (no review), qa"


@hypothesis.settings(max_examples=40)  # a file of all settings is long
@given(stages())
def test_any_stages_survive_json_and_a_file(value: list[Any]) -> None:
    config = settings(value)

    assert settings(config.to_json()["stages"]) == config
    assert read_settings(write_settings(config)).over(ProjectSettings()) == config


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=8))
def test_nothing_else_gets_in(value: Any) -> None:
    faults = []
    try:
        settings(value)
    except SettingsError as error:
        faults.append(error.key)

    assert all(key.startswith("stages") for key in faults)
