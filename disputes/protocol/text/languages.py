"""Whether a text is in a language that the readers of reviews know little of (VER-6)."""

from collections import Counter

from tasks.text.regex import regex

WORDS = regex(r"[^\W\d_]+")
ENOUGH = 2  # words of another language; one alone may be part of a name
LATIN_MAX = "\u024f"  # the last letter of the Latin alphabets
# The commonest short words of English, and of other languages that are written in Latin letters; words that
# two sides have in common are left out.
_ENGLISH = """
the is are was be been and or of to in it its for with this that these not all now but at by from has have
does i you we they if when which so can will would should there than only here now still
"""
_OTHERS = """
der das und nicht ist sind ein eine einen dem mit für auf von zu wird muss müssen noch aber vor bei sich auch
nur wie dass oder im zum zur
le la les un une du et est pas qui que dans pour sur avec sont ne ce cette mais avant sous sauf il doit de
el los las una y por con para es del se hay pero antes está sin
lo gli di che non è per sono ma prima um uma os não em são mas het een niet van op zijn maar wel
"""
ENGLISH, OTHERS = frozenset(_ENGLISH.split()), frozenset(_OTHERS.split())


def is_foreign(text: str) -> bool:
    """Whether the text seems to be in another language than English, by its letters or commonest words."""
    letters = Counter(letter > LATIN_MAX for letter in text if letter.isalpha())
    if letters[True] * 2 > letters[False]:
        return True
    words = [word.lower() for word in WORDS.findall(text)]
    others = sum(word in OTHERS for word in words)
    return others >= ENOUGH and others > sum(word in ENGLISH for word in words)
