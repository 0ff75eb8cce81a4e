"""The first hour on the terminal: `manage.py start`, typed, piped or without a question."""

import os
import pty
import select
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.end_to_end.installation import PATIENCE, ROOT, Installation
from tests.end_to_end.loop import bare_remote, git

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

TESTED = {
    "sums.py": "def add(a, b):\n    return a + b\n",
    "test_sums.py": """
        import unittest
        import sums

        class Sums(unittest.TestCase):
            def test_add(self):
                self.assertEqual(sums.add(1, 2), 3)
    """,
    "steroids.yaml": "test: python3 -m unittest -v test_sums\n",
}
CODER = f"{ROOT}/examples/agents/coder.sh {{prompt}}"
REVIEWER = f"{ROOT}/examples/agents/reviewer.sh {{prompt}}"
COUNTED = ("auth_user", "tasks_project", "tasks_membership", "tasks_task", "tasks_event", "agents_agent")


class Typist:
    """Somebody at a terminal who answers what is asked."""

    def __init__(self, place: Installation, *words: str) -> None:
        self.screen, self.seen = "", 0
        self.process_id, self.terminal = pty.fork()
        if self.process_id == 0:
            os.chdir(ROOT)
            signal.signal(
                signal.SIGINT, signal.SIG_DFL
            )  # whoever runs the tests in the background ignores it
            os.execve(sys.executable, [sys.executable, "manage.py", *words], place.environment)  # noqa: S606

    def read(self, deadline: float) -> bool:
        """What the program wrote; False once it has ended."""
        assert select.select([self.terminal], [], [], max(deadline - time.monotonic(), 0))[0], self.screen
        try:
            piece = os.read(self.terminal, 4096)
        except OSError:
            return False
        self.screen += piece.decode(errors="replace").replace("\r", "")
        return bool(piece)

    def answer(self, question: str, text: str) -> None:
        """Wait for these words after the last ones, then type."""
        deadline = time.monotonic() + PATIENCE
        while (found := self.screen.find(question, self.seen)) < 0:
            assert self.read(deadline), f"It ended before it said {question!r}:\n{self.screen}"
        self.seen = found + len(question)
        os.write(self.terminal, text.encode())

    def interrupt(self, question: str) -> None:
        """Press Ctrl+C at this question until it is heard: `input` misses one that comes too early."""
        self.answer(question, "")
        asked = self.screen
        while self.screen.replace("^C", "") == asked:
            os.write(self.terminal, b"\x03")
            while select.select([self.terminal], [], [], 2)[0] and self.read(time.monotonic() + PATIENCE):
                pass

    def end(self) -> int:
        while self.read(time.monotonic() + PATIENCE):
            pass
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.process_id, 0)[1])


def counts(place: Installation) -> dict[str, int]:
    return {table: place.value(f"SELECT count(*) FROM {table}") for table in COUNTED}  # noqa: S608


def with_commands(place: Installation, folder: Path, *names: str) -> None:
    """Programs of these names at the front of the PATH, and a home without sign-ins."""
    binaries = folder / "bin"
    binaries.mkdir()
    for name in names:
        (binaries / name).write_text("#!/bin/sh\necho READY\n")
        (binaries / name).chmod(0o755)
    place.environment["PATH"] = f"{binaries}:{place.environment['PATH']}"
    place.environment["HOME"] = str(folder)


def remote_in(folder: Path, name: str) -> Path:
    """A bare repository of that name, with a tested library."""
    made = bare_remote(folder / f"{name}-made", TESTED)
    return made.rename(folder / f"{name}.git")


def test_whoever_types_the_answers_lands_a_first_task(installation: Installation, tmp_path: Path) -> None:
    with_commands(installation, tmp_path)
    early, remote = remote_in(tmp_path, "early"), remote_in(tmp_path, "sums")
    added = installation.manage("add_project", "early", str(early), "--later")
    assert "no members yet: `manage.py start`" in added.stdout, added.stderr
    at = Typist(installation, "start")
    at.answer("Your user name?", "lea\n")
    at.answer("Password", "12345\n")
    at.answer("too short", "")
    at.answer("Password", "a long walk uphill\n")
    at.answer("The same again", "a long walk downhill\n")
    at.answer("The two differ", "")
    at.answer("Password", "a long walk uphill\n")
    at.answer("The same again", "a long walk uphill\n")
    at.answer("early had no members", "")
    at.answer("address of another repository? [early]", f"{tmp_path}/nowhere.git\n")
    at.answer("It cannot be used", "")
    at.answer("address of another repository? [early]", f"{tmp_path}/early.git/../sums.git\n")
    at.answer("Short name, which begins each task's name? [sums]", "early\n")
    at.answer("There is a project early already", "")
    at.answer("[sums]", "\n")
    at.answer("lands on? [main]", "\n")
    at.answer("main is green. Work can begin.", "")
    at.answer("Which coder?", "no-such-agent\n")
    at.answer("It was looked for in", "")
    at.answer("Which coder?", f"{CODER}\n")
    at.answer("Fine: its command ended with 0", "")
    at.answer("Which reviewer?", "")
    at.interrupt("is its prompt's path. ")
    assert at.end() == 130, at.screen
    assert "What was done stays" in at.screen
    assert "a long walk" not in at.screen
    assert installation.rows("SELECT slug FROM tasks_project ORDER BY slug") == [("early",), ("sums",)]
    members = "SELECT count(*) FROM tasks_membership WHERE is_lead AND role = 'maintainer'"
    assert installation.value(members) == 2

    todo = tmp_path / "TODO.md"
    todo.write_text("- Say what it does\n")
    at = Typist(installation, "start")
    at.answer("or the address of another repository? [sums]", "\n")
    at.answer("Coder: sums-coder.", "")
    at.answer("Which reviewer?", f"{REVIEWER}\n")
    at.answer("the first task in a line?", f"{todo}\n")
    at.answer("Take 1 line that may be meant so for tasks? [y/N]", "\n")
    at.answer(f"{todo}:1: ", "")
    at.answer("the first task in a line?", "Say what it does\n")
    at.answer("Another one?", "Say how to start it\n")
    at.answer("Another one?", "\n")
    assert at.end() == 0, at.screen
    assert at.screen.endswith("Ready. Start it: .venv/bin/python manage.py run_orchestrator\n")

    before = counts(installation)
    again = installation.manage("start", input="\n")
    assert again.returncode == 0, again.stdout + again.stderr
    assert counts(installation) == before
    report = installation.until_idle()
    assert report.count("completed") == 2
    assert git(remote, "show", "main:DONE.md").splitlines() == ["- Say what it does", "- Say how to start it"]


