"""Core: the words in a TODO.md that say how urgent a task is, what it waits for, and where it stands."""

import re

from tasks.states import Severity
from tasks.text.regex import regex

URGENCY = {
    Severity.CRITICAL: "p0|critical|urgent|blocker|highest|very high|\N{UP-POINTING RED TRIANGLE}",
    Severity.HIGH: "p1|high|important|major|\N{BLACK UP-POINTING DOUBLE TRIANGLE}",
    Severity.MEDIUM: "p2|medium|med|normal|moderate|\N{UP-POINTING SMALL RED TRIANGLE}",
    Severity.LOW: (
        "p[3-5]|lowest|low|minor|trivial|nice to have"
        "|\N{DOWN-POINTING SMALL RED TRIANGLE}|\N{BLACK DOWN-POINTING DOUBLE TRIANGLE}"
    ),
}
WORDS = "|".join(URGENCY.values())
SIGNS = "".join(word for word in WORDS.split("|") if not word.isascii())
SIGN = regex(rf"([{SIGNS}])")
LEVEL = regex(r"(?i)[\[(`](p[0-5])[\])`]")
CALLED = regex(rf"(?i)[\[(:–—-] ?({WORDS})[ -]priority\b")
GIVEN = regex(rf"(?i)[\[(](?:priority|prio)[: -]+({WORDS}|[0-4])[\])]")
IN_VALUE = (SIGN, regex(rf"(?i)^[\W_]*({WORDS}|[0-4])(?!\w)"))
IN_TITLE = (
    SIGN,
    LEVEL,
    CALLED,
    GIVEN,
    regex(r"(?i)^[*_]{0,3}(p[0-5])(?:[*_:]| [-–—])"),
    regex(rf"(?i)^[*_`]{{0,3}}[\[(]({WORDS})[\])]"),
    regex(rf"(?i)[\[(]({WORDS})[\])]\W*$"),
    regex(r"(?i)(?:^|\s)#(?:priority[/:-]?)?(p[0-5]|critical|urgent|high|low)(?!\S)"),
)
IN_HEADING = (
    SIGN,
    LEVEL,
    CALLED,
    GIVEN,
    regex(rf"(?i)^\W*({WORDS})[ -]priority\b"),
    regex(rf"(?i)^\W*priority[: -]+({WORDS}|[0-4])(?!\w)"),
    regex(r"(?i)^\W*(p[0-5])(?!\w)"),
    regex(r"(?i)^\W*(critical|urgent|high|medium|low)\W*$"),
)

FIELDS = {
    "severity": "priority|severity|prio|urgency|importance",
    "depends": "depends on|depends|dependencies|dependency|deps|blocked by|waits for|prerequisites",
}
VALUE_MAX = 1000
FIELD = regex(
    rf"(?i)\s*(?:[-*+]\s+)?[*_`]{{0,3}}({'|'.join(FIELDS.values())})[*_`]{{0,3}}\s?:[*_`]{{0,3}}\s?(.*)"
)

TASKS = "task|story|ticket|issue|aufgabe|tarea|tarefa|tâche|задача|任务|任務|タスク"
KINDS = f"{TASKS}|step|item|phase"
NUMBER = (
    rf"(?:(?:{KINDS})\s?#?([a-z]{{0,3}}-?[0-9][a-z0-9.-]{{0,11}})|#([0-9]{{1,6}})"
    r"|([a-z]{1,4}-?[0-9][0-9.-]{0,9}(?:-?t[0-9]{1,4})?)"
    r"|([0-9]{1,3}(?:\.[0-9]{1,3}){1,3}))"
)
NUMBERED = regex(rf"(?i)[^\w#]*{NUMBER}(?![\w])")
# The tasks that a sentence names, as in "(depends on T001, T002)" or "which needs T004-T006".
JOINT = r"(?:\s?(?:,|;|&|\+|/|[-–—]|\.\.+)\s?|\s)(?:(?:and|or|to|through)\s)?"
IN_TEXT = regex(
    r"(?i)(?<![\w-])(?:depends? on|dependent on|blocked by|waits? for|requires|needs|after):?\s"
    rf"({NUMBER}(?:{JOINT}{NUMBER})*)(?!\w)"
)
RANGE = regex(
    rf"(?i)\W*(?:(?:{KINDS})s?\s?)?(#|[a-z]{{1,4}}-?|(?:[0-9]{{1,3}}\.)+|)([0-9]{{1,6}})"
    r"\s?(?:[-–—]|\.\.+|to|through)\s?\1([0-9]{1,6})(?: ?\(.*| complete| completion| done)?\W*"
)
RANGE_MAX = 100  # tasks
NAMED = regex(rf"(?i)\W*?(?:{NUMBER}|([0-9]{{1,3}}))(?: ?\(.*| complete| completion| done)?\W*")
NEXT = regex(r"\s*[,;]\s*|\s+(?:and|or|[&+/])\s+")
NOTHING = regex(r"(?i)\W*(?:(?:none|nothing|no|n/a|nil|无)(?:\W.*)?)?")

