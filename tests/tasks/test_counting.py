"""How many of something, as one says it."""

import pytest

from tasks.text.counting import counted


@pytest.mark.parametrize(("count", "said"), [(0, "0 findings"), (1, "1 finding"), (2, "2 findings")])
def test_one_is_not_said_as_many(count: int, said: str) -> None:
    assert counted(count, "finding") == said
