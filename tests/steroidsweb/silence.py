"""Pages with less in them, for tests of who may open them: what they say is most of a request's time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from django.contrib import admin
from django.http import HttpRequest
from django.template.backends.django import Template

Frames = dict[Any, dict[str, Any]]


@contextmanager
def framed() -> Iterator[Frames]:
    """The frame around pages is put together once for each person.

    The frames so far, by person; one that is taken out is put together anew.
    """
    frames: Frames = {}
    put_together = admin.site.each_context

    def frame(request: HttpRequest) -> dict[str, Any]:
        if request.user.pk not in frames:
            frames[request.user.pk] = put_together(request)
        return dict(frames[request.user.pk])

    with patch.object(admin.site, "each_context", frame):
        yield frames


@contextmanager
def silent() -> Iterator[Frames]:
    """No page is put into words, and each person's frame is put together once."""
    with framed() as frames, patch.object(Template, "render", lambda self, context=None, request=None: ""):
        yield frames
