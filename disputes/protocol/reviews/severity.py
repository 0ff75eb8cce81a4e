"""How severe a finding is: the words for it, and its weight."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tasks.configuration.policy import ProjectSettings
from tasks.states import Severity, severity_rank, worst
from tasks.text.regex import regex

# SEV-9: other words for severities.
SEVERITY_WORDS: dict[str, Severity] = {
    **{severity.value: severity for severity in Severity},
    "major": Severity.HIGH,
    "must": Severity.HIGH,
    "important": Severity.HIGH,
    "moderate": Severity.MEDIUM,
    "should": Severity.MEDIUM,
    "minor": Severity.LOW,
    "nit": Severity.LOW,
    "nits": Severity.LOW,
    "nitpick": Severity.LOW,
    "nitpicks": Severity.LOW,
    "trivial": Severity.LOW,
    "cosmetic": Severity.LOW,
    "could": Severity.LOW,
    "consider": Severity.LOW,
    "nice to have": Severity.LOW,
}
# The same in other languages, which inflect them.
FOREIGN: dict[str, Severity] = {
    # Words of reviews in German, or in both languages.
    "kritisch": Severity.CRITICAL,
    "hoch": Severity.HIGH,
    "hoh": Severity.HIGH,
    "wichtig": Severity.HIGH,
    "schwerwiegend": Severity.HIGH,
    "mittel": Severity.MEDIUM,
    "mittler": Severity.MEDIUM,
    "niedrig": Severity.LOW,
    "gering": Severity.LOW,
    # Words of reviews in French.
    "majeur": Severity.HIGH,
    "majeure": Severity.HIGH,
    "mineur": Severity.LOW,
    "mineure": Severity.LOW,
    "eleve": Severity.HIGH,
    "haute": Severity.HIGH,
    "moyen": Severity.MEDIUM,
    "faible": Severity.LOW,
    # Words of reviews in Spanish, without their accents.
    "critico": Severity.CRITICAL,
    "critica": Severity.CRITICAL,
    "grave": Severity.HIGH,
    "alto": Severity.HIGH,
    "alta": Severity.HIGH,
    "importante": Severity.HIGH,
    "medio": Severity.MEDIUM,
    "menor": Severity.LOW,
    "bajo": Severity.LOW,
    "baja": Severity.LOW,
    "leve": Severity.LOW,
}
ENDINGS = ("", "e", "er", "es", "en", "s")  # of adjectives in these languages
# Numbers on a scale: priorities from P0, severities from S1 or Sev 1.
SCALE = regex(r"(?P<scale>p|priority|s|sev|severity)[ -]?(?P<number>[0-4])", re.IGNORECASE)
FROM_ZERO = (Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM, Severity.LOW, Severity.LOW)
FROM_ONE = (Severity.CRITICAL, Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM, Severity.LOW)
STORAGE = "s3"  # in a sentence, this is a place for files
WEIGHTS = ProjectSettings().severity_weights  # the default (SEV-11), which a project may change
GRAVE = frozenset({Severity.CRITICAL, Severity.HIGH})
# Words around a severity in a heading that do not count: High Priority Issues.
SECTION_WORDS = regex(r"\b(?:issues?|priority|severity|findings?)\b")


def read_severity(words: str) -> Severity | None:
    """Return the severity that these words state, or None (SEV-9). Of a range the higher one counts."""
    if (scaled := on_scale(words)) and words.lower() != STORAGE:
        return scaled
    plain = re.sub(r"[^a-z-]+", " ", folded(words.lower())).strip(" -").removesuffix(" risk")
    parts = [" ".join(part.split()) for part in plain.split("-")]
    named = [severity for part in parts if (severity := severity_of(part))]
    return max(named, key=severity_rank) if len(named) == len(parts) else None


def severity_of(word: str) -> Severity | None:
    """Return the severity that a word in small letters without accents states by itself, or None."""
    if severity := SEVERITY_WORDS.get(word):
        return severity
    stems = (word.removesuffix(ending) for ending in ENDINGS if word.endswith(ending))
    return next((FOREIGN[stem] for stem in stems if stem in FOREIGN), None)


def on_scale(words: str) -> Severity | None:
    """Return the severity that a number on a scale states: P1, S2, Sev 3; None if the words are none."""
    if not (match := SCALE.fullmatch(words)):
        return None
    numbers = FROM_ZERO if match["scale"][0] in "pP" else FROM_ONE
    return numbers[int(match["number"])]


def folded(words: str) -> str:
    """Return the words with the letters of the Latin alphabet without their accents."""
    if words.isascii():
        return words
    return "".join(
        letter for letter in unicodedata.normalize("NFD", words) if unicodedata.category(letter) != "Mn"
    )


# --- Weights ----------------------------------------------------------------------------------------------


def counts_as(severity: str | None) -> Severity:
    """Return the severity that counts; an unstated one counts as medium (SEV-9)."""
    return worst([severity] if severity else [])


def weight(severity: str | None, weights: Mapping[str, int] = WEIGHTS) -> int:
    """Return the weight of one gap or finding of this severity (SEV-11)."""
    return weights[counts_as(severity)]


def total_weight(severities: Iterable[str | None], weights: Mapping[str, int] = WEIGHTS) -> int:
    """Return the sum of the weights of all these severities."""
    return sum(weight(severity, weights) for severity in severities)


def is_grave(severity: str | None) -> bool:
    """Whether the severity is critical or high. An unstated severity never blocks (SEV-9)."""
    return severity in GRAVE


# --- Words that disagree ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stated:
    """The severity that a finding or a heading states, or None if it states none."""

    severity: Severity | None
    conflict: bool = False  # parts of the finding disagree (SEV-10), or the heading names several


def section_severity(heading: str) -> Stated:
    """Return the severity that a heading gives to what is below it.

    Of a merged heading such as `Medium/Low Priority` the lower one counts, marked as a conflict (SEV-12).
    """
    words = SECTION_WORDS.sub(" ", heading.partition("(")[0].lower())
    named = [read_severity(part) for part in words.split("/")]
    known = {severity for severity in named if severity}
    if None in named:
        return Stated(None)
    return Stated(min(known, key=severity_rank), conflict=len(known) > 1)
