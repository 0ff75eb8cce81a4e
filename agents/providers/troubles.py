"""Core: which class of error a command's words and a server's status mean, and when to try again.

The commands say the same things in different words, and some have nothing but words. One table serves all.
"""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agents.providers.reports import ErrorClass
from tasks.text.regex import regex

# The first match decides; quota comes before rate because both come with the status 429.
_BY_WORDS = {
    ErrorClass.PROMPT: (
        r"prompt is too long|prompt_too_long|context[_ ]length|context window|maximum context"
        r"|input token count|token count .{0,40}exceed|too many input tokens|ContextOverflow"
    ),
    ErrorClass.QUOTA: (
        r"quota|billing|credit balance|out of credit|insufficient.{0,10}(?:credit|fund|balance)"
        r"|payment required|usage limit|hit your .{0,20}limit|spend(?:ing)? limit"
        r"|limit reached.{0,20}reset"
    ),
    ErrorClass.SIGN_IN: (
        r"unauthori[sz]ed|not logged in|log ?in again|please (?:run )?/?login|authentication"
        r"|(?:invalid|incorrect|missing|no valid) (?:api|access) ?key"
        r"|api[ _]key(?:[ _]not valid|[ _]expired|[ _]not found|_invalid)"
        r"|missing environment variable|invalid x-api-key|token (?:has )?expired|sign in again"
        r"|set an auth method|ProviderAuthError|permission_error"
    ),
    ErrorClass.MODEL: (
        r"model_not_found|ModelNotFound|model .{0,120}(?:not found|does(?:n.t| not) exist|not supported)"
        r"|models?/\S+ is not found|unknown model|no such model|invalid model"
        r"|not_found_error.{0,40}model"
    ),
    ErrorClass.RATE: (
        r"rate.?limit|too many requests|overloaded|high demand|resource.?exhausted"
        r"|server.?error|server had an error"
        r"|service unavailable|temporar(?:y|ily) (?:errors?|unavailable)|bad gateway|internal error"
    ),
    ErrorClass.NETWORK: (
        r"econnrefused|econnreset|enotfound|etimedout|eai_again|connection (?:refused|reset|error|closed)"
        r"|cannot connect|unable to connect|fetch failed|error sending request|malformed response"
        r"|stream (?:disconnected|closed|ended without)|connection .{0,20}was lost"
        r"|idle timeout|waiting for network|network error|socket (?:hang up|closed)|dns error|timed out"
    ),
}
WORDS = {kind: regex(pattern, re.IGNORECASE) for kind, pattern in _BY_WORDS.items()}
STATUS = regex(r"(?:status(?: code)?|\"?code\"?|HTTP(?:/[\d.]+)?)\W{0,4}([45]\d\d)\b", re.IGNORECASE)

CLAIMED_MIN = timedelta(seconds=1)
CLAIMED_MAX = timedelta(days=8)  # a week's quota and a day; later times are ignored
AMOUNT = r"\d{1,7}(?:\.\d{1,9})?"
UNIT = r"(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)"
RELATIVE = regex(
    rf"(?:\bin|\bafter|\bafter:)\s+((?:{AMOUNT}\s*{UNIT}(?![a-z])[\s,]*(?:and\s+)?){{1,4}})", re.IGNORECASE
)
BARE = regex(r"retry[- ]?(?:after|delay)\W{1,5}(\d{1,7}(?:\.\d{1,9})?)(?!\d|\s*[a-z])", re.IGNORECASE)
PART = regex(rf"({AMOUNT})\s*({UNIT})(?![a-z])", re.IGNORECASE)
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
EPOCH = regex(r"(?:\||reset\w*\D{1,12})(1\d{9})\b")
ISO = regex(r"\b(20\d\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(Z|[+-]\d\d:?\d\d)?", re.IGNORECASE)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
CLOCK = regex(
    r"(?:resets?(?:\s+at)?|again\s+at|until)\s+"
    rf"(?:({'|'.join(MONTHS)})[a-z]*\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?:(20\d\d),?\s+)?(?:at\s+)?)?"
    r"(\d{1,2})(?::(\d\d))?\s*([ap]m)?(?:\s*\(([A-Za-z_]+(?:/[A-Za-z_+\-\d]+)*)\))?",
    re.IGNORECASE,
)


