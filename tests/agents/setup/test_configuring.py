"""Settings and agents as a file, on the command line: in, out, in again, and nothing of a faulty one."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from agents.models import Agent
from agents.providers.codex import Codex
from agents.providers.registry import CLIS, PROVIDERS
from agents.setup.configuration import UNSIGNED, export_config, import_config
from disputes.opinions import policy_of
from tasks.configuration.reading import FaultyFile
from tasks.configuration.writing import write_reference
from tasks.events import SYSTEM
from tasks.models import Event, Membership, Project
from tests.cases import for_each
from tests.factories import create_project

pytestmark = pytest.mark.django_db

SAMPLES = Path(__file__).parents[2] / "data" / "settings"
WRITER = "agents:\n  - name: writer\n    command: my-agent --fast\n    role: coder\n"


@pytest.fixture(autouse=True)
def programs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the files of these tests start is there."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("my-agent", "other-agent", "claude", "codex", "gemini", "opencode", "a b"):
        (folder / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.fixture
def till() -> Project:
    return create_project("till")


def bring(project: Project, text: str, *, dry_run: bool = False) -> list[str]:
    return import_config(project, text, actor=SYSTEM, dry_run=dry_run)


def faults(project: Project, text: str) -> list[str]:
    with pytest.raises(FaultyFile) as refusal:
        bring(project, text)
    return refusal.value.lines("f.yaml")


def command(*args: str) -> str:
    out = StringIO()
    call_command(*args, stdout=out)
    return out.getvalue()


def rows() -> list[tuple[Any, ...]]:
    return list(Agent.objects.order_by("name").values_list("name", "role", "settings"))


# --- The commands -------------------------------------------------------------------------------------------


def test_the_files_of_the_designs_come_in_one_after_the_other(till: Project) -> None:
    for name in ("commands.yaml", "stale.yaml", "arbitration.yml", "ladders.yaml"):
        command("import_config", str(SAMPLES / name), "--project", "till")
    till.refresh_from_db()

    assert sorted(till.settings) == [
        "alert_on_stale", "build_command", "build_timeout", "model_ladder", "on_dispute", "prompt_user",
        "test_command", "test_timeout", "timeout_days",
    ]  # fmt: skip
    assert rows() == [
        ("reader", "reviewer", {"argv": ["other-agent"]}),
        ("umpire", "judge", {"argv": ["my-agent"]}),
        ("writer", "coder", {"argv": ["my-agent", "--quiet"]}),
    ]


def test_an_import_says_what_it_changed(till: Project) -> None:
    out = command("import_config", str(SAMPLES / "arbitration.yml"), "--project", "till")

    assert out.splitlines() == [
        "on_dispute: human → judge",
        "prompt_user: true → false",
        "agent writer: added as coder",
        "agent reader: added as reviewer",
        "agent umpire: added as judge",
        UNSIGNED,
    ]
    assert not policy_of(till).set_by


def test_an_import_in_a_persons_name_lets_the_policy_rule(till: Project, lea: User, otto: User) -> None:
    Membership.objects.create(project=till, user=lea, role="maintainer")
    words = ["import_config", str(SAMPLES / "arbitration.yml"), "--project", "till"]
    for name in ("otto", "nobody"):
        with pytest.raises(CommandError, match=f"{name} does not maintain till"):
            command(*words, "--user", name)
    assert UNSIGNED not in command(*words, "--user", "lea")
    till.refresh_from_db()
    assert policy_of(till).set_by == lea


def test_a_policy_that_nobody_signed_is_taken_on_by_a_second_import(till: Project, lea: User) -> None:
    """The values are the same: only whose they are is new."""
    Membership.objects.create(project=till, user=lea, role="maintainer")
    words = ["import_config", str(SAMPLES / "arbitration.yml"), "--project", "till"]
    assert UNSIGNED in command(*words)
    said = command(*words, "--user", "lea")
    assert UNSIGNED not in said
    assert "on_dispute: judge, in the name of Lea Lindt from now on" in said
    till.refresh_from_db()
    assert policy_of(till).set_by == lea
    assert command(*words, "--user", "lea") == "Nothing changes.\n"


def test_a_second_import_changes_nothing(till: Project) -> None:
    command("import_config", str(SAMPLES / "arbitration.yml"), "--project", "till")
    events = Event.objects.count()

    assert command("import_config", str(SAMPLES / "arbitration.yml"), "--project", "till") == f"{UNSIGNED}\n"
    assert Event.objects.count() == events == 4


def test_a_dry_run_says_the_same_and_changes_nothing(till: Project) -> None:
    path = str(SAMPLES / "arbitration.yml")
    dry = command("import_config", path, "--project", "till", "--dry-run").splitlines()
    till.refresh_from_db()

    assert dry[-1] == "This was a dry run: nothing was changed."
    assert (till.settings, rows(), Event.objects.count()) == ({}, [], 0)
    assert command("import_config", path, "--project", "till").splitlines() == dry[:-1]


def test_an_agent_whose_program_is_missing_is_refused_at_its_line(till: Project, tmp_path: Path) -> None:
    path = tmp_path / "team.yaml"
    path.write_text(WRITER.replace("my-agent", "no-such-agent"))
    with pytest.raises(CommandError, match=r"team.yaml:3: .*'no-such-agent' is not on this host"):
        command("import_config", str(path), "--project", "till")
    assert rows() == []
    assert "writer: added" in command("import_config", str(path), "--project", "till", "--elsewhere")
    path.write_text(WRITER.replace("my-agent", "no-such-agent").replace("coder", "reviewer"))
    assert "writer: role" in command("import_config", str(path), "--project", "till")


def test_a_faulty_file_is_refused_with_every_line(till: Project, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("rejections_max: 3\nbuild:\n  timeout: 0\nagents:\n  - name: a b\n    role: coder\n")
    with pytest.raises(CommandError) as refusal:
        command("import_config", str(path), "--project", "till")
    till.refresh_from_db()

    assert str(refusal.value).splitlines() == [
        f"{path}:3: build.timeout is 0; it is between 1 and 86400 seconds.",
        "Nothing was imported.",
    ]
    assert (till.settings, rows()) == ({}, [])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "cannot be read: No such file or directory."),
        (lambda path: path.mkdir(), "cannot be read: Is a directory."),
        (
            lambda path: path.write_bytes(b"build: \xff"),
            "is not UTF-8: invalid start byte at byte 7. Save it as UTF-8.",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_told(till: Project, tmp_path: Path, make: Any, message: str) -> None:
    path = tmp_path / "team.yaml"
    make(path)
    with pytest.raises(CommandError) as refusal:
        command("import_config", str(path), "--project", "till")

    assert str(refusal.value) == f"{path} {message}"


def test_the_reference_needs_no_project() -> None:
    assert command("export_config", "--reference") == write_reference()


@for_each("args", [("import_config", "f.yaml"), ("export_config",)])
def test_an_unknown_project_is_told(args: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=r"There is no project nowhere\."):
        command(*args, "--project", "nowhere")


def test_a_broken_row_is_not_exported(till: Project) -> None:
    Project.objects.update(settings={"rejections_max": 0})

    with pytest.raises(CommandError, match="The stored settings of till are not valid: rejections_max is 0"):
        command("export_config", "--project", "till")


# --- Out and in again ---------------------------------------------------------------------------------------


def test_what_goes_out_comes_in_the_same(till: Project, tmp_path: Path) -> None:
    for name in ("commands.yaml", "stale.yaml", "arbitration.yml", "ladders.yaml"):
        bring(till, (SAMPLES / name).read_text(encoding="utf-8"))
    out = command("export_config", "--project", "till")
    other = create_project("other", settings={"rejections_max": 3, "build_command": "no"})
    agents = rows()
    Agent.objects.all().delete()
    bring(other, out)

    assert other.config == till.config
    assert rows() == agents
    assert export_config(other).partition("\n")[2] == out.partition("\n")[2]


def test_every_field_of_an_agent_survives(till: Project) -> None:
    agent = Agent.objects.create(
        name="full", role="reviewer", kind="test-architect", model="large",
        instructions="Be short.\nBe kind.\n", domains=["web"], focus="speed", priority=-2, slots=3,
        is_active=False, settings={"argv": ["a b", "--x='1'", "{prompt}"], "pass": ["MY_KEY"]},
    )  # fmt: skip
    Agent.objects.create(name="tape", role="coder", provider="replay", settings={"cassettes": "/tapes"})
    before = list(Agent.objects.values())
    out = export_config(till)
    Agent.objects.all().delete()
    bring(till, out)

    after = [{**row, "id": old["id"]} for row, old in zip(Agent.objects.values(), before, strict=True)]
    assert after == before
    assert Agent.objects.get(name="full").settings == agent.settings


def test_agents_of_other_projects_are_not_exported(till: Project) -> None:
    bring(create_project("other"), WRITER)

    assert "agents:" not in export_config(till)


# --- Agents -------------------------------------------------------------------------------------------------


def test_a_new_agent_works_on_this_project_only(till: Project) -> None:
    bring(till, WRITER)

    assert list(Agent.objects.get().projects.all()) == [till]


def test_an_agent_is_changed_where_the_file_says_so_and_nowhere_else(till: Project) -> None:
    bring(till, WRITER + "    model: large\n    pass: [MY_KEY]\n")
    said = bring(till, "agents:\n  - {name: writer, role: coder, command: other-agent, slots: 2}\n")
    agent = Agent.objects.get()

    assert said == ["agent writer: command, slots"]
    assert (agent.model, agent.slots) == ("large", 2)
    assert agent.settings == {"argv": ["other-agent"], "pass": ["MY_KEY"]}


def test_an_agent_of_another_project_joins_this_one(till: Project) -> None:
    other = create_project("other")
    bring(other, WRITER)

    assert bring(till, WRITER) == ["agent writer: works here"]
    assert set(Agent.objects.get().projects.all()) == {till, other}


def test_an_agent_that_works_everywhere_stays_so(till: Project) -> None:
    Agent.objects.create(name="writer", role="coder", settings={"argv": ["a"]})

    assert bring(till, WRITER) == ["agent writer: command (it works on other projects too)"]
    assert not Agent.objects.get().projects.exists()


def test_a_command_takes_the_place_of_a_cassette(till: Project) -> None:
    Agent.objects.create(name="writer", role="coder", provider="replay", settings={"cassettes": "/tapes"})
    bring(till, WRITER)
    agent = Agent.objects.get()

    assert (agent.provider, agent.settings) == ("command", {"argv": ["my-agent", "--fast"]})


def test_what_an_import_does_is_recorded(till: Project) -> None:
    bring(till, WRITER + "rejections_max: 3\n")
    bring(till, WRITER.replace("--fast", "--slow"))

    assert list(Event.objects.order_by("pk").values_list("kind", "label", "note")) == [
        ("project_configured", "System", "rejections_max: 15 → 3"),
        ("agent_added", "System", "writer"),
        ("agent_edited", "System", "writer: command"),
    ]


@for_each(
    ("line", "fault"),
    [
        ("    slots: 1\n  - {name: a b, role: coder, command: x}\n", "f.yaml:6: agents, a b: name: Enter"),
        ("  - name: b\n    role: coder\n", "f.yaml:5: agents, b: command: The provider"),
        ("  - name: b\n    role: coder\n    command: a {b}\n", "f.yaml:7: agents, b: command: '{b}' has"),
        ("    pass: [SECRET_KEY]\n", "f.yaml:3: agents, writer: command: SECRET_KEY belongs to this program"),
        ("    pass: [1x]\n", "f.yaml:3: agents, writer: command: pass holds '1x'"),
        (f"    model: {'x' * 121}\n", "f.yaml:5: agents, writer: model: Ensure this value has at most 120"),
    ],
    ids=str,
)
def test_what_a_row_refuses_is_a_fault_with_its_line(till: Project, line: str, fault: str) -> None:
    found = faults(till, WRITER + line)

    assert len(found) == 1
    assert found[0].startswith(fault)
    assert not Agent.objects.exists()


def test_a_fault_of_an_agent_leaves_the_settings_alone(till: Project) -> None:
    assert (
        len(faults(till, "rejections_max: 3\nagents: [{name: a, role: coder}, {name: b, role: coder}]")) == 2
    )
    till.refresh_from_db()
    assert (till.settings, Event.objects.count()) == ({}, 0)


def test_values_that_do_not_go_with_the_project_are_a_fault(till: Project) -> None:
    bring(till, "max_rounds: 40")

    assert faults(till, "\nhard_limit: 20") == ["f.yaml:2: max_rounds is at most hard_limit, 20."]


# --- The known CLIs -----------------------------------------------------------------------------------------

TEAM = (Path(__file__).parents[3] / "examples" / "agents" / "team.yaml").read_text()


@pytest.mark.django_db
def test_the_example_of_a_team_can_be_taken_and_says_the_same_again() -> None:
    project = create_project("ledger")
    import_config(project, TEAM, actor=SYSTEM)
    coder = Agent.objects.get(name="claude-large")
    assert (coder.provider, coder.tier, coder.made_by) == ("claude", "large", "anthropic")
    assert coder.settings == {"key": "ANTHROPIC_API_KEY"}
    local = Agent.objects.get(name="local-small")
    assert (local.provider, local.made_by, local.account) == ("opencode", "alibaba", "opencode:local-small")
    assert import_config(project, export_config(project), actor=SYSTEM) == []


@pytest.mark.django_db
@for_each(
    ("lines", "said"),
    [
        ("provider: claude\n    command: mine", "an agent has a command or provider, not both"),
        ("provider: replay", "provider: one of claude, codex, gemini, opencode, pull, not 'replay'"),
        ("provider: claude\n    key: sk-ant-secret", "key is the name of the variable"),
        ("provider: codex\n    base_url: nowhere", "base_url is an address"),
        ("provider: opencode\n    model: gpt", "PROVIDER/MODEL"),
    ],
)
def test_a_wrong_agent_of_a_known_cli_is_refused_by_name(lines: str, said: str) -> None:
    project = create_project("ledger")
    with pytest.raises(FaultyFile, match=said):
        import_config(project, f"agents:\n  - name: a\n    role: coder\n    {lines}\n", actor=SYSTEM)
    assert not Agent.objects.exists()


def test_a_further_command_is_known_everywhere_by_its_row_in_the_table(
    monkeypatch: pytest.MonkeyPatch, admin_client: Client
) -> None:
    class Aider(Codex):
        title, command, key_variable, vendor = "Aider", "aider", "AIDER_API_KEY", "aider.chat"

    for table in (CLIS, PROVIDERS):
        monkeypatch.setitem(table, "aider", Aider())
    lines = "agents:\n  - name: a\n    role: coder\n    provider: aider\n"
    import_config(create_project("ledger"), lines, actor=SYSTEM, elsewhere=True)
    agent = Agent.objects.get()
    assert (agent.made_by, agent.account, agent.get_provider_display()) == ("aider.chat", "aider", "Aider")
    page = admin_client.get(f"/admin/agents/agent/{agent.pk}/change/").content.decode()
    assert "<strong>Aider</strong>" in page
    assert "Signs in with AIDER_API_KEY, unless you name another variable." in page
    named = {
        path.parent.name
        for path in Path("agents").rglob("*.py")
        if "gemini" in path.read_text().replace("GEMINI.md", "").lower()
    }
    assert named == {"providers"}


def test_the_kind_of_a_project_goes_out_and_comes_in_until_its_work_has_begun(till: Project) -> None:
    text = export_config(till)
    assert "\nkind: code\n" in text
    assert bring(till, text) == []
    changed = text.replace("kind: code", "kind: Documents")
    assert bring(till, changed, dry_run=True) == ["kind: code → documents"]
    till.refresh_from_db()
    assert till.kind == "code"
    assert bring(till, changed) == ["kind: code → documents"]
    till.refresh_from_db()
    assert till.kind == "documents"
    assert Event.objects.filter(kind="edited", note="kind: code → documents").exists()
    assert "it is one of code, documents" in faults(till, "kind: pictures\n")[0]
    till.checkpoints.create(number=1)
    assert faults(till, "\nkind: code\n") == [
        "f.yaml:2: kind is documents: the work has begun as that, and stays it."
    ]
    till.refresh_from_db()
    assert till.kind == "documents"
