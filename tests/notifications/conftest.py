"""A receiver of messages, and makers of channels and of cards."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache, caches

from disputes import opening
from disputes.models import Channel, Conflict
from disputes.notifications import signing
from disputes.notifications.sealing import seal
from tasks.models import Project
from tests.factories import create_submission, create_task
from tests.notifications.receiver import MailServer, Receiver, http_server, serve


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> None:
    cache.clear()
    caches["q2"].clear()


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    """An HTTP server on loopback, where the installation allows that."""
    settings.TELL_PRIVATE = True
    receiver = Receiver()
    server = http_server(receiver)
    serve(server)
    yield receiver
    receiver.released.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def mail(settings: Any) -> Iterator[MailServer]:
    settings.TELL_PRIVATE = True
    server = MailServer()
    serve(server)
    yield server
    server.shutdown()
    server.server_close()


def create_channel(address: str = "https://example.org/hook", secret: str = "", **kwargs: Any) -> Channel:
    """A webhook, unless said otherwise."""
    kwargs = {"name": "Hook", "kind": "webhook", "service": "example.org"} | kwargs
    secret = secret or signing.new_secret()
    kept = f'[["{secret}", ""]]'
    return Channel.objects.create(sealed_address=seal(address), sealed_secret=seal(kept), **kwargs)


def open_card(project: Project, question: str = "Back off, or not?", **kwargs: Any) -> Conflict:
    """A disagreement that waits for a ruling; leaves a notice."""
    task = kwargs.pop("task", None) or create_task(project, title="Call politely", status="disputed", round=2)
    kwargs = {"kind": "disagreement", "origin": "disagree", "opened_as": "coder", "severity": "high"} | kwargs
    return opening.open_conflict(
        task, question=question, submission=create_submission(task), reviewer_position="Wait longer.",
        coder_position="It is bounded.", **kwargs,
    )  # fmt: skip
