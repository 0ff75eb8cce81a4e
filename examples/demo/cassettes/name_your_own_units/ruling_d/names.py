"""Spans a team has a name for, such as a sprint of ten days.

What was decided about these names is written in docs/decisions/named-units.md.
"""

from .parse import parse_span


class Names:
    """The names of one team. Different teams do not know of each other."""

    def __init__(self) -> None:
        self._seconds: dict[str, int] = {}

    def define(self, name: str, span: str) -> None:
        """Give ``span`` a name. A name can be given only once; this returns nothing."""
        if name in self._seconds:
            raise ValueError(f"the name is taken: {name!r}")
        self._seconds[name] = parse_span(span)

    def parse(self, text: str) -> int:
        """Return the seconds in the span called ``text``, or in ``text`` read as a span."""
        return self._seconds[text] if text in self._seconds else parse_span(text)


# For a program that serves one team only. The library itself puts no name in it.
SHARED = Names()
