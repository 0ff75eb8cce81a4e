"""One repository from `add_project` to its first landing, typed as the README says."""

import json
import os
import re
import shutil
import subprocess
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from agents.hosts import processes
from tests.durations import ENVIRONMENT
from tests.end_to_end.installation import Installation
from tests.real_repositories.packages import Package
from tests.real_repositories.sources import FOLDER, NotToBeHad, remote_of

HOMES = FOLDER / "homes"  # below the checkout, as the data folder is unless somebody moves it
LIMIT = 1200.0  # seconds for one repository
LOOK = 0.5  # seconds between two looks at its state
FILE = "SUPPORT.md"
CODER = f"""#!/bin/sh
set -eu
printf '# Support\\n\\nPlease ask in the issue tracker.\\n' > {FILE}
git add --force {FILE}
git commit -q -m "docs: say where to ask"
steroids tasks update --status review
"""
REVIEWER = f"""#!/bin/sh
set -eu
test -s {FILE}
steroids tasks approve --notes "{FILE} says where to ask."
"""
TODO = f"# a project\n\n## Documents\n\n- [ ] Say in {FILE} where to ask\n"
# Where the registries are and whom to trust; an operator names these once for all projects.
PASSED = (
    "PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_CERT PIP_DEFAULT_TIMEOUT NPM_CONFIG_REGISTRY "
    "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS HTTPS_PROXY HTTP_PROXY NO_PROXY"
)


@dataclass
class Outcome:
    """What came of one package. Seconds count from the moment `add_project` was typed."""

    package: str
    ecosystem: str
    ended: str = "failed"  # landed, card, failed, or not to be had
    why: str = ""
    recipe: dict[str, str] = field(
        default_factory=dict
    )  # the commands that were kept, and where they were read
    base: str = ""
    base_seconds: float | None = None
    landed_seconds: float | None = None
    seconds: float = 0.0
    coder_runs: int = 0
    cards: list[str] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)  # each recipe and how it ended
    details: list[str] = field(default_factory=list)  # what the cards show besides their question
    typed: list[str] = field(default_factory=list)  # what the commands printed

    def as_row(self) -> dict[str, Any]:
        return asdict(self)


