"""The drill: a backup while agents work, restored on another machine, which goes on where that one was."""

import gzip
import io
import json
import os
import stat
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.conftest import EMPTY
from tests.end_to_end.installation import PATIENCE, Installation, wait_for
from tests.end_to_end.loop import APPROVER, bare_remote, git, script

pytestmark = pytest.mark.slow
# Lands one task, asks people about another, and is in the middle of a third where the backup is made.
CODER = """
    import json, os, pathlib, subprocess, sys, time
    ref = json.loads(pathlib.Path(os.environ["STEROIDS_CONTEXT"]).read_text())["task"]
    if ref == "small-2":
        sys.exit(subprocess.run(["steroids", "blocked", "--reason", "Who has the key?"]).returncode)
    pathlib.Path(ref).write_text("half\\n")
    if ref == "small-3" and "/old/" in os.getcwd():
        pathlib.Path(os.environ["XDG_CACHE_HOME"], "held").touch()
        time.sleep(600)
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "commit", "-q", "-m", ref], check=True)
    sys.exit(subprocess.run(["steroids", "tasks", "update", "--status", "review"]).returncode)
"""
ROWS = """
from tests.end_to_end.loop import command_agent, small_project, task_in
command_agent("coder", {coder!r}), command_agent("reviewer", {reviewer!r})
project = small_project({remote!r})
for title in ("Land", "Ask", "Go on"): task_in(project, title)
"""
END = {"Land": "completed", "Ask": "disputed", "Go on": "completed"}
KEY = "a-key-of-the-data-folder-" + "z" * 30


class OnPostgres(Installation):
    """An installation whose rows are in a database of its own on a PostgreSQL server."""

    def __init__(self, home: Path, about: dict[str, Any], url: str) -> None:
        import psycopg

        super().__init__(home)
        self.about, self.errors = about, (psycopg.Error,)  # type: ignore[assignment]
        self.environment["DATABASE_URL"] = url

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(**self.about) as database:
            return database.execute(query, values or None).fetchall()


@contextmanager
def on_postgres(folder: Path, names: list[str]) -> Iterator[list[Installation]]:
    """One for each name, with a database without rows; the databases are dropped at the end."""
    import psycopg

    url = os.environ.get("TEST_POSTGRES_URL")
    if not url:
        pytest.skip("TEST_POSTGRES_URL names no PostgreSQL server")
    parts = urlsplit(url)
    server = parse_qs(parts.query).get("host", [parts.hostname])[0]
    about = {"host": server, "port": parts.port, "user": parts.username, "password": parts.password}
    admin = psycopg.connect(**about, dbname="postgres", autocommit=True)
    made: list[Installation] = []
    template = "template1"
    try:
        for name in names:
            database = f"drill_{name}_{os.getpid()}"
            admin.execute(f"CREATE DATABASE {database} TEMPLATE {template}")
            address = parts._replace(path=f"/{database}").geturl()
            made.append(OnPostgres(folder / name, {**about, "dbname": database}, address))
            set_up(made[-1])
            if template == "template1":  # the next one begins with a copy of this one's tables
                done = made[-1].manage("migrate", "--verbosity", "0")
                assert done.returncode == 0, done.stderr
            template = database
        yield made
    finally:
        for each in made:
            each.end_everything()
        for name in names:
            admin.execute(f"DROP DATABASE IF EXISTS drill_{name}_{os.getpid()} WITH (FORCE)")
        admin.close()


@contextmanager
def on_sqlite(folder: Path, names: list[str]) -> Iterator[list[Installation]]:
    made = [Installation(folder / name) for name in names]
    for each in made:
        each.begin_with(EMPTY)
        set_up(each)
    try:
        yield made
    finally:
        for each in made:
            each.end_everything()


def set_up(installation: Installation) -> None:
    """As `make setup` leaves it, whose database has every table and no row: with a key in the data folder."""
    installation.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    del installation.environment["SECRET_KEY"]
    (installation.home / "secret-key").write_text(f"{KEY}{installation.home.name}")
    (installation.home / "secret-key").chmod(0o600)


