"""Core: whether a red run is no worse than one that people accepted as it is.

A wrong "no worse" lets broken work through, while a wrong "worse" only asks a person. So whatever is in doubt
counts as worse. `compare()` checks the following in this order; the first row that applies decides:

| now | known base | no worse? |
|---|---|---|
| exit code 0 | any | yes |
| red | exit code 0 | no: everything that failed is newly red |
| no exit code, ended by a signal, program not found (126, 127, 128 to 192) | any | no |
| broke off | ran to its end | no |
| a failed test that the base's list lacks | any | no: that one is newly red |
| broke off | broke off as well | only with the same code, the same names (one at least) and no fewer tests |
| fewer than half of the base's tests ran, or it is not known how many | any | no |
| every failed test has a name, one at least | the same | yes |
| nothing counted | any | no: nothing says that it is the same failure |
| any | nothing counted | no |
| no test failed, yet it is red | some failed | no: another step failed |
| some failed, not one has a name | has names | no |
| some have no name | any | only with the same code and no more failed tests |
"""

from dataclasses import dataclass

from agents.reading.results import Tests
from tasks.text.counting import counted, some_of

FRACTION = 2  # a run with fewer tests than the base's divided by this is not the same suite
NOT_RUN = {126, 127}
SIGNALS = range(128, 193)
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Comparison:
    """A red run compared with the known base: which tests failed only now, which did before, and why."""

    is_no_worse: bool
    newly_red: tuple[str, ...]
    known_red: tuple[str, ...]
    says: str


def compare(now: Tests, now_code: int | None, known: Tests, known_code: int | None) -> Comparison:
    """Compare a run with the accepted base by the table above; an exit code is None if the run left none."""
    before = frozenset(known.failed)
    newly = tuple(name for name in now.failed if name not in before)
    still = tuple(name for name in now.failed if name in before)
    if now_code == 0:
        return Comparison(True, newly, still, "Build and tests are green.")
    worse = _worse(now, now_code, known, known_code, newly)
    if worse:
        return Comparison(False, newly, still, worse)
    return Comparison(True, (), still, _same(now, known))


def _worse(now: Tests, code: int | None, known: Tests, known_code: int | None, newly: tuple[str, ...]) -> str:
    """Return why the run is worse, as one sentence; empty if it is not."""
    if known_code == 0:
        return f"The base is green and this is not{_list(': {} failed', newly)}."
    if code is None or code < 0 or code in NOT_RUN or code in SIGNALS:
        left = "without an exit code" if code is None else f"with the exit code {code}"
        return f"The run ended {left}: not all tests can have run."
    if now.broke_off and not known.broke_off:
        return f"The tests broke off before they were all run{_list('; failed so far: {}', newly)}."
    if newly:
        return f"Newly red: {_list('{}', newly)}."
    if now.broke_off:
        is_same = bool(now.failed) and (code, now.failed) == (known_code, known.failed)
        is_same = is_same and not _has_fewer(now, known)
        return "" if is_same else "The tests broke off, and at another place than those of the base."
    return _fewer(now, known) or _uncounted(now, code, known, known_code)


def _fewer(now: Tests, known: Tests) -> str:
    if known.total and now.total is None:
        return f"The base ran {counted(known.total, 'test')}; how many ran now is not told."
    if known.total and now.total is not None and now.total * FRACTION < known.total:
        return f"Only {counted(now.total, 'test')} ran; the base ran {known.total}."
    return ""


def _has_fewer(now: Tests, known: Tests) -> bool:
    return known.total is not None and (now.total is None or now.total < known.total)


def _uncounted(now: Tests, code: int, known: Tests, known_code: int | None) -> str:
    """Return why names, exit code and count do not explain the failure; empty if they do."""
    if now.failed and now.are_all_named and known.are_all_named:
        return ""
    if now.failed_count is None or known.failed_count is None:
        where = "this run" if now.failed_count is None else "the base"
        return (
            f"Nothing tells how many tests failed in {where}, so nobody can say that it is the same failure."
        )
    if not now.failed_count and known.failed_count:
        return "No test failed, but the command did; on the base it was tests that failed."
    if now.failed_count and not now.failed and known.failed:
        return "Tests failed without names, and those of the base have names."
    if code != known_code:
        return f"The exit code is {code}, that of the base {known_code}, and names alone do not say why."
    if now.failed_count > known.failed_count:
        return f"{counted(now.failed_count, 'test')} failed, on the base {known.failed_count}."
    return ""


def _same(now: Tests, known: Tests) -> str:
    if now.failed and now.are_all_named and known.are_all_named:
        fixed = len(known.failed) - len(now.failed)
        less = f", and {fixed} of the base's failures are gone" if fixed else ""
        return f"Only what is red on the base as well{less}: {_list('{}', now.failed)}."
    if not now.failed_count:
        return "No test failed; the command ends with the same exit code as on the base."
    return "The same exit code as on the base and no more failed tests; not all of them have a name."


def _list(pattern: str, names: tuple[str, ...]) -> str:
    return pattern.format(some_of(names, SHOWN)) if names else ""


def flaky(first: Tests, second: Tests) -> tuple[str, ...]:
    """Return the tests that failed in the first try but not in the second, of the same code.

    Nothing is returned if the second try broke off or has failures without a name, since a test that is not
    listed there may have failed.
    """
    if second.broke_off or not second.are_all_named:
        return ()
    again = frozenset(second.failed)
    return tuple(name for name in first.failed if name not in again)
