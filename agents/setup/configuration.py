"""Reads a project's settings and agents from a file, and writes them to one."""

import shlex
from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q

from agents.models import Agent
from agents.providers.registry import CLIS
from agents.setup.adding import ELSEWHERE, missing_program
from disputes.opinions import POLICY_KEYS, policy_of, sign
from tasks.configuration import reading
from tasks.configuration.changing import configure
from tasks.configuration.policy import SettingsError
from tasks.configuration.writing import write_settings
from tasks.database.locking import locked
from tasks.events import Actor
from tasks.models import Project
from tasks.models.event import record

# From the keys of the file to the fields of the row. Keys of the agent's own settings follow in OWN.
SAME = (
    "role", "model", "vendor", "tier", "instructions", "domains", "watches", "focus", "priority", "slots",
)  # fmt: skip
FIELDS = {"type": "kind", **{key: key for key in SAME}, "active": "is_active"}


# Keys of the agent's own settings, named the same in the file; its provider says which of them fit.
OWN = ("pass", "program", "base_url", "key", "sign_in_file", "account", "hosts", "again")


UNSIGNED = (
    "on_dispute with prompt_user: false rules in the name of who set it, and nobody is known to have: "
    "disputes wait for people. Import it with --user NAME, or set it again on the project's page."
)


class _DryRun(Exception):  # noqa: N818  (nothing went wrong)
    """Raised to roll back the transaction of a dry run."""


def import_config(
    project: Project, text: str, *, actor: Actor, dry_run: bool = False, elsewhere: bool = False
) -> list[str]:
    """Change the project and its agents to match the file, and return lines that say what changed.

    With `elsewhere`, agents whose program this host lacks are accepted. Raises FaultyFile with everything
    that is wrong, and then changes nothing. A dry run changes nothing either.
    """
    file = reading.read_settings(text)
    said: list[str] = []
    try:
        with transaction.atomic():
            said += _kind(project, file, actor) + _settings(project, file, actor)
            said += _agents(project, file.agents, actor, elsewhere)
            said += sign(project, file.values, actor=actor)
            if POLICY_KEYS & set(file.values) and policy_of(project).is_unsigned:
                said.append(UNSIGNED)
            if dry_run:
                raise _DryRun
    except _DryRun:
        project.refresh_from_db()
    return said


def export_config(project: Project) -> str:
    """Return the project's settings and agents as a file that import_config reads."""
    agents = Agent.objects.filter(Q(projects=None) | Q(projects=project)).order_by("role", "name")
    title = f"Settings of {project.slug}. import_config reads this file."
    return write_settings(project.config, [_entry(agent) for agent in agents], title, project.kind)


# --- Settings -----------------------------------------------------------------------------------------------


def _settings(project: Project, file: reading.SettingsFile, actor: Actor) -> list[str]:
    row = locked(Project.objects).get(pk=project.pk)
    file.over(row.config)  # raises faults together with their lines
    try:
        made = configure(project, file.values, actor=actor)
    except SettingsError as error:
        raise reading.FaultyFile([reading.Fault(file.lines.get(error.key, 1), str(error))]) from error
    return [str(change) for change in made]


def _kind(project: Project, file: reading.SettingsFile, actor: Actor) -> list[str]:
    """Change the project's kind to the file's. Raises FaultyFile if its work has begun as another kind."""
    row = locked(Project.objects).get(pk=project.pk)
    if file.kind in {"", row.kind}:
        return []
    if row.checkpoints.exists():
        why = f"kind is {row.kind}: the work has begun as that, and stays it."
        raise reading.FaultyFile([reading.Fault(file.lines[reading.KIND], why)])
    Project.objects.filter(pk=row.pk).update(kind=file.kind)
    project.kind = file.kind
    record(project, "edited", actor=actor, note=f"kind: {row.kind} → {file.kind}")
    return [f"kind: {row.kind} → {file.kind}"]


# --- Agents -------------------------------------------------------------------------------------------------


def _agents(
    project: Project, entries: Sequence[reading.AgentEntry], actor: Actor, elsewhere: bool
) -> list[str]:
    said: list[str] = []
    faults: list[reading.Fault] = []
    for entry in entries:
        try:
            said += _agent(project, entry, actor, elsewhere)
        except ValidationError as error:
            faults += _faults(entry, error)
    if faults:
        raise reading.FaultyFile(faults)
    return said


