"""A data folder that an earlier version made: every command says so, with the way out, and breaks nothing."""

import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.end_to_end.installation import Installation

ROWS = "INSERT INTO django_migrations (app, name, applied) VALUES (%s, '2026-01-01 00:00:00+00')"
APPLIED = [
    "'auth', '0001_initial'", "'django_q', '0099_of_a_package'", "'tasks', '0003_gone'",
    "'tasks', '0004_gone'", "'disputes', '0002_gone'", "'agents', '0009_gone'",
]  # fmt: skip
TABLE = "CREATE TABLE django_migrations (id integer PRIMARY KEY, app text, name text, applied datetime)"
COMMANDS = [("migrate", "--verbosity", "0"), ("run_orchestrator", "--demo", "--once"), ("start", "--yes")]

pytestmark = pytest.mark.slow


def made_earlier(path: Path) -> None:
    """A database with tables and migrations that this version does not know."""
    rows = sqlite3.connect(path)
    rows.execute(TABLE)
    rows.execute("CREATE TABLE tasks_task (id integer PRIMARY KEY, title text)")
    rows.execute("INSERT INTO tasks_task VALUES (1, 'kept')")
    for row in APPLIED:
        rows.execute(ROWS % row)
    rows.commit()
    rows.close()


def test_every_command_refuses_an_earlier_database_and_says_how_to_begin_afresh(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "home")
    installation.home.mkdir(mode=0o700)
    made_earlier(installation.home / "steroids.sqlite3")

    for command in COMMANDS:
        refused = installation.manage(*command)
        assert refused.returncode == 1, refused.stdout + refused.stderr
        assert "Traceback" not in refused.stdout + refused.stderr
        assert "was made by an earlier version of Steroids Web, before its first release" in refused.stderr
        assert (
            "no migration tasks.0003_gone, tasks.0004_gone, disputes.0002_gone and 1 more" in refused.stderr
        )
        assert f"move {installation.home} out of the way" in refused.stderr

    installation.home.rename(tmp_path / "kept")
    for command in (["migrate", "--verbosity", "0"], ["status"]):
        begun = installation.manage(*command)
        assert (begun.returncode, begun.stderr) == (0, ""), command
    kept = sqlite3.connect(tmp_path / "kept" / "steroids.sqlite3")
    assert kept.execute("SELECT title FROM tasks_task").fetchall() == [("kept",)]

    for gone, refusal in (("name = '0001_initial'", ""), ("name = '0010_no_records_sha'", "0001_first")):
        with closing(sqlite3.connect(installation.home / "steroids.sqlite3")) as rows:
            rows.execute(f"DELETE FROM django_migrations WHERE app = 'tasks' AND {gone}")
            rows.commit()
        taken = installation.manage("migrate", "--verbosity", "0")
        assert taken.returncode == bool(refusal)
        assert (f"no migration tasks.{refusal}" in taken.stderr) == bool(refusal)

    with (installation.home / "steroids.sqlite3").open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    for command in ("status", "migrate"):
        damaged = installation.manage(command)
        assert (damaged.returncode, len(damaged.stderr.splitlines())) == (1, 1), damaged.stderr
        assert "is damaged" in damaged.stderr


def test_a_database_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    """Also one of Django's, whose accounts ours would be added to."""
    installation = Installation(tmp_path / "home")
    installation.environment["DATABASE_URL"] = f"sqlite:///{tmp_path / 'books.sqlite3'}"
    with closing(sqlite3.connect(tmp_path / "books.sqlite3")) as rows:
        for statement in ("TABLE books (title text)", "TABLE auth_user (id integer PRIMARY KEY)"):
            rows.execute(f"CREATE {statement}")
        rows.execute(TABLE)
        rows.execute(ROWS % APPLIED[0])
        rows.commit()
        for command in COMMANDS:
            refused = installation.manage(*command)
            assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1), refused.stderr
            assert "belongs to another program: it holds books. Name another one" in refused.stderr
        assert rows.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone() == (3,)


def test_a_database_that_is_not_there_or_cannot_be_read_is_not_an_earlier_one(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "home")
    assert installation.manage("help").returncode == 0
    assert not (installation.home / "steroids.sqlite3").exists()
    (installation.home / "steroids.sqlite3").write_text("no database" * 200)
    assert "earlier version" not in installation.manage("status").stderr


def test_a_database_out_of_reach_is_told_in_a_sentence_by_each_command(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "home")
    (tmp_path / "closed.sqlite3").symlink_to(tmp_path / "none" / "rows.sqlite3")
    with socket.socket() as taken:  # nobody listens there
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        for url, why in (
            (f"sqlite://{tmp_path / 'closed.sqlite3'}", "its file cannot be opened"),
            (f"postgres://steroids:secret@127.0.0.1:{port}/rows", "it cannot be reached"),
        ):
            installation.environment["DATABASE_URL"] = url
            for command in (["migrate"], ["status"], ["qcluster"]):
                told = installation.manage(*command)
                assert told.returncode == 1, command
                assert told.stderr.startswith("The database "), told.stderr
                assert f"cannot do this at the moment: {why}. " in told.stderr
                assert len(told.stderr.splitlines()) == 1
                assert "secret" not in told.stderr
