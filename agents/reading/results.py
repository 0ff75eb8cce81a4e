"""Core: the tests of one run as values, with names that stay the same in two runs of the same code.

Names come from programs that nobody trusts: they are bounded in number and length and contain no control
characters. Whoever displays them still has to escape them.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tasks.text.regex import regex
from tasks.text.unseen import UNSEEN

NAMES_MAX = 500
NAME_MAX = 300
COUNT_MAX = 9_999_999

UNPRINTABLE = regex(rf"[{UNSEEN}\u200c\u200d\s]+")
# A duration at the end, in brackets as runners print it; words such as "waits 5s" are part of the name.
DURATION = regex(r"\s*[(\[]\s?\d{1,9}(?:[.,]\d{1,9})?\s?(?:ns|us|µs|μs|ms|s|sec|seconds?|m)\s?[)\]]$")
ADDRESS = regex(r"\bat 0x[0-9a-fA-F]{4,16}\b|\b0x[0-9a-fA-F]{9,16}\b")
TEMPORARY = regex(r"(?:/private)?(?:/var/folders|/var/tmp|/tmp)/[^\s'\"\]\),:]{1,300}")


@dataclass(frozen=True, slots=True)
class Tests:
    """What a run says about its tests.

    `failed` holds at most NAMES_MAX names, sorted and unique. `total` is how many tests ran. `failed_count`
    is how many failed or ended with an error; it exceeds the number of names if some have none. Both are None
    if nothing says so. `broke_off` means that not all tests ran, as the runner itself says, or that a part of
    the output is lost. `said` is what the failures in reports say: bounded, and otherwise as it was written.
    """

    __test__ = False  # otherwise pytest would collect this class because of its name

    failed: tuple[str, ...] = ()
    total: int | None = None
    failed_count: int | None = None
    broke_off: bool = False
    said: str = field(default="", compare=False)

    @property
    def are_all_named(self) -> bool:
        """Whether each failed test is known by its name, as far as the runner's own count says."""
        return self.failed_count is not None and self.failed_count <= len(self.failed)


@dataclass(slots=True)
class CountedNames:
    """The names up to one count of a runner; `bad` and `ran` are None if it does not say."""

    names: list[str]
    bad: int | None = None
    ran: int | None = None
    broke_off: bool = False


def together(reported: Tests, printed: Tests) -> Tests:
    """Combine a run's reports with its output: the reports' names, and the larger count of failures.

    Reports have the better names but leave things out: meson's count a test that took too long as passed, and
    pytest's do not say that it stopped at the first failure. So what the output says counts too.
    """
    return replace(
        reported,
        failed_count=max(reported.failed_count or 0, printed.failed_count or 0),
        broke_off=reported.broke_off or printed.broke_off,
    )


def tidy(name: str, root: str = "") -> str:
    """Return a test's name without what differs between runs: durations, addresses, temporary paths, `root`.

    The result is empty if nothing is left. A long name ends in a digest of the whole, so that two names stay
    distinct.
    """
    if root:
        name = name.replace(root, "")
    name = UNPRINTABLE.sub(" ", name[: 10 * NAME_MAX]).strip()
    name = DURATION.sub("", name)
    name = TEMPORARY.sub("/tmp/…", ADDRESS.sub("0x…", name)).strip()  # noqa: S108 - a word in a name
    if len(name) > NAME_MAX:
        digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:12]
        name = f"{name[: NAME_MAX - 14]}… {digest}"
    return name


def numbered(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names in order, a repeated one as `name (2)`, so that two failures stay two."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(f"{name[: NAME_MAX - 10]} ({seen[name]})" if seen[name] > 1 else name)
    return tuple(found)


def bounded(names: Iterable[str]) -> tuple[str, ...]:
    """Return what a row may hold: the first NAMES_MAX of the sorted names."""
    return tuple(sorted(set(names))[:NAMES_MAX])
