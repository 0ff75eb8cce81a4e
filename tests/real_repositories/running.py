"""All packages, two at a time, as a table and as JSON."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.real_repositories.driving import Outcome, drive, migrated
from tests.real_repositories.packages import PACKAGES, Package
from tests.real_repositories.sources import FOLDER

AT_A_TIME = 2
RESULTS = FOLDER / "results.json"
COLUMNS = ("PACKAGE", "ECOSYSTEM", "ENDED", "BASE S", "LANDED S", "CODERS", "COMMANDS OR REASON")


def try_all(packages: Sequence[Package], say: Callable[[str], None]) -> list[Outcome]:
    """Try them and say each as it ends; the results are in var/repositories/results.json as well."""
    database = migrated()
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for done in as_completed([pool.submit(drive, package, database) for package in packages]):
            outcome = done.result()
            outcomes.append(outcome)
            count = f"{len(outcomes)}/{len(packages)}"
            say(f"{count} {outcome.package}: {outcome.ended} ({outcome.seconds:.0f} s)")
            write(sorted(outcomes, key=lambda one: one.package), RESULTS)
    order = {package.slug: place for place, package in enumerate(packages)}
    outcomes.sort(key=lambda one: order[one.package])
    return outcomes


def write(outcomes: Sequence[Outcome], path: Path) -> None:
    path.write_text(json.dumps([outcome.as_row() for outcome in outcomes], indent=1) + "\n")


def as_table(outcomes: Sequence[Outcome]) -> str:
    """One line for each package, and one of sums."""
    rows = [COLUMNS]
    for one in outcomes:
        kept = [one.recipe.get(name, "") for name in ("prepare", "build", "test")]
        commands = "; ".join(command for command in kept if command)
        rows.append((
            one.package, one.ecosystem, one.ended, _seconds(one.base_seconds), _seconds(one.landed_seconds),
            str(one.coder_runs), " ".join((one.why or commands).split())[:160],
        ))  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = [
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([*lines, "", sums(outcomes)])


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def sums(outcomes: Sequence[Outcome]) -> str:
    had = [one for one in outcomes if one.ended != "not to be had"]
    landed = [one for one in had if one.ended == "landed"]
    times = sorted(one.landed_seconds for one in landed if one.landed_seconds is not None)
    middle = f", half of them within {times[len(times) // 2]:.0f} s" if times else ""
    counts = Counter(one.ended for one in had)
    return (
        f"{len(landed)} of {len(had)} landed ({len(landed) / max(len(had), 1):.0%}){middle}; "
        f"{counts['card']} ended in a card, {counts['failed']} failed; "
        f"{len({one.ecosystem for one in had})} ecosystems; {len(outcomes) - len(had)} not to be had."
    )


def main(words: list[str]) -> int:
    """Try the packages whose names have one of these parts; all where there is none."""
    chosen = [package for package in PACKAGES if not words or any(word in package.slug for word in words)]
    outcomes = try_all(chosen, lambda line: print(line, flush=True))
    print(as_table(outcomes))
    return int(any(one.ended == "failed" for one in outcomes))
