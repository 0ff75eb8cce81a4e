"""The API held to its own schema by Schemathesis: no answer of 500, and none that is not documented."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from agents.models import Agent, Prompt, Run, new_token, token_hash
from disputes.models import Conflict
from tasks.models import Project
from tests.factories import create_agent, create_run, create_task, create_token, sha
from tests.filling import fill

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

COMMAND = Path(sys.executable).with_name("schemathesis")
SECONDS = 18  # for each caller: first the limits of each field at each address, then what comes to mind
AT_ONCE = 2  # callers
LEAST = 20  # addresses that are reached in that time on a loaded machine; there are about thirty
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


def try_out(url: str, token: str, schema: Path, parameters: str, folder: Path) -> tuple[str, dict[str, Any]]:
    """What Schemathesis prints, and its report, of requests with this token."""
    folder.mkdir()
    config, report = folder / "schemathesis.toml", folder / "report.json"
    config.write_text(parameters)
    words = [
        COMMAND, "--config-file", config, "run", schema, "--url", url,
        "--header", f"Authorization: Bearer {token}", "--checks", CHECKS, "--max-time", str(SECONDS),
        "--phases", "coverage,fuzzing", "--seed", "1", "--generation-database", "none",
        "--no-color", "--no-shrink", "--continue-on-failure", "--warnings", "off",
        "--report", "json", "--report-json-path", report,
    ]  # fmt: skip
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr, json.loads(report.read_text())


def test_the_api_answers_as_its_schema_says(
    live_server: Any, callers: dict[str, tuple[str, str]], tmp_path: Path
) -> None:
    if not COMMAND.exists():
        pytest.skip("Schemathesis is not installed: make setup-dev")
    schema, number = tmp_path / "schema.yaml", Run.objects.get(is_pulled=True).pk
    with schema.open("w") as file:
        call_command("spectacular", stdout=file)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tried = {
            name: pool.submit(
                try_out, live_server.url, token, schema,
                f'[parameters]\n"path.ref" = "{ref}"\n"path.id" = {number}\n' if ref else "", tmp_path / name,
            )
            for name, (token, ref) in callers.items()
        }  # fmt: skip
    for name, trial in tried.items():
        printed, report = trial.result()
        assert not report["failures"], f"{name}:\n{printed}"
        assert not report["errors"], f"{name}:\n{printed}"
        assert report["operations"]["tested"] >= LEAST, f"{name}:\n{printed}"
