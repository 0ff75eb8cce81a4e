"""Spans a team has a name for, such as a sprint of ten days."""

from collections.abc import Mapping

from .parse import parse_span


class Names:
    """The names of one team. Whoever reads spans with names is handed them; the library keeps none."""

    def __init__(self, spans: Mapping[str, str]) -> None:
        self._seconds = {name: parse_span(span) for name, span in spans.items()}

    def parse(self, text: str) -> int:
        """Return the seconds in the span called ``text``, or in ``text`` read as a span."""
        return self._seconds[text] if text in self._seconds else parse_span(text)
