"""Documents by seed: a grammar of reviews and responses, and mutations of what it makes.

Every document comes with claims: what must hold for it however it is read. A claim follows from how the
document was made and never from the parser's own code.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from tests.fuzz_lines import (
    APPROVALS,
    CODES,
    DENIALS,
    EXAMPLES,
    PLACES,
    PROSE,
    RANGES,
    REJECTIONS,
    RESPONSE_LINES,
    REVIEW_LINES,
    SEVERITIES,
    SIGNS,
    VERDICT_PLACES,
    WORDS,
)

MEAN_BYTES = 300
# Of the series that every change is read against.
SEED = 20_260


class Kind(StrEnum):
    """How a document was made, and with that what is known about it."""

    PLAIN = "plain"  # the grammar, then anything may have happened to it
    SEALED = "sealed"  # approvals and codes of ROUND_OF_EXAMPLES only in fences, quotes and the like
    REJECTING = "rejecting"  # its first line is an untouched rejection
    DENIED = "denied"  # its verdicts are approvals that are denied, put off, struck out or only offered
    PROSE = "prose"  # approving words, but none of them as a verdict
    GARBAGE = "garbage"  # signs and bytes


# Of hundred documents so many.
SHARES = {
    Kind.PLAIN: 30, Kind.SEALED: 25, Kind.REJECTING: 10, Kind.DENIED: 15, Kind.PROSE: 10, Kind.GARBAGE: 10,
}  # fmt: skip
KINDS = [kind for kind, share in SHARES.items() for _ in range(share)]


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """One document; `stated` is what of it stands outside the sealed blocks."""

    number: int
    kind: Kind
    text: str
    stated: str


# --- The grammar ------------------------------------------------------------------------------------------

LINES = [*REVIEW_LINES, *REVIEW_LINES, *RESPONSE_LINES]
LOOKALIKES = str.maketrans("AaCcEeOoPpXxiIsS0-", "АаСсЕеОоРрХхіІѕЅО‐")
FENCE_MARKS = re.compile(r"`{3,}|~{3,}")
LINE_END = re.compile(r"\r\n|\r|\n")


def written(chance: Random, template: str) -> str:
    """A line of the grammar with its gaps filled in."""
    if "{" not in template:
        return template
    choose = chance.choice
    return template.format(
        c=choose(CODES) if chance.random() < 0.9 else choose(RANGES),
        s=choose(SEVERITIES),
        p=choose(PLACES),
        w=choose(WORDS),
        n=chance.randrange(1, 12),
    )


def pieces(chance: Random, lines: Sequence[str], mean: float) -> list[str]:
    """Some lines of the grammar: mostly few, sometimes many."""
    return [written(chance, line) for line in chance.choices(lines, k=1 + int(chance.expovariate(1 / mean)))]


def sealed(chance: Random) -> str:
    """A block that only shows, quotes or hides what it holds."""
    inside = "\n".join(written(chance, line) for line in chance.choices(EXAMPLES, k=chance.randrange(1, 4)))
    way = chance.randrange(7)
    if way == 0:
        return "\n".join(f"> {line}" for line in inside.split("\n"))
    if way == 1:
        return "\n".join(f"  > > {line}" for line in inside.split("\n"))
    if way == 2:
        return f"<!--\n{inside}\n-->"
    mark = chance.choice("`~")
    info = chance.choice(["", "markdown", " python title=x"])
    if way == 3:  # a fence in a fence
        inner = mark * 3
        return f"{mark * 5}{info}\n{inner}md\n{inside}\n{inner}\n{inside}\n{mark * 6}"
    if way == 4:  # on the line of a list marker
        indented = inside.replace("\n", "\n  ")
        return f"- {mark * 4}{info}\n  {indented}\n  {mark * 4}"
    if way == 5:  # what the other character marks does not close it
        other = "~" if mark == "`" else "`"
        return f"{mark * 3}{info}\n{other * 4}\n{inside}\n{mark * 3}"
    return f"   {mark * 4}{info}\n{inside}\n{mark * 4}  "


# --- Mutations --------------------------------------------------------------------------------------------


def _cut(chance: Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] if chance.random() < 0.5 else text[at:]


def _drop(chance: Random, text: str) -> str:
    lines = text.split("\n")
    del lines[chance.randrange(len(lines))]
    return "\n".join(lines)


def _double(chance: Random, text: str) -> str:
    lines = text.split("\n")
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))
    return "\n".join(lines)


def _shuffle(chance: Random, text: str) -> str:
    lines = text.split("\n")
    chance.shuffle(lines)
    return "\n".join(lines)


def _join(chance: Random, text: str) -> str:
    return text.replace(
        "\n",
        chance.choice(["", " ", "\r", "\u2028", "\x0b", "\n> ", "\n    ", "\n- "]),
        chance.randrange(1, 4),
    )


def _flip(chance: Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chr(chance.randrange(256)) + text[at + 1 :]


def _insert(chance: Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(SIGNS) * chance.choice([1, 1, 1, 2, 3, 40]) + text[at:]


def _remove(chance: Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + text[at + chance.randrange(1, 9) :]


def _repeat(chance: Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + text[at : at + chance.randrange(1, 9)] * chance.randrange(2, 9) + text[at:]


def _case(chance: Random, text: str) -> str:
    return chance.choice([str.upper, str.lower, str.title, str.swapcase])(text)


def _lookalikes(chance: Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    end = at + chance.randrange(1, 60)
    return text[:at] + text[at:end].translate(LOOKALIKES) + text[end:]


def _wide(chance: Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    wide = "".join(chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in text[at : at + 20])
    return text[:at] + wide + text[at + 20 :]


def _mojibake(chance: Random, text: str) -> str:
    return text.encode("utf-8", "replace").decode(chance.choice(["latin-1", "cp437"]))


def _marks(chance: Random, text: str) -> str:
    return text.replace(
        chance.choice("*:-#|.`"), chance.choice(["", " ", "**", "`", "–", "\t", ":"]), chance.randrange(1, 9)
    )


def _line_ends(chance: Random, text: str) -> str:
    return text.replace("\n", chance.choice(["\r\n", "\r"]))


MUTATIONS: list[Callable[[Random, str], str]] = [
    _cut, _drop, _double, _shuffle, _join, _flip, _flip, _insert, _insert, _remove, _repeat, _case,
    _lookalikes, _wide, _mojibake, _marks, _line_ends,
]  # fmt: skip
# Whole lines only: what stood in one line still does.
LINE_MUTATIONS: list[Callable[[Random, str], str]] = [_drop, _double, _shuffle, _line_ends]


def mutated(chance: Random, text: str, mutations: Sequence[Callable[[Random, str], str]] = MUTATIONS) -> str:
    """The text after some mutations; one in five stays as it is."""
    for _ in range(min(int(chance.expovariate(0.45)), 8)):
        text = chance.choice(mutations)(chance, text)
    return text


# --- Documents --------------------------------------------------------------------------------------------


def document(seed: int, number: int) -> Fuzzed:
    """The document of this number in the series of this seed, always the same one."""
    chance = Random((seed << 32) + number)
    kind = chance.choice(KINDS)
    text, stated = MAKERS[kind](chance)
    return Fuzzed(number, kind, text, stated)


def documents(seed: int, numbers: range) -> Iterator[Fuzzed]:
    """The documents of these numbers."""
    return (document(seed, number) for number in numbers)


def _whole(text: str) -> tuple[str, str]:
    return text, text


def _plain(chance: Random) -> tuple[str, str]:
    lines = pieces(chance, LINES, 7)
    if chance.random() < 0.5:
        lines.insert(chance.randrange(len(lines) + 1), chance.choice(APPROVALS))
    if chance.random() < 0.1:
        lines.insert(chance.randrange(len(lines) + 1), sealed(chance))
    return _whole(mutated(chance, "\n".join(lines)))


def _outside(chance: Random, mean: float) -> str:
    """Lines without fences, mutated, that name no finding of the examples."""
    text = mutated(chance, "\n".join(pieces(chance, LINES, mean)))
    while FENCE_MARKS.search(text):  # what stood around one mark may be another one
        text = FENCE_MARKS.sub("", text)
    return text.replace("77", "7")


def _sealed(chance: Random) -> tuple[str, str]:
    stated = [_outside(chance, 1) for _ in range(3)]
    first, second = sealed(chance), sealed(chance)
    text = f"{stated[0]}\n\n{first}\n\n{stated[1]}\n\n{second}\n\n{stated[2]}"
    return text, "\n".join(stated)


def _rejecting(chance: Random) -> tuple[str, str]:
    lines = pieces(chance, [*LINES, *APPROVALS], 7)
    return _whole(f"{chance.choice(REJECTIONS)}\n\n{mutated(chance, chr(10).join(lines))}")


def _denied(chance: Random) -> tuple[str, str]:
    denials = [
        chance.choice(VERDICT_PLACES).format(chance.choice(DENIALS)) for _ in range(chance.choice([1, 1, 2]))
    ]
    parts = [_outside(chance, 3), *(f"\n\n{denial}\n\n" for denial in denials), _outside(chance, 3)]
    return "".join(parts), parts[0] + parts[-1]


def _prose(chance: Random) -> tuple[str, str]:
    lines = chance.choices(PROSE, k=chance.randrange(2, 9))
    if chance.random() < 0.5:
        lines.append(chance.choice(REJECTIONS))
    text = mutated(chance, "\n".join(lines), LINE_MUTATIONS)
    return text, ""


def _garbage(chance: Random) -> tuple[str, str]:
    way = chance.randrange(4)
    length = int(chance.expovariate(1 / 200)) + 1
    if way == 0:
        return _whole(chance.randbytes(length).decode("latin-1"))
    if way == 1:
        return _whole("".join(map(chr, chance.choices(range(0x11000), k=length // 3 + 1))))
    if way == 2:
        return _whole(
            "".join(chance.choices([*SIGNS, "Verdict", "ISSUE-R1-001", "a", "7"], k=length // 2 + 1))
        )
    sign = chance.choice([*SIGNS, "ISSUE-R1-001 ", "**a**: ", "[", "- ", "7"])
    return _whole(chance.choice(LINES) + sign * (length // len(sign) + 1))


MAKERS: dict[Kind, Callable[[Random], tuple[str, str]]] = {
    Kind.PLAIN: _plain,
    Kind.SEALED: _sealed,
    Kind.REJECTING: _rejecting,
    Kind.DENIED: _denied,
    Kind.PROSE: _prose,
    Kind.GARBAGE: _garbage,
}
