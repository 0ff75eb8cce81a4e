"""Core: which tests failed, judging by what their runner printed.

RUNNERS has one row for each runner: the lines that name a failed test, and the line that says how many there
were. A list of names counts as complete only if the runner's own count confirms it, section by section (a run
of tox or make has several). What a test prints may look like such a line; it can add a name, but not remove
one.

The text is hostile: every pattern begins at the start of a line and repeats only what cannot match in two
ways, and long lines are cut, so the time is linear in the length of the text.
"""

import re
from collections.abc import Iterator

from agents.reading.results import COUNT_MAX, CountedNames, Tests, bounded, numbered, tidy
from agents.reading.runners import RUNNERS, Runner
from agents.reading.tap import read_prove, read_tap
from tasks.text.regex import regex

TEXT_MAX = 1024 * 1024  # characters from the end
LINE_MAX = 2_000
LONG_LINE = regex(rf"([^\n]{{{LINE_MAX}}})[^\n]+")
OVERWRITE = regex(r"\r\n?|\x1b\[1?G")  # back to the line's start
CONTROL = regex(r"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[()][A-Z0-9]|[\x1b\0]")
NUMBER_FIRST = regex(r"\b(\d{1,7}) ([a-z]+)")
WORD_FIRST = regex(r"\b([a-z]+(?: [a-z]+)?)(?:: *|=| +)(\d{1,7})\b")


def read_output(text: str, root: str = "", *, is_whole: bool = True) -> Tests:
    """Return the tests that failed, by their runners' printed lines; only defaults if no runner is known.

    At most the last TEXT_MAX characters of `text` are read. `root` is a path that differs in the next run,
    such as the run's own folder; it is cut out of names. `is_whole` is false if the text is the end of a
    longer one. Since what is missing may have named more failures, the run then counts as broken off.
    """
    is_cut = not is_whole or len(text) > TEXT_MAX
    text = plain(text)
    sections = [section for runner in RUNNERS.values() for section in _read(runner, text)]
    sections += read_prove(text) or read_tap(text)
    failed: list[str] = []
    unnamed = 0
    for section in sections:
        names = list(dict.fromkeys(name for name in (tidy(name, root) for name in section.names) if name))
        failed += names
        unnamed += max(0, (section.bad or 0) - len(names))
    found = numbered(failed)
    return Tests(
        bounded(found),
        _ran(sections),
        min(len(found) + unnamed, COUNT_MAX) if _is_told(sections) else None,
        broke_off=is_cut or any(section.broke_off for section in sections),
    )


def _ran(sections: list[CountedNames]) -> int | None:
    """Return how many tests ran, or None if no runner says so."""
    ran = [section.ran for section in sections if section.ran is not None]
    return min(sum(ran), COUNT_MAX) if ran else None


def _is_told(sections: list[CountedNames]) -> bool:
    """Whether every section says how many tests failed, and at least one section did not break off."""
    return any(not each.broke_off for each in sections) and all(each.bad is not None for each in sections)


def plain(text: str) -> str:
    """Return the end of the text as lines, without colours.

    Each text that was later overwritten in place becomes a line of its own.
    """
    text = OVERWRITE.sub("\n", text[-TEXT_MAX:])
    return LONG_LINE.sub(r"\1", "\n" + CONTROL.sub("", text) + "\n")


def _read(runner: Runner, text: str) -> list[CountedNames]:
    """Return what one runner says; nothing if it printed none of the text."""
    if not any(sign in text for sign in runner.signs):
        return []
    events = _events(runner, text)
    sections = list(_sections(runner, events))
    broke_off = runner.broke is not None and runner.broke.search(text) is not None
    if runner.done and any(section.names or section.bad for section in sections):
        last = max((match.start() for kind, match in events if kind == "told"), default=0)
        broke_off |= runner.done.search(text, last) is None
    if broke_off:
        sections.append(CountedNames([], bad=0, broke_off=True))
    return sections


def _sections(runner: Runner, events: list[tuple[str, re.Match[str]]]) -> Iterator[CountedNames]:
    """Yield one section for each count, and one for the names that the runner counts nowhere."""
    own: dict[str, None] = {}
    named = list(_named(runner, events, own))
    yield from _by_count(runner, named)
    if own:
        yield CountedNames(list(own), bad=len(own))


def _named(
    runner: Runner, events: list[tuple[str, re.Match[str]]], own: dict[str, None]
) -> Iterator[re.Match[str] | str]:
    """Yield the counts and the names of the failed tests in order; put uncounted names into `own`.

    If names follow their count, those before the first count belong to none and are left out.
    """
    scope, is_listed, is_open = "", True, not runner.names_follow
    for kind, match in events:
        if kind == "scope":
            scope = " ".join(group for group in match.groups() if group)
        elif kind == "heads":
            is_listed = match["red"] is not None
        elif kind == "told":
            is_open = True
            yield match
        elif is_listed and is_open:
            name = _scoped(scope, _name(match, runner))
            if kind == "own":
                own[name] = None
            else:
                yield name


def _by_count(runner: Runner, named: list[re.Match[str] | str]) -> Iterator[CountedNames]:
    """Yield one section for each count, with its names: those before it, or after it if `names_follow`.

    Names left over at the end make a section without a count.
    """
    section = CountedNames([])
    for each in named:
        is_counted = section.bad is not None
        if is_counted and not (runner.names_follow and isinstance(each, str)):
            yield section
            section = CountedNames([])
        if isinstance(each, str):
            section.names.append(each)
        else:
            _count(runner, each, section)
    if section.names or section.bad is not None:
        yield section


def _events(runner: Runner, text: str) -> list[tuple[str, re.Match[str]]]:
    """Return everything that the runner's patterns find, in the order of the text."""
    patterns = {
        "heads": runner.heads, "scope": runner.scope, "failed": runner.failed, "own": runner.own,
        "told": runner.told,
    }  # fmt: skip
    found = [
        (kind, match) for kind, pattern in patterns.items() if pattern for match in pattern.finditer(text)
    ]
    return sorted(found, key=lambda each: each[1].start())


def _name(match: re.Match[str], runner: Runner) -> str:
    groups = [" ".join(group.split()) for group in match.groups() if group]
    return (": " if runner.names_follow else " ").join(groups)


def _scoped(scope: str, name: str) -> str:
    return f"{scope} › {name}" if scope else name


def _count(runner: Runner, match: re.Match[str], section: CountedNames) -> None:
    """Put what a runner's count says into the section that it closes."""
    groups = match.groupdict()
    if groups.get("scope"):
        section.names[:] = [_scoped(groups["scope"], name) for name in section.names]
    if "some" in groups:
        section.bad = int(bool(groups["some"]))
        section.ran = int(groups["ran"]) if "ran" in groups else None
        return
    said: dict[str, int] = {}
    text = match[0].lower()
    if runner.words_come_first:
        for word, number in WORD_FIRST.findall(text):
            said[word] = said.get(word, 0) + int(number)
    else:
        for number, word in NUMBER_FIRST.findall(text):
            said[word] = said.get(word, 0) + int(number)
    section.bad = sum(said.get(word, 0) for word in runner.red)
    if runner.ran:
        section.ran = sum(said.get(word, 0) for word in runner.ran)
    if runner.green:
        section.bad = max((section.ran or 0) - sum(said.get(word, 0) for word in runner.green), 0)
    if groups.get("bad"):
        section.bad = int(groups["bad"])
    if groups.get("ran"):
        section.ran = int(groups["ran"])
