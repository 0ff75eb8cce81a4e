"""Why is this not moving, what did it cost? Who knows runs and disputes answers; here it is only asked."""

from collections.abc import Callable
from functools import lru_cache

from django.conf import settings
from django.utils.module_loading import import_string

from tasks.models import Task


@lru_cache(maxsize=4)
def _answerer(path: str) -> Callable[[Task], str]:
    found: Callable[[Task], str] = import_string(path)
    return found


def spent_line(task: Task) -> str:
    """What its runs cost and used, in one sentence; empty where nothing."""
    return _answerer(settings.SPENT_LINE)(task)


def waiting_line(task: Task) -> str:
    """Whose turn it is and why, in one sentence."""
    return _answerer(settings.WAITING_LINE)(task)