def error_of(text: str, status: int | None = None) -> ErrorClass | None:
    """Return the class of an error from its text and the HTTP status, or None if nothing fits."""
    text = text[:4000]
    status = status or status_in(text)
    said = next((kind for kind, pattern in WORDS.items() if pattern.search(text)), None)
    answered = of_status(status)
    if said is None or said in {ErrorClass.RATE, ErrorClass.NETWORK}:
        return answered or said  # these words are the weakest sign, so the status is preferred
    return said


def of_status(status: int | None) -> ErrorClass | None:
    """Return the class of error that an HTTP status means by itself; None for 400, among others."""
    if status in {401, 403}:
        return ErrorClass.SIGN_IN
    if status == 402:
        return ErrorClass.QUOTA
    if status == 404:
        return ErrorClass.MODEL
    if status == 413:
        return ErrorClass.PROMPT
    if status in {408, 429} or (status and 500 <= status <= 599):
        return ErrorClass.RATE
    return None


def status_in(text: str) -> int | None:
    """Return the HTTP status that a text names, or None if it names none."""
    found = STATUS.search(text)
    return int(found[1]) if found else None


# --- When to try again --------------------------------------------------------------------------------------


def retry_at(text: str, now: datetime) -> datetime | None:
    """Return the time the text names for trying again, or None if it names none that is plausible."""
    for read in (_in_seconds, _epoch, _iso, _clock):
        # No such day or zone, or further away than dates go.
        with suppress(ValueError, OverflowError, OSError, ZoneInfoNotFoundError):
            if found := read(text[:4000], now):
                return found if now + CLAIMED_MIN <= found <= now + CLAIMED_MAX else None
    return None


def _in_seconds(text: str, now: datetime) -> datetime | None:
    found = RELATIVE.search(text)
    if found:
        parts = PART.findall(found[1])
        return now + timedelta(seconds=sum(float(amount) * _seconds(unit) for amount, unit in parts))
    bare = BARE.search(text)
    return now + timedelta(seconds=float(bare[1])) if bare else None


def _seconds(unit: str) -> float:
    unit = unit.lower()
    return SECONDS["ms"] if unit.startswith(("ms", "mil")) else SECONDS[unit[0]]


def _epoch(text: str, now: datetime) -> datetime | None:
    found = EPOCH.search(text)
    return datetime.fromtimestamp(int(found[1]), UTC) if found else None


def _iso(text: str, now: datetime) -> datetime | None:
    found = ISO.search(text)
    return datetime.fromisoformat(found[1].upper() + (found[2] or "Z").upper()) if found else None


def _clock(text: str, now: datetime) -> datetime | None:
    """Read a time of day, perhaps with a date, or return None.

    For example: "resets 3pm (Europe/Berlin)" or "try again at Nov 25th, 2026 3:05 PM".
    """
    found = CLOCK.search(text)
    if not found:
        return None
    month, day, year, hour, minute, half, zone = found.groups()
    if minute is None and half is None:
        return None  # a bare number is not a time
    local = now.astimezone(ZoneInfo(zone) if zone else UTC)
    hours = int(hour) % 12 + (12 if half.lower() == "pm" else 0) if half else int(hour)
    moment = local.replace(hour=hours, minute=int(minute or 0), second=0, microsecond=0)
    if month:
        moment = moment.replace(
            year=int(year) if year else local.year, month=MONTHS.index(month.lower()) + 1, day=int(day)
        )
        if not year and moment < local - timedelta(days=1):
            moment = moment.replace(year=local.year + 1)
    elif moment <= local:
        moment += timedelta(days=1)
    return moment.astimezone(UTC)
