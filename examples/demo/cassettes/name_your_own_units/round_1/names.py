"""Spans a team has a name for, such as a sprint of ten days."""

from .parse import parse_span

_names: dict[str, int] = {}


def define(name: str, span: str) -> None:
    """Give ``span`` a name, known wherever spans are read. A name can be given only once."""
    if name in _names:
        raise ValueError(f"the name is taken: {name!r}")
    _names[name] = parse_span(span)


def parse_named(text: str) -> int:
    """Return the seconds in the span called ``text``, or in ``text`` read as a span."""
    return _names[text] if text in _names else parse_span(text)


def forget_all() -> None:
    """Forget every name. This returns nothing and is meant for tests."""
    _names.clear()
