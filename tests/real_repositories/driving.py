"""One repository from `add_project` to its first landing, typed as the README says."""

import os
import re
import shutil
import subprocess
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from agents.runtime import processes
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
    build: str = ""
    test: str = ""
    base: str = ""
    base_seconds: float | None = None
    landed_seconds: float | None = None
    seconds: float = 0.0
    coder_runs: int = 0
    cards: list[str] = field(default_factory=list)
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
        for folder in (home / "runs").glob("*"):
            processes.end_all(processes.working_in(folder), 1.0)
        for name in ("runs", "env", "mirrors"):  # large; database and logs tell what happened
            shutil.rmtree(home / name, ignore_errors=True)
    return outcome


def _drive(package: Package, made: Untouched, remote: Path, outcome: Outcome) -> None:
    begun = time.monotonic()
    if not _type_commands(made, remote, outcome):
        return
    loop = made.begin("run_orchestrator", "--until-idle", "--no-web")
    while loop.poll() is None and time.monotonic() - begun < LIMIT:
        time.sleep(LOOK)
        if outcome.landed_seconds is None and has_landed(remote):
            outcome.landed_seconds = time.monotonic() - begun
        if outcome.base_seconds is None and base_state(made)[0]:
            outcome.base_seconds = time.monotonic() - begun
    outcome.seconds = time.monotonic() - begun
    outcome.base = base_state(made)[0]
    _read(made, outcome)
    if loop.poll() is None:
        outcome.why = f"was not done after {LIMIT:g} s"
        return
    if outcome.landed_seconds is None and has_landed(remote):
        outcome.landed_seconds = outcome.seconds
    judge(outcome)
    if outcome.ended == "failed" and not outcome.why:
        outcome.why = f"the loop ended with {loop.returncode}: {made.log()[-400:]}"


def _type_commands(made: Untouched, remote: Path, outcome: Outcome) -> bool:
    """What a person types before the loop is started. Whether all of it was taken."""
    paths = {"coder": CODER, "reviewer": REVIEWER, "TODO.md": TODO}
    for name, text in paths.items():
        path = made.home / name
        path.write_text(text)
        path.chmod(0o700)
    slug = "tried"
    for words in (
        ("add_project", slug, str(remote)),
        ("add_agent", "my-coder", "--role", "coder", "--", str(made.home / "coder"), "{prompt}"),
        ("add_agent", "my-reviewer", "--role", "reviewer", "--", str(made.home / "reviewer"), "{prompt}"),
        ("import_todo", str(made.home / "TODO.md"), "--project", slug),
    ):
        try:
            done = made.manage(*words, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            outcome.why = f"{words[0]} was not done after {LIMIT:g} s"
            return False
        outcome.typed += [*done.stdout.splitlines(), *done.stderr.splitlines()]
        if done.returncode:
            outcome.why = (
                f"{words[0]} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}"
            )
            return False
    return True


def has_landed(remote: Path) -> bool:
    """Whether the file is on the default branch of the remote, whatever that is called."""
    argv = ["git", "-C", str(remote), "cat-file", "-e", f"HEAD:{FILE}"]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def base_state(made: Untouched) -> tuple[str, str]:
    """What the project knows of its untouched base: a word, empty for nothing yet; and the output's end."""
    found = made.rows("SELECT green, step, exit_code, tail FROM tasks_verification ORDER BY at LIMIT 1")
    if not found:
        return "", ""
    green, step, code, tail = found[0]
    return ("green" if green else f"red: {step} {code}"), tail


def _read(made: Untouched, outcome: Outcome) -> None:
    outcome.coder_runs = made.value("SELECT count(*) FROM agents_run WHERE role = 'coder'")
    outcome.cards = [
        _masked(question)
        for (question,) in made.rows(
            "SELECT question FROM disputes_dispute WHERE status = 'open' ORDER BY id"
        )
    ]
    printed = "\n".join(outcome.typed)
    for name, pattern in (("build", r"^build: (.+)$"), ("test", r"^tests?: (.+)$")):
        if found := re.search(pattern, printed, re.MULTILINE):
            setattr(outcome, name, found[1])


def judge(outcome: Outcome) -> None:
    """Landed with one coder run; or one card and no coder run; or failed, with why."""
    if outcome.landed_seconds is not None:
        outcome.ended = "landed"
        if outcome.coder_runs != 1 or outcome.cards:
            outcome.ended = "failed"
            outcome.why = f"landed with {outcome.coder_runs} coder runs and {len(outcome.cards)} cards"
    elif len(outcome.cards) == 1 and outcome.coder_runs == 0:
        outcome.ended = "card"
        outcome.why = outcome.cards[0]
    elif outcome.cards or outcome.coder_runs:
        outcome.why = (
            f"{len(outcome.cards)} cards, {outcome.coder_runs} coder runs: {' / '.join(outcome.cards)}"[:600]
        )


def _masked(text: str) -> str:
    """Without the host names of registries, which are nobody's business in a table."""
    return re.sub(r"(https?://)[^/\s]+", r"\1...", text)
