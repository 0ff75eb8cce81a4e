"""Core: which tests failed, read from reports and from what a runner printed."""

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Tests:
    """What a run of tests told."""

    failed: tuple[str, ...] = ()
    total: int | None = None
    failed_count: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Red beside red."""

    is_no_worse: bool
    newly_red: tuple[str, ...] = ()
    known_red: tuple[str, ...] = ()
    says: str = ""


def read_reports(folder: Path) -> Tests | None:
    """Nothing yet."""
    return None


def read_output(text: str) -> Tests:
    """Pytest's short summary."""
    names = sorted({name for _, name in re.findall(r"^(FAILED|ERROR) (\S+)", text, re.M)})
    counts = re.findall(r"(\d+) (failed|passed|error)", text)
    failed = sum(int(n) for n, what in counts if what != "passed") if counts else None
    return Tests(tuple(names), sum(int(n) for n, _ in counts) if counts else None, failed)


def flaky(first: Tests, second: Tests) -> tuple[str, ...]:
    """Failed at first, not again."""
    return tuple(sorted(set(first.failed) - set(second.failed)))


def compare(now: Tests, now_code: int | None, known: Tests, known_code: int | None) -> Comparison:
    """By name."""
    new = tuple(sorted(set(now.failed) - set(known.failed)))
    is_no_worse = bool(now.failed) and not new
    return Comparison(is_no_worse, new, tuple(sorted(set(now.failed) & set(known.failed))))
