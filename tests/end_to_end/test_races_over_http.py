"""bench/races.py in small, on each database: nothing is lost or doubled, and no answer is a mistake."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.conftest import EMPTY

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--hand-ins", "100", "--races", "20", "--clients", "12", "--held", "1"]


def assert_nothing_is_lost(*words: str) -> None:
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "bench/races.py", *SMALL, *words], cwd=ROOT, env=environment, capture_output=True,
        text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.splitlines()
    assert said[-1] == "0 faults"
    assert [line.split(":")[0] for line in said if " requests in " in line] == [
        "Hand-ins", "Rulings", "Reads while writes cannot",
    ]  # fmt: skip
    assert "110 x 201" in done.stdout  # every tenth was sent twice
    assert "20 x 200, 60 x 409" in done.stdout


@contextmanager
def new_database(url: str) -> Iterator[str]:
    """An empty one on the server that the address names."""
    import psycopg

    name, parts = f"races_{os.getpid()}", urlsplit(url)
    server = parse_qs(parts.query).get("host", [parts.hostname])[0]
    about = {"host": server, "port": parts.port, "user": parts.username, "password": parts.password}
    with psycopg.connect(**about, dbname="postgres", autocommit=True) as admin:  # type: ignore[arg-type]
        admin.execute(f"CREATE DATABASE {name}")
        try:
            yield parts._replace(path=f"/{name}").geturl()
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_on_sqlite(tmp_path: Path, db: None) -> None:
    made = shutil.copyfile(EMPTY, tmp_path / "races.sqlite3")
    assert_nothing_is_lost("--database-url", f"sqlite:///{made}")


def test_on_postgresql() -> None:
    url = os.environ.get("TEST_POSTGRES_URL")
    if not url:
        pytest.skip("TEST_POSTGRES_URL names no PostgreSQL server")
    with new_database(url) as made:
        assert_nothing_is_lost("--database-url", made)