DONE = "done|completed|finished|shipped"
COLUMNS = {
    "x": regex(
        rf"(?i)\W*(?:{DONE}|complete|closed|archived?)(?: (?:tasks|items|work))?\W*(?:\(.*\)|[0-9]+)?\W*"
    ),
    ">": regex(r"(?i)\W*(?:icebox|someday(?:\W+maybe)?|parked|on hold|later\W+parked)\W*(?:\(.*\))?\W*"),
    "~": regex(r"(?i)\W*(?:won['’]?t (?:do|fix)|cancell?ed|rejected|abandoned|dropped)\W*(?:\(.*\))?\W*"),
}
TICKS = "\N{CHECK MARK}\N{HEAVY CHECK MARK}\N{WHITE HEAVY CHECK MARK}\N{BALLOT BOX WITH CHECK}"
MARKS = {"/": "-"} | dict.fromkeys(f"vV{TICKS}", "x")
LEGEND = regex(r"\[(\S)\][*_`]{0,3}[ \t]*(?:[:=–—-][ \t]*|is |means )?([a-zA-Z]+(?: [a-z]+)?)")
STANDS = {
    "-": "partial|partly|partially|in progress|wip|started|doing|ongoing|underway",
    "x": "done|complete|completed|closed|finished|shipped|merged|landed|resolved|passing|passed|yes",
    ">": "deferred|postponed|on hold|parked|moved|blocked",
    "~": "cancelled|canceled|dropped|rejected|obsolete|duplicate|tombstone|(?:wo|do)n ?t (?:do|fix)|wontfix",
}


def severity_of(word: str) -> Severity | None:
    """Return the severity that a word or sign for urgency stands for; None if it is none."""
    word = f"p{word}" if word.isdigit() else word.lower()
    return next((each for each, words in URGENCY.items() if re.fullmatch(words, word)), None)


def urgency(text: str, places: tuple[re.Pattern[str], ...]) -> str:
    """Return the first word for urgency at one of the places of a title, a heading or a value, or nothing."""
    for place in places:
        for match in place.finditer(text):
            if severity_of(match[1]):
                return match[1]
    return ""


def field_of(line: str) -> tuple[str, str]:
    """Return the attribute that a line such as `- **Priority:** P0` gives, and its value; else nothing."""
    match = FIELD.fullmatch(line)
    if match is None:
        return "", ""
    key = next(key for key, words in FIELDS.items() if re.fullmatch(words, match[1].lower()))
    return key, match[2][:VALUE_MAX].strip(" *_`")


def number_of(title: str) -> str:
    """Return the number in a title by which other tasks name this one, such as 1.2 or T001; or nothing."""
    return _number(NUMBERED.match(title))


def names_in(value: str) -> list[tuple[str, str]]:
    """Return the names in a list of tasks, each with its number; a word such as none names nothing."""
    if NOTHING.fullmatch(value):
        return []
    names = NEXT.split(value[:VALUE_MAX].rstrip(". "))
    return [named for name in names if name for named in _each_of(name)]


def names_in_text(line: str) -> list[tuple[str, str]]:
    """Return the tasks that a line of text says this one waits for, each with its number."""
    return [named for match in IN_TEXT.finditer(line[:VALUE_MAX]) for named in names_in(match[1])]


def _each_of(name: str) -> list[tuple[str, str]]:
    """Return the name with its number, or each number of a range such as T003-T005."""
    match = RANGE.fullmatch(name)
    first, last = (int(match[2]), int(match[3])) if match else (0, 0)
    if match is None or not first < last <= first + RANGE_MAX:
        return [(name, _number(NAMED.fullmatch(name)))]
    before = (match[1] or "").replace("#", "").upper()
    numbers = [f"{before}{each:0{len(match[2])}}" for each in range(first, last + 1)]
    return [(number, number) for number in numbers]


def plain(title: str) -> str:
    """Return a title without marks and in small letters, to compare it with a name."""
    return re.sub(r"[*_`]", "", title).strip().casefold()


def legend_in(line: str) -> dict[str, str]:
    """Return the markers that a line such as `[~]` partial explains, each with ours for it."""
    return {mark: marker for mark, words in LEGEND.findall(line) if (marker := marker_of(words)) != " "}


def marker_of(status: str) -> str:
    """Return the marker for a status in words, such as Complete or a tick; a blank if it is unknown."""
    words = " ".join(re.findall(r"[a-z]+", status.lower()))
    known = (marker for marker, each in STANDS.items() if re.match(rf"(?:{each})\b", words))
    return next(known, "x" if set(status) & set(TICKS) else " ")


def column_of(title: str) -> str:
    """Return the marker of tasks below a heading such as Done; nothing if it says none."""
    return next((marker for marker, words in COLUMNS.items() if words.fullmatch(title)), "")


def _number(match: re.Match[str] | None) -> str:
    found = next(filter(None, match.groups()), "") if match else ""
    return found.upper().rstrip(".-")