@pytest.mark.parametrize("databases", [on_sqlite, on_postgres], ids=["sqlite", "postgresql"])
def test_a_restored_backup_goes_on_where_it_was(databases: Any, tmp_path: Path, db: None) -> None:
    file = tmp_path / "backup.tar.gz"
    with databases(tmp_path, ["old", "new"]) as (old, new):
        remote = bare_remote(tmp_path, {"README.md": "Small.\n"})
        scripts = {"coder": CODER, "reviewer": APPROVER}
        agents = {name: str(script(tmp_path, name, body)) for name, body in scripts.items()}
        rows = old.manage("shell", "--no-imports", "-c", ROWS.format(remote=str(remote), **agents))
        assert rows.returncode == 0, rows.stderr
        begun = old.begin("run_orchestrator", "--no-web")
        wait_for(lambda: old.value("SELECT count(*) FROM tasks_task WHERE landed_sha <> ''"), "a landing")
        wait_for(lambda: old.statuses()["Ask"] == END["Ask"], "a question")
        wait_for(lambda: [*old.home.glob("runs/*/cache/held")], "a coder at work")
        made = old.manage("backup", str(file))
        assert made.returncode == 0, made.stderr
        begun.terminate()
        assert begun.wait(PATIENCE) == 0, old.log()
        old.end_everything()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "exists already" in old.manage("backup", str(file)).stderr

        began = time.monotonic()
        done = new.manage("restore", str(file))
        assert done.returncode == 0, done.stderr
        said = new.manage("doctor")
        assert (said.returncode, said.stdout) == (0, "All is well.\n"), said.stdout
        seconds = time.monotonic() - began
        assert (new.home / "secret-key").read_text() == (old.home / "secret-key").read_text()
        assert new.value("SELECT count(*) FROM agents_run WHERE status IN ('starting', 'running')") == 0
        assert new.value("SELECT count(*) FROM agents_run WHERE token_hash IS NOT NULL") == 0
        assert new.value("SELECT count(*) FROM agents_run WHERE outcome = 'lost'") >= 1
        assert new.value("SELECT count(*) FROM tasks_event WHERE kind = 'restored'") == 1
        over = new.manage("restore", str(file))
        assert over.returncode == 1
        assert "a backup goes into an empty installation only" in over.stderr

        new.until_idle()
        assert new.statuses() == END, new.log()
        landed = new.rows("SELECT landed_sha FROM tasks_task WHERE landed_sha <> ''")
        on_main = git(remote, "rev-list", "main").split()
        assert sorted(on_main[:-1]) == sorted(sha for (sha,) in landed)
        said = new.manage("doctor", "--json")
        assert json.loads(said.stdout)["findings"] == []
        print(f"\nThe drill: restored and looked through in {seconds:.1f} s, {file.stat().st_size:,} bytes.")


def test_what_is_no_backup_or_does_not_fit_changes_nothing(tmp_path: Path, db: None) -> None:
    with on_sqlite(tmp_path, ["old", "new"]) as (old, new):
        file = tmp_path / "backup.tar.gz"
        assert old.manage("backup", str(file)).returncode == 0
        nowhere = old.manage("backup", str(tmp_path / "missing" / "backup.tar.gz"))
        assert nowhere.stderr == f"CommandError: No backup was made. There is no folder {tmp_path}/missing.\n"
        before = new.rows("SELECT app, name FROM django_migrations ORDER BY id")

        def changed(**more: Any) -> Path:
            to = tmp_path / f"{'-'.join(more)}.tar.gz"
            with tarfile.open(file) as given, tarfile.open(to, "w:gz") as taken:
                for member in given.getmembers():
                    data = given.extractfile(member).read()  # type: ignore[union-attr]
                    if member.name == "manifest.json":
                        data = json.dumps(json.loads(data) | more).encode()
                        member.size = len(data)
                    taken.addfile(member, io.BytesIO(data))
            return to

        def circle() -> Path:
            with tarfile.open(tmp_path / "circle.tar.gz", "w:gz") as taken:
                link = tarfile.TarInfo("manifest.json")
                link.type, link.linkname = tarfile.SYMTYPE, link.name
                taken.addfile(link)
            return tmp_path / "circle.tar.gz"

        whole = file.read_bytes()
        for name, data in (
            ("words", b"no archive"), ("packed", gzip.compress(b"no archive")), ("half", whole[:9000]),
            ("without its sum", whole[:-5]), ("with another bit", whole[:-5000] + b"\0" + whole[-4999:]),
        ):  # fmt: skip
            (tmp_path / name).write_bytes(data)
        no_backup = "That is no backup of `manage.py backup`"
        for place, words in (
            (tmp_path / "words", "words cannot be read: Not a gzipped file"),
            (tmp_path / "nowhere", "nowhere cannot be read: No such file"),
            (tmp_path / "packed", "packed is no archive."),
            (tmp_path / "half", "half is damaged or cut off: "),
            (tmp_path / "without its sum", "without its sum is damaged or cut off: "),
            (tmp_path / "with another bit", "with another bit "),
            (changed(format=99), no_backup),
            (changed(made_at="yesterday"), no_backup),
            (circle(), no_backup),
        ):
            done = new.manage("restore", str(place))
            assert (done.returncode, words in done.stderr) == (1, True), done.stderr
            assert done.stderr.startswith("CommandError: Nothing was restored. "), done.stderr
        for unknown in ("tasks.0042_later", "tasks.0001_first"):  # one of ten that were folded into another
            done = new.manage("restore", str(changed(migrations=[unknown], version="9.9")))
            assert f"version 9.9, which knows {unknown}" in done.stderr
        done = new.manage("restore", str(changed(database="postgresql")))
        assert "is of PostgreSQL, and DATABASE_URL names SQLite" in done.stderr
        assert new.rows("SELECT app, name FROM django_migrations ORDER BY id") == before
