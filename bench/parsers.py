"""How fast the parsers read, how their time grows, and how they cope with a million documents.

    python bench/parsers.py [--json] [--only NAME] [--quick]
    python bench/parsers.py --fuzz 1000000 [--seed 1] [--first 0]

Speed is in MB (10^6 bytes) per second on one core; bench/growth.py says what growth is.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.growth import KIB, PARSERS, REVIEW_PARSERS, Parser, growths, seconds, table, told  # noqa: E402
from disputes.protocol.text.documents import MAX_BYTES  # noqa: E402
from tests.fuzzing import document  # noqa: E402
from tests.oracles import faults  # noqa: E402

CORPUS = ROOT.parent / "shared" / "corpus" / "rounds"
SIZES = (4 * KIB, 64 * KIB, 256 * KIB)
WANTED_SPEED = 5.0  # MB/s


# --- Documents as people write them -----------------------------------------------------------------------

PROSE = [
    "The",
    "job",
    "takes",
    "the",
    "next",
    "row",
    "and",
    "asks",
    "whether",
    "its",
    "lease",
    "has",
    "ended.",
    "Where",
    "two",
    "of",
    "them",
    "ask",
    "at",
    "the",
    "same",
    "moment",
    "both",
    "may",
    "get",
    "it,",
    "because",
    "the",
    "status",
    "is",
    "read",
    "before",
    "the",
    "row",
    "is",
    "locked.",
    "`claim()`",
    "should",
    "compare",
    "and",
    "set.",
    "",
]


def prose(chance: Random, words: int) -> str:
    start = chance.randrange(len(PROSE))
    return " ".join((PROSE * (words // len(PROSE) + 2))[start : start + words])


def review_text(size: int) -> str:
    """Return a review of about so many bytes: findings under severities, with fields, code and a verdict."""
    chance, parts, length, number = Random(size), ["## Review: Retry a claim\n"], 0, 0
    while length < size - 1_500:
        number += 1
        code = f"ISSUE-R{number // 900 + 1}-{number % 900 + 1:03d}"
        part = (
            f"### {chance.choice(['Critical Issues', 'High Priority', 'Low Priority'])}\n\n"
            f"- **{code}**: {prose(chance, 9)}\n  - **Location:** src/jobs.py:{number}\n"
            f"  - **Impact:** {prose(chance, 25)}\n  - **Suggestion:** {prose(chance, 20)}\n\n"
            f"{prose(chance, 60)}\n\n```python\ndef claim(row):\n    return {number}  # {code}\n```\n\n"
        )
        parts.append(part)
        length += len(part) + 1
    return "\n".join([*parts, "## Verdict: NEEDS_REVISION\n"])


def response_text(size: int) -> str:
    """Return a response of about so many bytes: a table of answers, sections with code, disagreements."""
    chance, parts, length, number = Random(size), ["## Response to Reviewer Issues\n"], 0, 0
    while length < size - 1_500:
        number += 1
        code = f"ISSUE-R{number // 900 + 1}-{number % 900 + 1:03d}"
        part = (
            f"### Change {number} (Addressing {code})\n\n{prose(chance, 80)}\n\n"
            f"| Issue | Answer | Change |\n|---|---|---|\n| {code} | addressed | {prose(chance, 8)} |\n\n"
            f"```python\ndef claim(row):\n    return {number}  # {code} fix\n```\n\n{prose(chance, 60)}\n\n"
        )
        if number % 9 == 0:
            part += (
                f"## DISAGREE: {code}\n\n**Reviewer Concern:**\n> {prose(chance, 12)}\n\n"
                f"**Engineer Position:** {prose(chance, 12)}\n\n**Rationale:** {prose(chance, 30)}\n\n---\n\n"
            )
        parts.append(part)
        length += len(part) + 1
    return "\n".join(parts)


def corpus(name: str) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(CORPUS.rglob(f"{name}*.md"))]


# --- Measuring --------------------------------------------------------------------------------------------


def speed(read: Parser, texts: list[str]) -> float:
    """Return the MB per second over these documents."""
    size = sum(len(text.encode()) for text in texts)
    return size / sum(seconds(read, text) for text in texts) / 1e6


def speeds() -> Iterator[dict[str, object]]:
    for name, read in PARSERS.items():
        made = review_text if name in REVIEW_PARSERS else response_text
        texts = [made(size) for size in SIZES]
        own = corpus("reviewer" if name in REVIEW_PARSERS else "engineer")
        yield {
            "parser": name,
            **{
                f"{size // KIB} KiB": round(speed(read, [text]), 1)
                for size, text in zip(SIZES, texts, strict=True)
            },
            "corpus": round(speed(read, own), 1) if own else None,
        }


def fuzz(count: int, seed: int, first: int) -> dict[str, object]:
    """Read so many documents, and print whatever does not hold as it is found."""
    started, size, wrong = time.process_time(), 0, 0
    for number in range(first, first + count):
        made = document(seed, number)
        size += len(made.text.encode("utf-8", "replace"))
        try:
            found = faults(made, number)
        except Exception as error:  # noqa: BLE001 - a crash is what is looked for
            found = [f"{type(error).__name__}: {error}"]
        for fault in found:
            wrong += 1
            print(f"seed {seed}, document {number} ({made.kind}): {fault:.600}\n    {made.text!r:.900}")
    took = time.process_time() - started
    return {
        "documents": count, "seed": seed, "mean bytes": round(size / count), "faults": wrong,
        "seconds": round(took, 1), "documents/s": round(count / took),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")
    parser.add_argument("--only", metavar="NAME", help="measure only this parser")
    parser.add_argument("--quick", action="store_true", help="grow only up to 32 KiB")
    parser.add_argument("--fuzz", type=int, metavar="N", help="read N documents instead of measuring")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, metavar="NUMBER")
    args = parser.parse_args()
    if args.fuzz:
        done = fuzz(args.fuzz, args.seed, args.first)
        print(json.dumps(done))
        return 1 if done["faults"] else 0
    if args.only:
        for name in set(PARSERS) - {args.only}:
            del PARSERS[name]
    fast = list(speeds())
    largest = 32 * KIB if args.quick else MAX_BYTES
    grown = list(growths(largest))
    if args.json:
        print(json.dumps({"speed": fast, "growth": grown, "corpus": CORPUS.is_dir()}, indent=1))
        return 0
    if not CORPUS.is_dir():
        print(f"The corpus is not at {CORPUS}, so its column is empty.\n")
    print(f"MB/s on one core (wanted: {WANTED_SPEED})")
    table(fast)
    return told(grown, largest)


if __name__ == "__main__":
    sys.exit(main())
