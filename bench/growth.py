"""How the time of the readers grows with what they read, and that of the silence check with the findings.

    python bench/growth.py [--only NAME] [--quick]

Growth is time(2n) / time(n): the worse of the last two doublings, up to 256 KiB or up to 1200 findings.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from disputes.protocol.responses.response import read_response  # noqa: E402
from disputes.protocol.reviews.review import read_review  # noqa: E402
from disputes.protocol.rounds.check import check_round  # noqa: E402
from disputes.protocol.rounds.proposals import read_proposal  # noqa: E402
from disputes.protocol.rulings.decision_files import read_decisions  # noqa: E402
from disputes.protocol.silence.heuristics import judge_silence  # noqa: E402
from disputes.protocol.silence.suspicion import Watched  # noqa: E402
from disputes.protocol.text.documents import MAX_BYTES  # noqa: E402
from tasks.states import Severity  # noqa: E402
from tests.adversarial import FAMILIES, word_of  # noqa: E402

KIB = 1024
WANTED_GROWTH = 2.5
MOST_FINDINGS = 1_200

Parser = Callable[[str], object]
REVIEW_PARSERS: dict[str, Parser] = {
    "read_review": read_review,
    # The text serves as review, as response and as what was reviewed, but its bytes are counted once.
    "check_round": lambda text: check_round(text, text, text),
}
OTHER_PARSERS: dict[str, Parser] = {
    "read_response": read_response,
    "read_decisions": read_decisions,
    "read_proposal": read_proposal,
}
PARSERS = REVIEW_PARSERS | OTHER_PARSERS


def seconds(read: Callable[[Any], object], given: Any, tries: int = 3) -> float:
    """Return the shortest processor time of a few tries, in seconds."""
    found = float("inf")
    for _ in range(tries):
        start = time.process_time()
        read(given)
        found = min(found, time.process_time() - start)
        if found > 5:
            break
    return max(found, 1e-6)


def growth(read: Callable[[Any], object], sizes: list[Any]) -> tuple[float, float]:
    """Return the worse growth of two doublings, and the seconds that the largest size takes."""
    times = [float("inf")] * len(sizes)
    worst = 0.0
    for _ in range(3):  # repeated if it is too much, because another process may have been in the way
        times = [min(before, seconds(read, given)) for before, given in zip(times, sizes, strict=True)]
        # Below a millisecond the clock says more about the machine than about the reader.
        worst = max(late / max(early, 0.001) for early, late in pairwise(times))
        if worst < WANTED_GROWTH:
            break
    return worst, times[-1]


def growths(largest: int) -> Iterator[dict[str, object]]:
    """Measure each parser on each family of documents that a careless one would read again and again."""
    for family, make in FAMILIES.items():
        for name, read in PARSERS.items():
            ratio, took = growth(read, [make(largest // part) for part in (4, 2, 1)])
            yield {
                "family": family, "parser": name, "growth": round(ratio, 2),
                "MB/s": round(largest / took / 1e6, 1),
            }  # fmt: skip


# --- Silence: many findings against one response ------------------------------------------------------------


def watched(number: int, **about: str) -> Watched:
    code = f"ISSUE-R{number // 999 + 1}-{number % 999 + 1:03d}"
    return Watched(
        code, number, Severity.HIGH, **{"title": f"word{number}", "impact": "status lock", **about}
    )


PHRASE = "This is not a real issue. "
# Each makes, from a number of findings, the findings, the response, and the document before it.
SILENCES: dict[str, Callable[[int], tuple[list[Watched], str, str]]] = {
    "nothing is answered": lambda n: ([watched(i) for i in range(n)], "words\n" * n, ""),
    "places in sections of one name": lambda n: (
        [watched(i, location=f"line {2 * n + 2 * i}") for i in range(n)],
        "# A\n" + "some words\n" * 2 * n,
        "# A\n" + "some words\n" * 2 * n + "# A\ntext\n" * n,
    ),
    "headings alike": lambda n: (
        [watched(i, location="a b c d e f g h i j k") for i in range(n)],
        "".join(f"# a b c d e f w{i}\nx\n" for i in range(n)),
        "".join(f"# a b c d e f w{i}\ny\n" for i in range(n)),
    ),
    "one section responds to all": lambda n: (
        [watched(i) for i in range(n)],
        "### Response to " + ", ".join(watched(i).code for i in range(n)) + "\n\n" + PHRASE * n,
        "",
    ),
    "each deflected in a row": lambda n: (
        [watched(i) for i in range(n)],
        "| Issue | Answer |\n|---|---|\n" + "".join(f"| {watched(i).code} | {PHRASE} |\n" for i in range(n)),
        "# A\n",
    ),
    "quotes": lambda n: (
        [watched(i, text=f'"a phrase that nobody says {i}" ' * 5) for i in range(n)],
        "a phrase that nobody says " * 5 * n,
        "",
    ),
    "names of the reviewer's own": lambda n: (
        [replace(watched(i), code=f"W{word_of(i)}-{i:03d}") for i in range(n)],
        "WAB WCD-001 " * 15 * n,
        "",
    ),
}


def silences() -> Iterator[dict[str, object]]:
    """Measure the silence check on each of these, by the number of findings."""
    for name, make in SILENCES.items():

        def judge(number: int, make: Callable[[int], tuple[list[Watched], str, str]] = make) -> object:
            findings, response, before = make(number)
            read = read_response(response, [each.code for each in findings])
            return judge_silence(findings, read, response, before)

        ratio, took = growth(judge, [MOST_FINDINGS // part for part in (4, 2, 1)])
        yield {"silence": name, "growth": round(ratio, 2), "ms": round(1_000 * took)}


# --- Telling ------------------------------------------------------------------------------------------------


def table(rows: list[dict[str, object]]) -> None:
    columns = list(rows[0])
    widths = [
        max(len(str(row[column])) for row in [*rows, dict(zip(columns, columns, strict=True))])
        for column in columns
    ]
    for row in [dict(zip(columns, columns, strict=True)), *rows]:
        print("  ".join(str(row[column]).ljust(width) for column, width in zip(columns, widths, strict=True)))
    print()


def told(grown: list[dict[str, object]], largest: int) -> int:
    """Print the worst and the slowest. Returns 1 if one grows too much, otherwise 0."""
    print(
        f"time(2n) / time(n), the worst doubling up to {largest // KIB} KiB (wanted: below {WANTED_GROWTH})"
    )
    table(sorted(grown, key=lambda row: -float(str(row["growth"])))[:20])
    print("the slowest")
    table(sorted(grown, key=lambda row: float(str(row["MB/s"])))[:20])
    return int(any(float(str(row["growth"])) > WANTED_GROWTH for row in grown))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="NAME", help="measure only this parser")
    parser.add_argument("--quick", action="store_true", help="grow only up to 32 KiB")
    args = parser.parse_args()
    for name in set(PARSERS) - {args.only} if args.only else ():
        del PARSERS[name]
    largest = 32 * KIB if args.quick else MAX_BYTES
    failed = told(list(growths(largest)), largest)
    if args.only:
        return failed
    watched = list(silences())
    print(f"silence, by findings, up to {MOST_FINDINGS}")
    table(watched)
    return failed or int(any(float(str(row["growth"])) > WANTED_GROWTH for row in watched))


if __name__ == "__main__":
    sys.exit(main())
