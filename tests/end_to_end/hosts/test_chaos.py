"""bench/chaos in small: a fault does no harm, and a planted bug is caught. `make chaos` has all of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import EMPTY

pytestmark = [pytest.mark.slow, pytest.mark.django_db]  # which leaves the empty database there

ROOT = Path(__file__).resolve().parents[3]


def chaos(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", "bench.chaos", "--empty", str(EMPTY), *words], cwd=ROOT, env=environment,
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip


def test_a_killed_shim_and_a_killed_push_do_no_harm() -> None:
    small = ["--on", "sqlite", "--seed", "1", "--tasks", "1", "--undisturbed", "1"]
    done = chaos(*small, "--only", "shim", "push, after")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "0 findings."
    assert done.stdout.count("| SQLite | 1 |") == 2  # each of them was hit


def test_a_planted_bug_is_caught() -> None:
    done = chaos("--planted", "--only", "nobody notices that a shim is dead")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 planted bugs were caught." in done.stdout
    assert "stuck: " in done.stdout