class Untouched(Installation):
    """An installation with the durations and limits that a user gets."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        for name in ENVIRONMENT:
            del self.environment[name]
        self.environment["STEROIDS_PASS_TO_BUILDS"] = ",".join(PASSED.split())
        self.environment["STEROIDS_SANDBOX_HOSTS"] = "*"  # a registry may lie in a private network
        self.environment |= {name: os.environ[name] for name in PASSED.split() if name in os.environ}


def migrated() -> Path:
    """A database without rows, made once for all repositories of a call."""
    home = HOMES / "empty"
    shutil.rmtree(home, ignore_errors=True)
    made = Untouched(home)
    home.mkdir(parents=True, mode=0o700)
    done = made.manage("migrate", "--verbosity", "0")
    assert done.returncode == 0, done.stderr
    return home / "steroids.sqlite3"


def drive(package: Package, database: Path) -> Outcome:
    """The whole way of one package; never raises for what it meets there."""
    outcome = Outcome(package.slug, package.ecosystem)
    try:
        remote = remote_of(package)
    except NotToBeHad as error:
        outcome.ended, outcome.why = "not to be had", _masked(str(error))
        return outcome
    home = HOMES / package.slug
    shutil.rmtree(home, ignore_errors=True)
    fresh = home / "remote.git"  # what landed the last time is not in this one
    made = Untouched(home)
    made.begin_with(database)
    shutil.copytree(remote, fresh, symlinks=True)
    try:
        _drive(package, made, fresh, outcome)
    finally:
        made.end_everything()
        for folder in (*home.glob("runs/*"), *home.glob("trials/*")):
            processes.end_all(processes.working_in(folder), 1.0)
        for name in ("runs", "trials", "env", "mirrors"):  # large; database and logs tell what happened
            shutil.rmtree(home / name, ignore_errors=True)
    return outcome


def _drive(package: Package, made: Untouched, remote: Path, outcome: Outcome) -> None:
    begun = time.monotonic()
    if not _type_commands(made, remote, outcome):
        outcome.seconds = time.monotonic() - begun
        _read(made, outcome)
        return
    loop = made.begin("run_orchestrator", "--until-idle", "--no-web")
    while loop.poll() is None and time.monotonic() - begun < LIMIT:
        time.sleep(LOOK)
        if outcome.landed_seconds is None and has_landed(remote):
            outcome.landed_seconds = time.monotonic() - begun
    outcome.seconds = time.monotonic() - begun
    _read(made, outcome)
    if loop.poll() is None:
        outcome.why = f"was not done after {LIMIT:g} s"
        return
    if outcome.landed_seconds is None and has_landed(remote):
        outcome.landed_seconds = outcome.seconds
    judge(outcome, package.has)
    if outcome.ended == "failed" and not outcome.why:
        outcome.why = f"the loop ended with {loop.returncode}: {made.log()[-400:]}"


def _type_commands(made: Untouched, remote: Path, outcome: Outcome) -> bool:
    """What a person types before the loop is started. Whether all of it was taken."""
    paths = {"coder": CODER, "reviewer": REVIEWER, "TODO.md": TODO}
    typed = HOMES.with_name("typed") / made.home.name  # no run sees what lies in the data folder
    typed.mkdir(parents=True, exist_ok=True)
    for name, text in paths.items():
        path = typed / name
        path.write_text(text)
        path.chmod(0o700)
    begun = time.monotonic()
    slug = "tried"
    for words in (
        ("add_project", slug, str(remote)),
        ("add_agent", "my-coder", "--role", "coder", "--", str(typed / "coder"), "{prompt}"),
        ("add_agent", "my-reviewer", "--role", "reviewer", "--", str(typed / "reviewer"), "{prompt}"),
        ("import_todo", str(typed / "TODO.md"), "--project", slug),
    ):
        try:
            done = made.manage(*words, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            outcome.why = f"{words[0]} was not done after {LIMIT:g} s"
            return False
        outcome.base_seconds = outcome.base_seconds or time.monotonic() - begun  # add_project waits for it
        outcome.typed += [*done.stdout.splitlines(), *done.stderr.splitlines()]
        if done.returncode:
            said = (done.stderr or done.stdout).strip()[-400:]
            outcome.why = _masked(f"{words[0]} ended with {done.returncode}: {said}")
            return False
    return True


def has_landed(remote: Path) -> bool:
    """Whether the file is on the default branch of the remote, whatever that is called."""
    argv = ["git", "-C", str(remote), "cat-file", "-e", f"HEAD:{FILE}"]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def _read(made: Untouched, outcome: Outcome) -> None:
    """What the installation knows now, asked of its database."""
    outcome.base = made.value("SELECT base_state FROM tasks_project") or ""
    outcome.coder_runs = made.value("SELECT count(*) FROM agents_run WHERE role = 'coder'")
    for source, prepare, build, test, ended, problem, is_kept in made.rows(
        "SELECT source, prepare, build, test, outcome, problem, is_kept FROM agents_trial ORDER BY id"
    ):
        commands = {"source": source, "prepare": prepare, "build": build, "test": test}
        if is_kept:
            outcome.recipe = commands
        said = "; ".join(command for name, command in commands.items() if command and name != "source")
        outcome.tried.append(_masked(f"{ended or 'live'}: {said} ({source}) {problem}"))
    for question, detail, evidence in made.rows(
        "SELECT question, coder_position, evidence FROM disputes_conflict WHERE status = 'open' ORDER BY id"
    ):
        outcome.cards.append(_masked(question))
        outcome.details.append(_masked("\n".join([*json.loads(evidence), detail])))


def judge(outcome: Outcome, has: str) -> None:
    """Landed with one coder run, and all run that there is; or one card and no coder; or failed, with why."""
    if outcome.landed_seconds is not None:
        lacking = {"tests": not outcome.recipe.get("test"), "build": not outcome.recipe, "nothing": False}[
            has
        ]
        if outcome.coder_runs != 1 or outcome.cards:
            outcome.why = f"landed with {outcome.coder_runs} coder runs and {len(outcome.cards)} cards"
        elif lacking:
            outcome.why = f"landed without its {has}"
        else:
            outcome.ended = "landed"
    elif len(outcome.cards) == 1 and outcome.coder_runs == 0:
        outcome.ended = "card"
        outcome.why = outcome.cards[0]
    elif outcome.cards or outcome.coder_runs:
        cards = " / ".join(outcome.cards)
        outcome.why = f"{len(outcome.cards)} cards, {outcome.coder_runs} coder runs: {cards}"[:600]


def _masked(text: str) -> str:
    """Without the host names of registries, which are nobody's business in a table."""
    return re.sub(r"(https?://)[^/\s]+", r"\1...", text)
