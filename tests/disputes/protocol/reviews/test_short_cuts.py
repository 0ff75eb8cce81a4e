"""Short cuts of the readers: what they pass over at one look is what the long way would not find."""

from disputes.protocol.text.locations import LINE_NUMBER, place
from tests.cases import for_each


@for_each("text", ["src/a.py:12", "`src/a.py`:12", "src/a:1", "a: src/a.py", "at 12:30", "a.py"])
def test_a_place_with_a_line_is_seen_at_once(text: str) -> None:
    assert place(text)[1] is None or LINE_NUMBER.search(text)
