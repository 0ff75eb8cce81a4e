"""Core: whether a green run of tests ran none, as far as it says so.

Some programs end with 0 where they found nothing to run, or lack what they need to run it. Their words count
only if no runner counted tests in the same run; a suite that is not known here may say nothing at all.
"""

from agents.reading.faults import missing_in
from agents.reading.output import plain
from agents.reading.results import Tests
from tasks.text.regex import regex

NONE = regex(
    r"(?im)^[^\w\n]{0,20}(?:(?:INFO|warning|error)\b[\]:]? )?(?:there (?:are|is|were) )?"
    r"no (?:unit )?(?:tests?|examples?)"
    r"(?: (?:files?|cases?|suites?|classes))?(?: (?:is|are|was|were|have been))?"
    r"(?: (?:yet|here|found|ran|run|executed|specified|defined|available|configured|collected|matched|written"
    r"|implemented|to (?:run|execute))\b.{0,200}|[.!]{0,3})$"
    r"|^\?   \t\S{1,300}\t\[no test files\]$"
    r"|^g?make: Nothing to be done for [`'‘]\S{0,40}(?:test|check)\S{0,40}$"
)
# A package whose tests passed, where nobody is told how many there were.
PASSED = regex(r"(?m)^ok  \t\S{1,300}\t(?:\d[\d.]{0,20}s|\(cached\))$")
NO_SOURCE = regex(r"(?m)^> Task \S{0,200}:\w{0,60}[tT]est NO-SOURCE$")
HAS_SOURCE = regex(r"(?m)^> Task \S{0,200}:\w{0,60}[tT]est(?: UP-TO-DATE| FROM-CACHE)?$")

TOX_ENDED = regex(r"(?m)^  congratulations :\)")
TOX_CALLED = "commands["  # it says so before each command of an environment


def ran_some(output: str) -> bool:
    """Whether what was printed says that tests passed, though no runner counted them."""
    return PASSED.search(plain(output)) is not None


def ran_none(output: str, tests: Tests) -> bool:
    """Whether what was printed says that no test ran, and no runner says otherwise."""
    if tests.total is not None or tests.failed_count is not None:
        return tests.total == 0
    text = plain(output)
    if NONE.search(text) or missing_in(text):
        return True
    if TOX_ENDED.search(text) and TOX_CALLED not in text:
        return True
    return bool(NO_SOURCE.search(text)) and not HAS_SOURCE.search(text)
