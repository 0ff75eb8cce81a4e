"""Work that must stay linear, told from work that does not by a bound no loaded machine reaches."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

ENOUGH = 30.0  # seconds of this process alone; the work takes a second at most, or hours


@contextmanager
def linear_time() -> Iterator[None]:
    """What is done inside costs this process no more than a moment, whatever else the machine does."""
    begun = time.process_time()
    yield
    assert time.process_time() - begun < ENOUGH
