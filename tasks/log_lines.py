"""Log lines, for people or as JSON for machines, with the run and the task that each is about."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest, HttpResponse

from tasks.text.unseen import visible

View = Callable[[HttpRequest], HttpResponse]

_about: ContextVar[dict[str, Any]] = ContextVar("about", default={})  # noqa: B039 (never changed in place)


@contextmanager
def about(**what: Any) -> Iterator[None]:
    """Mark what this thread logs inside the block as being about this: a run's number, a task's name."""
    token = _about.set(_about.get() | what)
    try:
        yield
    finally:
        _about.reset(token)


def note(**what: Any) -> None:
    """Mark what is logged from here on in the same way, until the surrounding `about` block ends."""
    _about.set(_about.get() | what)


def of_a_request(get_response: View) -> View:
    """Wrap a view, as middleware, so that what is noted during one request is forgotten after it."""

    def middleware(request: HttpRequest) -> HttpResponse:
        with about():
            return get_response(request)

    return middleware


class PlainLines(logging.Formatter):
    """One line per message, for people, and its traceback below it.

    A message may quote what an agent wrote, which could else look like lines of its own.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the name is logging's)
        return visible(" / ".join(super().formatMessage(record).splitlines()))


class JSONLines(logging.Formatter):
    """One JSON object per line: time, level, logger, message, run and task if known, process, traceback."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_about.get(),
            "process": record.process,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