def test_with_yes_it_asks_nothing_and_options_answer(installation: Installation, tmp_path: Path) -> None:
    with_commands(installation, tmp_path, "claude", "codex")
    installation.environment["OPENAI_API_KEY"] = "not-to-be-shown"
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / ".credentials.json").write_text("not-to-be-shown")
    remote = remote_in(tmp_path, "sums")
    todo = tmp_path / "TODO.md"
    todo.write_text("- [ ] Say what it does\n")

    for words, refusal in (
        ((), "--yes needs --repository"),
        (("--repository", f"{tmp_path}/nowhere"), "It cannot be used"),
        (("--repository", "https://lea:secret-word@example.org/x.git"), "git-credentials"),
        (("--repository", str(remote), "--slug", "No Name"), "is no short name"),
        (("--repository", str(remote), "--branch", "none"), "none cannot be used"),
    ):
        done = installation.manage("start", "--yes", *words, stdin=subprocess.DEVNULL)
        assert done.returncode == 1, (words, done.stdout)
        assert refusal in done.stderr, (words, done.stderr)
        assert "secret-word" not in done.stdout + done.stderr
        assert installation.value("SELECT count(*) FROM tasks_project") == 0
    password = installation.home / "admin-password"
    assert stat.S_IMODE(password.stat().st_mode) == 0o600

    words = ["start", "--yes", "--repository", str(remote), "--todo", str(todo), "--no-check"]
    done = installation.manage(*words, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "claude: Claude Code, signed in" in done.stdout
    assert password.read_text().strip() not in done.stdout
    assert "not-to-be-shown" not in done.stdout + done.stderr
    rows = installation.rows("SELECT name, provider, settings FROM agents_agent ORDER BY name")
    assert rows == [
        ("sums-coder", "claude", f'{{"sign_in_file": "{tmp_path}/.claude/.credentials.json"}}'),
        ("sums-reviewer", "codex", "{}"),
    ]
    before = counts(installation)
    done = installation.manage(*words, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 unchanged" in done.stdout
    assert counts(installation) == before
    words[words.index(str(todo))] = str(tmp_path / "tasks.json")
    done = installation.manage(*words, stdin=subprocess.DEVNULL)
    assert "tasks.json cannot be read: No such file" in done.stderr
    assert counts(installation) == before

    done = installation.manage("start", "--yes", stdin=subprocess.DEVNULL)  # now they are tried
    assert done.returncode == 1
    assert "Not ready yet." in done.stderr
    assert "manage.py remove_agent sums-coder" in done.stderr


def test_answers_that_end_are_told_with_how_to_go_on(installation: Installation, tmp_path: Path) -> None:
    with_commands(installation, tmp_path)
    done = installation.manage("start", input="lea\n\n")
    assert done.returncode == 1
    assert "what was done stays. Run it again, with --repository" in done.stderr
    assert installation.rows("SELECT username, is_superuser FROM auth_user") == [("lea", 1)]


# --- Before the database is there, and what a command loads -------------------------------------------------


def test_a_command_before_the_first_migration_says_what_to_run(folder: Installation) -> None:
    for words in (["status"], ["host", "list"], ["start", "--yes"]):
        done = folder.manage(*words)

        assert done.returncode == 1, words
        assert done.stderr.strip().endswith("Run `make setup` or `manage.py migrate`."), words
        assert "Traceback" not in done.stderr, words


def test_a_command_loads_neither_pages_nor_what_fills_the_slots_nor_another_database(
    installation: Installation,
) -> None:
    asked = (
        "import sys, manage; sys.argv = ['manage.py', 'status', '--json']; manage.main(); "
        "from django.urls import get_resolver; "
        "too_much = ('unfold.admin', 'requests', 'agents.cli', 'agents.judging'); "
        "found = [n for n in too_much if n in sys.modules]; "
        "list(get_resolver().url_patterns); "
        "print(found + [n for n in ('psycopg', 'django.contrib.postgres.fields') if sys.modules.get(n)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", asked], cwd=ROOT, env=installation.environment, capture_output=True, text=True
    )

    assert done.stdout.endswith("[]\n"), (done.stdout[-500:], done.stderr)
