"""The API held to its own schema by Schemathesis: no answer of 500, and none that is not documented."""

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.signals import request_started

from agents.models import Agent, Prompt, Run, new_token, token_hash
from disputes.models import Conflict
from tasks.models import Project
from tests.factories import create_agent, create_run, create_task, create_token, sha
from tests.filling import fill

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

COMMAND = Path(sys.executable).with_name("schemathesis")
SECONDS = 18  # for each caller: first the limits of each field at each address, then what comes to mind
AT_ONCE = 2  # callers
LEAST = 20  # operations of about fifty that each tries, if need be in several turns of that time
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


@pytest.fixture
def callers(ledger: Project, lea: User, tom: User) -> dict[str, tuple[str, str]]:
    """The token of each kind of caller, and the task that it names; one names whatever comes to mind."""
    fill(ledger, 1, tom)
    disputed = Conflict.objects.get().dispute.task
    person = create_token(lea, "script")[1]
    found = {"guesser": (person, ""), "person": (person, disputed.ref)}
    for role in ("coder", "reviewer"):
        task = create_task(ledger, status="in_progress" if role == "coder" else "review", round=1)
        found[role] = (new_token(), task.ref)
        create_run(task, role, token_hash=token_hash(found[role][0]), sha=sha(1), base_sha=sha(2))
    elsewhere = create_agent("coder", provider=Agent.Provider.PULL, settings={})
    task = create_task(ledger, status="in_progress", round=1)
    found["pulled"] = (new_token(), task.ref)
    hashed = token_hash(found["pulled"][0])
    run = create_run(task, "coder", is_pulled=True, agent=elsewhere, token_hash=hashed, base_sha=sha(2))
    Prompt.objects.create(run=run, text="Round up.")
    return found


@pytest.fixture
def asked() -> Iterator[set[tuple[str, str]]]:
    """The method and the address of every request that came."""
    found: set[tuple[str, str]] = set()

    def note(environ: dict[str, str], **kwargs: Any) -> None:
        found.add((environ["REQUEST_METHOD"].lower(), environ["PATH_INFO"]))

    request_started.connect(note)
    yield found
    request_started.disconnect(note)


def never_asked(schema: dict[str, Any], asked: set[tuple[str, str]]) -> list[str]:
    """The operations of the schema of which no request was one."""
    left = []
    for path, operations in schema["paths"].items():
        address = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        methods = {method for method, where in asked if address.fullmatch(where)}
        left += [f"{method} {path}" for method in operations if method not in methods]
    return left


def beginning_at(first: int, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema in another order. What one caller has no time for, another begins with."""
    paths = list(schema["paths"].items())
    first %= len(paths)
    return schema | {"paths": dict(paths[first:] + paths[:first])}


def try_enough(url: str, token: str, schema: dict[str, Any], parameters: str, folder: Path) -> None:
    """Let this caller try the operations of the schema from its first on, until they are enough."""
    tried = turns = 0
    while tried < LEAST:
        turns += 1
        report = try_out(url, token, beginning_at(tried, schema), parameters, folder / str(turns))
        assert report["operations"]["tested"], f"no time for a single one in turn {turns}"
        tried += report["operations"]["tested"]


def try_out(url: str, token: str, schema: dict[str, Any], parameters: str, folder: Path) -> dict[str, Any]:
    """Schemathesis' report of requests with this token, in which nothing failed."""
    folder.mkdir(parents=True)
    config, report, order = folder / "schemathesis.toml", folder / "report.json", folder / "schema.json"
    config.write_text(parameters)
    order.write_text(json.dumps(schema))
    words = [
        COMMAND, "--config-file", config, "run", order, "--url", url,
        "--header", f"Authorization: Bearer {token}", "--checks", CHECKS, "--max-time", str(SECONDS),
        "--phases", "coverage,fuzzing", "--seed", "1", "--generation-database", "none",
        "--no-color", "--no-shrink", "--continue-on-failure", "--warnings", "off",
        "--report", "json", "--report-json-path", report,
    ]  # fmt: skip
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    found = json.loads(report.read_text())
    assert not found["failures"], done.stdout + done.stderr
    assert not found["errors"], done.stdout + done.stderr
    return dict(found)


def test_the_api_answers_as_its_schema_says(
    live_server: Any, callers: dict[str, tuple[str, str]], asked: set[tuple[str, str]], tmp_path: Path
) -> None:
    if not COMMAND.exists():
        pytest.skip("Schemathesis is not installed: make setup-dev")
    written, number = io.StringIO(), Run.objects.get(is_pulled=True).pk
    call_command("spectacular", format="openapi-json", stdout=written)
    schema = json.loads(written.getvalue())
    paths = list(schema["paths"])
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tried = {
            name: pool.submit(
                try_enough, live_server.url, token, beginning_at(place * len(paths) // len(callers), schema),
                f'[parameters]\n"path.ref" = "{ref}"\n"path.id" = {number}\n' if ref else "", tmp_path / name,
            )
            for place, (name, (token, ref)) in enumerate(callers.items())
        }  # fmt: skip
    for trial in tried.values():
        trial.result()
    left = never_asked(schema, asked)
    while left:
        rest = beginning_at(paths.index(left[0].partition(" ")[2]), schema)
        try_out(live_server.url, callers["guesser"][0], rest, "", tmp_path / f"left-{len(left)}")
        before, left = left, never_asked(schema, asked)
        assert len(left) < len(before), left
