"""How alike texts are: the words they share, each the weightier the fewer of the others have it."""

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from math import fsum, log, sqrt


class Collection:
    """Texts as sets of words (`keywords`), to be compared with one more."""

    def __init__(self, texts: Sequence[AbstractSet[str]]) -> None:
        self.texts = texts
        having = Counter(word for words in texts for word in words)
        self._unseen = log(1 + len(texts)) ** 2
        self._squares = {word: log(1 + len(texts) / number) ** 2 for word, number in having.items()}
        self._norms = [sqrt(self._square(words)) for words in texts]

    def scores(self, words: AbstractSet[str]) -> list[float]:
        """For each text how like this one it is, 0 to 1: the cosine of both, by inverse frequency."""
        own = sqrt(self._square(words))
        return [
            self._square(words & text) / (own * norm) if own and norm else 0.0
            for text, norm in zip(self.texts, self._norms, strict=True)
        ]

    def _square(self, words: AbstractSet[str]) -> float:
        """The squares of the words' weights, summed exactly: sets have no order, and sums of floats one."""
        return fsum(self._squares.get(word, self._unseen) for word in words)
