"""How severe a finding is: the words for it, and its weight."""

import re
import unicodedata
from collections.abc import Iterable, Mapping

from tasks.configuration.policy import ProjectSettings
from tasks.states import Severity, severity_rank, worst
from tasks.text.regex import regex

# SEV-9: other words for severities.
SEVERITY_WORDS: dict[str, Severity] = {
    **{severity.value: severity for severity in Severity},
    **dict.fromkeys(["major", "must", "important"], Severity.HIGH),
    **dict.fromkeys(["moderate", "should"], Severity.MEDIUM),
    **dict.fromkeys(["minor", "nit", "nits", "nitpick", "nitpicks", "trivial", "cosmetic"], Severity.LOW),
    **dict.fromkeys(["could", "consider", "nice to have"], Severity.LOW),
}
# The same in German, French and Spanish, without accents; they inflect them.
FOREIGN: dict[str, Severity] = {
    **dict.fromkeys(["kritisch", "critico", "critica"], Severity.CRITICAL),
    **dict.fromkeys(["hoch", "hoh", "wichtig", "schwerwiegend"], Severity.HIGH),
    **dict.fromkeys(["majeur", "majeure", "eleve", "haute"], Severity.HIGH),
    **dict.fromkeys(["grave", "alto", "alta", "importante"], Severity.HIGH),
    **dict.fromkeys(["mittel", "mittler", "moyen", "medio"], Severity.MEDIUM),
    **dict.fromkeys(["niedrig", "gering", "mineur", "mineure", "faible"], Severity.LOW),
    **dict.fromkeys(["menor", "bajo", "baja", "leve"], Severity.LOW),
}
ENDINGS = ("", "e", "er", "es", "en", "s")  # of adjectives in these languages
# Numbers on a scale: priorities from P0, severities from S1 or Sev 1.
SCALE = regex(r"(?P<scale>p|priority|s|sev|severity)[ -]?(?P<number>[0-4])", re.IGNORECASE)
FROM_ZERO = (Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM, Severity.LOW, Severity.LOW)
FROM_ONE = (Severity.CRITICAL, Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM, Severity.LOW)
# A score of a vulnerability, up to 10: "CVSS 8.1", "CVSS v3.1 score 9.8"; the least ones of each severity.
CVSS = regex(r"cvss(?: ?v?[234](?:\.\d)?)?(?: (?:base )?score)? (?P<score>\d{1,2}(?:\.\d)?)", re.IGNORECASE)
LEAST = {Severity.CRITICAL: 9.0, Severity.HIGH: 7.0, Severity.MEDIUM: 4.0, Severity.LOW: 0.0}
STORAGE = "s3"  # in a sentence, this is a place for files
WEIGHTS = ProjectSettings().severity_weights  # the default (SEV-11), which a project may change
GRAVE = frozenset({Severity.CRITICAL, Severity.HIGH})


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
    """Return the severity that a number on a scale states: P1, S2, Sev 3, CVSS 8.1; None if it is none."""
    if match := CVSS.fullmatch(words):
        return next(severity for severity, least in LEAST.items() if float(match["score"]) >= least)
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
