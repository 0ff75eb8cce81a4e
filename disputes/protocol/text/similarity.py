"""Measuring how alike texts are by the words they share, with more weight on rare words."""

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from math import fsum, log, sqrt


class Collection:
    """Texts as sets of words (from `keywords`), to be compared with another one."""

    def __init__(self, texts: Sequence[AbstractSet[str]]) -> None:
        self.texts = texts
        having = Counter(chain.from_iterable(texts))
        self._unseen = log(1 + len(texts)) ** 2
        self._squares = {word: log(1 + len(texts) / number) ** 2 for word, number in having.items()}
        self._norms = [sqrt(self._square(words)) for words in texts]

    def scores(self, words: AbstractSet[str]) -> list[float]:
        """Return how similar each text is to these words, 0 to 1: the cosine, weighted by rarity."""
        own = sqrt(fsum(self._squares.get(word, self._unseen) for word in words))
        return [
            self._square(words & text) / (own * norm) if own and norm else 0.0
            for text, norm in zip(self.texts, self._norms, strict=True)
        ]

    def _square(self, words: AbstractSet[str]) -> float:
        """Return the sum of the squared weights of these words, all of which occur in the texts.

        It is summed exactly, because a sum of floats depends on their order and a set has none.
        """
        return fsum(map(self._squares.__getitem__, words))
