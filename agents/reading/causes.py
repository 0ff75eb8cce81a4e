"""Core: the line of an output that most likely says why a command failed, for people to read.

It is only shown. What a run means for its commit is decided without it.
"""

from agents.reading.faults import LINES
from agents.reading.output import plain
from tasks.text.counting import shortened
from tasks.text.regex import regex

CAUSE_MAX = 200  # characters
# An error with a message of its own, as tracebacks, compilers and tools print it.
MESSAGE = regex(
    r"(?:^|[\s\[(:.])(?:[A-Z]\w{0,60}(?:Error|Exception)\b|(?i:panicked at )|CMake Error\b"
    r"|(?i:fatal error|error|fatal|panic)(?:\[\w{1,20}\]| [A-Z]{1,4}\d{1,6})?\]?: ?\S)"
    r"|^E {2,8}\S"  # of pytest
)
# What tools print after the cause: that a step above them failed, and where more is written.
ECHOES = (
    r"^\W*$",
    r"^[=!_-]{3,}.{0,200}[=!_-]{3,}$",
    r"^g?make(?:\[\d+\])?: ",
    r"^-- |^See also ",
    r"^ninja: (?:build stopped|subcommand failed)",
    r"^npm (?:ERR!|error)(?:$| (?:code \d|errno|path|command|signal|Lifecycle|A complete)\b)",
    r"^npm (?:ERR!|error) (?:workspace|location) ",
    r"ELIFECYCLE|^(?:error )?Command failed\b|^info Visit ",
    r"^error: (?:could not compile|test failed|Recipe |subprocess-exited-|metadata-generation-)",
    r"^(?:note|hint): |^╰─>|^\[end of output\]",
    r"^FAILURE: |^BUILD FAILED|^\* (?:Try|What went wrong|Get more help)|^> (?:Run|Get more help) ",
    r"^\[ERROR\](?:$| (?:-> |To see |Re-run |For more |\[Help|After correcting))",
    r"^(?:\S{1,40}: )?(?:FAIL|evaluation failed)\b.{0,20}(?:code \d|:\(|seconds)",
    r"^(?:\S{1,40}: )?exit(?:ed)?(?: with)?(?: status| code)? \d{1,3}\b",
)
ECHO = regex("|".join(ECHOES))


def cause(output: str) -> str:
    """Return the last line with the message of an error, or else the last that says anything.

    Empty if none does.
    """
    lines = [line.strip() for line in plain(output).split("\n")]
    telling = [line for line in lines if not ECHO.search(line)][-LINES:]
    if not telling:
        return ""
    messages = [line for line in telling if MESSAGE.search(line)]
    line = (messages or telling)[-1]
    return shortened(" ".join(line.removeprefix("E ").split()), CAUSE_MAX)
