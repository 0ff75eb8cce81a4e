"""Filters for the pages of the queue: `{% load triage %}`."""

import re
from collections.abc import Sequence
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString

from disputes.web.dispute.code import rows_of, split_rows_of
from disputes.web.markdown import as_html
from tasks.text import unseen
from tasks.text.regex import regex

register = template.Library()

register.simple_tag(rows_of, name="code_rows")
register.simple_tag(split_rows_of, name="split_code_rows")

# With so many rows a browser lays a part out in a moment, and those out of sight not at all (`.code-part`).
PART_ROWS = 200
_CODE = regex(r"`([^`\n]+)`")


@register.filter
def in_parts(rows: Sequence[Any]) -> list[Sequence[Any]]:
    """Return the lines of code as the tables that show them, one below the other."""
    return [rows[start : start + PART_ROWS] for start in range(0, len(rows), PART_ROWS)]


@register.filter
def plain(text: object) -> str:
    """Return an agent's text without control characters and characters that change the reading direction."""
    return unseen.plain(str(text))


@register.filter
def visible(text: object) -> str:
    """Return code with such characters spelled out."""
    return unseen.visible(str(text))


@register.filter
def quoted(text: object) -> SafeString:
    """Return the plain text, escaped, with `code` set as code; nothing else in it is markup."""
    return SafeString(_CODE.sub(r"<code>\1</code>", escape(plain(text))))


@register.filter
def markdown(text: object) -> SafeString:
    """Return a comment as HTML without scripts or other active content."""
    return as_html(str(text))


@register.filter
def undo_url(message: object) -> str:
    """Return the path to undo the ruling that a message is about, or "" for other messages."""
    found = re.search(r"\bruling-(\d+)\b", getattr(message, "extra_tags", "") or "")
    return reverse("decision-undo", args=[found[1]]) if found else ""


@register.filter
def ruled_by(decision: object) -> str:
    """Return the name of the person who ruled, or whose policy it was."""
    return unseen.plain(decision.by)  # type: ignore[attr-defined]
