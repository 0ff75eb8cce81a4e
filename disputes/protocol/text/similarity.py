"""How alike texts are: by the words they share, where rare words weigh more."""

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from math import fsum, log, sqrt


class Collection:
    """Texts as sets of words (`keywords`), for comparison with another one."""

    def __init__(self, texts: Sequence[AbstractSet[str]]) -> None:
        self.texts = texts
        having = Counter(chain.from_iterable(texts))
        self._unseen = log(1 + len(texts)) ** 2
        self._squares = {word: log(1 + len(texts) / number) ** 2 for word, number in having.items()}
        self._norms = [sqrt(self._square(words)) for words in texts]

    def scores(self, words: AbstractSet[str]) -> list[float]:
        """How similar each text is to this one, 0 to 1: their cosine, weighted by inverse frequency."""
        own = sqrt(fsum(self._squares.get(word, self._unseen) for word in words))
        return [
            self._square(words & text) / (own * norm) if own and norm else 0.0
            for text, norm in zip(self.texts, self._norms, strict=True)
        ]

    def _square(self, words: AbstractSet[str]) -> float:
        """The squared weights of words of the texts, summed exactly: a set has no order, but a sum of floats
        depends on it.
        """
        return fsum(map(self._squares.__getitem__, words))
