"""Core: what an output says of why a command failed, for people: its likeliest line, and what it lacked.

It is only shown. What a run means for its commit is decided without it.
"""

from agents.reading.faults import LINES
from agents.reading.output import plain
from agents.reading.results import UNPRINTABLE
from agents.reading.runners import ECHOES
from tasks.text.counting import shortened, some_of
from tasks.text.regex import regex

CAUSE_MAX = 200  # characters
SHOWN = 3  # names
# An error with a message of its own, as tracebacks, compilers and tools print it.
MESSAGE = regex(
    r"(?:^|[\s\[(:.])(?:[A-Z]\w{0,60}(?:Error|Exception)\b|(?i:panicked at )|CMake Error\b"
    r"|(?i:fatal error|error|fatal|panic)(?:\[\w{1,20}\]| [A-Z]{1,4}\d{1,6})?\]?: ?\S)"
    r"|^E {2,8}\S"  # of pytest
)
ECHO = regex("|".join(ECHOES.values()))


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


# --- Modules and the like that were not found, in the words of each language -------------------------------

NAME = r"(?P<it>@?\w[\w:./@-]{0,100})"
ABSENT = {
    "Perl module": regex(rf"Can't locate \S{{1,200}} in @INC \(you may need to install the {NAME} module\)"),
    "Python module": regex(rf"ModuleNotFoundError: No module named '{NAME}'"),
    "package": regex(rf"Error: Cannot find (?:module|package) '{NAME}'"),
    "Ruby library": regex(rf"(?m)cannot load such file -- {NAME}(?: \(LoadError\)|$)"),
    "Lua module": regex(rf"module '{NAME}' not found:\n\s*no field package\.preload"),
    "Racket module": regex(rf"collection not found\n\s*for module path: {NAME}"),
    "Crystal shard": regex(rf"Error: can't find file '{NAME}'\s+If you're trying to require a shard"),
    "D module": regex(
        r"Error: unable to read module [^\n]{1,200}\n[^\n]{1,300}Expected '(?P<it>[\w/]{1,100})\.d'"
    ),
    "Clojure namespace": regex(r"Could not locate \S{1,200}__init\.class, (?P<it>[\w/.-]{1,100})\.clj or "),
    "browser of Playwright": regex(rf"Executable doesn't exist at /\S{{1,300}}/ms-playwright/{NAME}"),
}


# What a run does not have, in the words of programs that look for it, and how a command can bring it.
WITHOUT = {
    "Git knows no author in a run: let the command begin with `git config --global user.name tests;"
    " git config --global user.email tests@localhost;`.": regex(
        r"Please tell me who you are|Author identity unknown|empty ident name"
    ),
    "A run has no terminal: `script -qec 'COMMAND' /dev/null` gives a command one.": regex(
        r"(?i)No such device or address: '?/dev/tty|cannot open (?:terminal|/dev/tty)|/dev/tty: No such"
        r"|Inappropriate ioctl for device|not a (?:tty|terminal)\b|TERM environment variable not set"
    ),
    "A locale that is asked for is missing on this host; `locale -a` lists those that are there.": regex(
        r"unsupported locale setting|cannot (?:set|change) (?:locale|LC_\w+)"
    ),
}


def without(output: str) -> str:
    """Return sentences about what a run does not have and the output asks for; empty if it asks for none."""
    text = plain(output)
    return " ".join(says for says, pattern in WITHOUT.items() if pattern.search(text))


def not_found(output: str) -> str:
    """Return a sentence about what was not found, the first few of one kind; empty if nothing says so.

    It explains a red run but excuses nothing: the work itself may have removed what is not found.
    """
    text = plain(output)
    for what, pattern in ABSENT.items():
        names = list(dict.fromkeys(UNPRINTABLE.sub(" ", found["it"]) for found in pattern.finditer(text)))
        if names:
            plural = "" if len(names) == 1 else "s"
            return f"It did not find the {what}{plural} {some_of(names, SHOWN)}."
    return ""