def _agent(project: Project, entry: reading.AgentEntry, actor: Actor, elsewhere: bool) -> list[str]:
    """Create the agent, or set what the entry says and leave everything else as it is."""
    name = entry.values["name"]
    agent = Agent.objects.filter(name=name).first()
    before = _entry(agent) if agent else {}
    row = agent or Agent(name=name)
    for key, field in FIELDS.items():
        if key in entry.values:
            setattr(row, field, entry.values[key])
    started = (row.provider, row.settings)
    _set_command(row, entry.values)
    row.full_clean()
    if not elsewhere and (agent is None or started != (row.provider, row.settings)):
        _require_program(row)
    row.save()
    joins = agent is None or (row.projects.exists() and not row.projects.filter(pk=project.pk).exists())
    if joins:
        row.projects.add(project)
    if agent is None:
        record(project, "agent_added", actor=actor, note=name)
        return [f"agent {name}: added as {row.role}"]
    return _edited(project, row, before, actor, joins=joins)


def _edited(
    project: Project, agent: Agent, before: dict[str, Any], actor: Actor, *, joins: bool
) -> list[str]:
    """Record what changed as an event and return it as a line; nothing if all is as before."""
    after = _entry(agent)
    changed = [key for key in after | before if after.get(key) != before.get(key)]
    note = ", ".join([*changed, *(["works here"] if joins else [])])
    if not note:
        return []
    record(project, "agent_edited", actor=actor, note=f"{agent.name}: {note}")
    is_shared = bool(changed) and agent.projects.count() != 1
    return [f"agent {agent.name}: {note}" + (" (it works on other projects too)" if is_shared else "")]


def _require_program(agent: Agent) -> None:
    """Raise ValidationError if this host lacks the agent's program."""
    if missing := missing_program(agent):
        raise ValidationError({"settings": f"{missing} {ELSEWHERE}"})


def _set_command(agent: Agent, values: dict[str, Any]) -> None:
    """Set which process is started: a command, one of the known CLIs, or a recorded cassette."""
    if "cassettes" in values:
        agent.provider, agent.settings = Agent.Provider.REPLAY, {"cassettes": values["cassettes"]}
    elif "command" in values:
        kept = agent.settings if agent.provider == Agent.Provider.COMMAND else {}
        agent.provider = Agent.Provider.COMMAND
        agent.settings = {**kept, "argv": shlex.split(values["command"])}
    elif "provider" in values:
        if values["provider"] not in (known := [*CLIS, Agent.Provider.PULL]):
            raise ValidationError({"provider": f"one of {', '.join(known)}, not {values['provider']!r}."})
        kept = agent.settings if agent.provider == values["provider"] else {}
        agent.provider, agent.settings = values["provider"], dict(kept)
    agent.settings = {**agent.settings, **{key: values[key] for key in OWN if key in values}}


def _faults(entry: reading.AgentEntry, error: ValidationError) -> list[reading.Fault]:
    """Return what the row refuses, at the keys of the file."""
    process = next((key for key in (*reading.STARTS, *OWN) if key in entry.values), "command")
    keys = {field: key for key, field in FIELDS.items()} | {"settings": process}
    return [
        entry.fault(keys.get(field, field), f"{keys.get(field, field)}: {message}")
        for field, messages in error.message_dict.items()
        for message in messages
    ]


def _entry(agent: Agent) -> dict[str, Any]:
    """Return the agent as it is written in a file: whatever differs from a new agent's fields."""
    plain = Agent()
    entry: dict[str, Any] = {"name": agent.name}
    settings = agent.settings
    if "argv" in settings:
        entry["command"] = shlex.join(settings["argv"])
    elif agent.provider not in {Agent.Provider.COMMAND, Agent.Provider.REPLAY}:
        entry["provider"] = agent.provider
    entry |= {key: settings[key] for key in ("cassettes", *OWN) if settings.get(key)}
    told = {key: getattr(agent, field) for key, field in FIELDS.items()}
    return entry | {
        key: value for key, value in told.items() if key == "role" or value != getattr(plain, FIELDS[key])
    }
