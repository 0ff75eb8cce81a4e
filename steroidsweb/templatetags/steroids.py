"""Small components that several pages share: `{% load steroids %}`."""

from datetime import datetime
from functools import lru_cache
from typing import Any

from django import template
from django.db.models import ForeignKey, Model
from django.template import Context
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from tasks import events
from tasks.database.clock import estimated_time
from tasks.spans import duration
from tasks.states import MEANINGS, Status, severity_rank
from tasks.text.counting import shortened
from tasks.text.regex import regex

register = template.Library()
register.filter("duration", duration)

_SPAN = regex(r"\b(\d+) (?=[dhms]\b)|(?<=\d [dh]) (?=\d+ [hm]\b)")  # 2 h 11 m

KINDS = {
    "disagreement": ("call_split", "Disagreement"),
    "silence": ("hearing_disabled", "Silence"),
    "alert": ("monitoring", "Alert"),
    "help": ("front_hand", "Needs a person"),
}


@register.filter
def unbroken(text: str) -> str:
    """Return the text with each duration, such as "2 h 11 m", kept on one line."""
    return _SPAN.sub(lambda found: f"{found[1] or ''}\N{NO-BREAK SPACE}", text)


@register.filter(is_safe=True)
def truncatechars(text: object, limit: int) -> str:
    """Return the text, cut between words if it is longer than the limit.

    Django's filter of this name cuts within a word, and takes every text apart letter by letter, which was a
    sixteenth of the time of a full board.
    """
    return shortened(str(text), limit)


@register.simple_tag
@lru_cache(maxsize=4096)
def path_to(view: str, *names: str | int) -> str:
    """Return the path of a page. It is remembered, for the rows of long lists; elsewhere `url` will do."""
    return reverse(view, args=names)


@register.filter
def words(name: str) -> str:
    """Return a kind or a verb as people read it: rule_revise becomes "rule revise"."""
    return name.replace("_", " ")


register.filter("event_words", events.words)


@register.simple_tag(takes_context=True)
def shown_to_reader(context: Context, field: Any) -> Any:
    """Return what a read-only field shows: another row as a link only for those who may open it."""
    column, _, row = field.resolved_field or (None, None, None)
    if isinstance(row, Model) and isinstance(column, ForeignKey):
        owner = field.model_admin.admin_site.get_model_admin(type(row))
        if not owner.has_view_permission(context["request"]):
            return str(row)
    contents = field.contents()
    return "-" if contents in ("", "None") else contents


@register.simple_tag
def age(moment: datetime | None) -> SafeString:
    """Return how long ago it was, with the full date as a tooltip.

    This is no template, because every row of a list has one.
    """
    if moment is None:
        return SafeString('<span class="age">never</span>')
    here = timezone.template_localtime(moment)
    return format_html(
        '<time class="age" datetime="{}" title="{} {}">{}</time>',
        here.isoformat(), f"{here:%Y-%m-%d %H:%M:%S}", here.tzname(),
        duration((estimated_time() - moment).total_seconds()),
    )  # fmt: skip


# A page shows hundreds of these chips, and few different ones, so each is rendered once per process.


@register.simple_tag
@lru_cache(maxsize=64)
def severity_chip(severity: str) -> SafeString:
    """Return the severity as bars and a word; only critical and high have a colour."""
    return _rendered(
        "severity_chip", severity=severity, word=severity.capitalize(), rank=severity_rank(severity)
    )


@register.simple_tag
@lru_cache(maxsize=64)
def kind_chip(kind: str) -> SafeString:
    """Return the kind of a card as an icon and a word, without colour."""
    icon, word = KINDS.get(kind, ("help", kind.capitalize()))
    return _rendered("kind_chip", icon=icon, word=word)


@register.simple_tag
@lru_cache(maxsize=64)
def status_box(status: str) -> SafeString:
    """Return the box of TODO.md and the status in words."""
    meaning = MEANINGS[Status(status)]
    return _rendered("status_box", status=status, marker=meaning.marker, word=meaning.label)


def _rendered(component: str, **context: Any) -> SafeString:
    return render_to_string(f"components/{component}.html", context)
