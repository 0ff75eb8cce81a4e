"""Words in the form in which the rules compare them: in lower case, without endings and without common words.

The rules about silence, synthesis, re-argued rulings and the identity of findings all share this tokeniser.
"""

from collections.abc import Set as AbstractSet
from functools import lru_cache

from tasks.text.regex import regex

# An underscore separates words just as a blank does: retry_count is two words.
_WORD = regex(r"[^\W_]+")
WORD_MAX = 40  # characters; what is longer is no word of a language, and is not remembered
_VOWEL = regex(r"[aeiouy]")
_ENDINGS = (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("ers", "er"), ("es", "e"), ("s", ""))
_STOP_WORDS = """
a an and any are as at be been being but by can could did do does for from had has have how however i if in
into is it its just may might must no nor not of on one only or our out over own same shall should so some
such than that the their them then there these they this those to too under until up us very was we were
what when where which while who why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


def tokens(text: str) -> list[str]:
    """Return the words of a text in order, in lower case."""
    return _WORD.findall(text.lower())


def stem(word: str) -> str:
    """Return a lower-case word without the ending of its plural or tense, such as `retry` for `retries`."""
    return _stem(word) if len(word) <= WORD_MAX else word


@lru_cache(maxsize=8192)  # the findings of a task share most of their words
def _stem(word: str) -> str:
    for ending, instead in _ENDINGS:
        rest = word[: len(word) - len(ending)]
        if not word.endswith(ending) or len(rest) < 3 or word.endswith(("ss", "eed")):
            continue
        if ending in {"ing", "ed"}:
            if not _VOWEL.search(rest):
                continue
            if len(rest) > 3 and rest[-1] == rest[-2] not in {"l", "s", "z"}:
                rest = rest[:-1]  # stopped becomes stop
        word = rest + instead
        break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def keywords(text: str) -> frozenset[str]:
    """Return the stems of the words that say what a text is about. Numbers count; single letters do not."""
    return frozenset(
        stem(word) for word in tokens(text) if word not in STOP_WORDS and (len(word) > 1 or word.isdigit())
    )


def overlap(wanted: AbstractSet[str], among: AbstractSet[str]) -> float | None:
    """Return the share of the wanted words that is among the others, 0 to 1; None if no words are wanted."""
    return len(wanted & among) / len(wanted) if wanted else None


def likeness(one: AbstractSet[str], other: AbstractSet[str]) -> float:
    """Return how alike two sets of words are, 0 to 1, as their Dice coefficient; 0 if either is empty."""
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0
