"""Small components that several pages share: `{% load steroids %}`."""

import re
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone

from tasks.spans import duration
from tasks.states import MEANINGS, Status, severity_rank

register = template.Library()
register.filter("duration", duration)

_SPAN = re.compile(r"\b(\d+) (?=[dhms]\b)|(?<=\d [dh]) (?=\d+ [hm]\b)")  # 2 h 11 m

KINDS = {
    "disagreement": ("call_split", "Disagreement"),
    "silence": ("hearing_disabled", "Silence"),
    "alert": ("monitoring", "Alert"),
    "hands": ("front_hand", "Hands"),
}


@register.filter
def unbroken(text: str) -> str:
    """The text with each span of time, such as 2 h 11 m, kept on one line."""
    return _SPAN.sub(lambda found: f"{found[1] or ''}\N{NO-BREAK SPACE}", text)


@register.filter
def words(name: str) -> str:
    """The name of a kind or a verb as people read it: rule_revise, rule revise."""
    return name.replace("_", " ")


@register.inclusion_tag("components/age.html")
def age(moment: datetime | None) -> dict[str, Any]:
    """How long ago, with the full date where the pointer rests."""
    since = (timezone.now() - moment).total_seconds() if moment else None
    return {"moment": moment, "words": duration(since)}


@register.inclusion_tag("components/severity_chip.html")
def severity_chip(severity: str) -> dict[str, Any]:
    """Bars and the word; only critical and high have a colour."""
    return {"severity": severity, "word": severity.capitalize(), "rank": severity_rank(severity)}


@register.inclusion_tag("components/kind_chip.html")
def kind_chip(kind: str) -> dict[str, Any]:
    """Icon and word, never coloured."""
    icon, word = KINDS.get(kind, ("help", kind.capitalize()))
    return {"icon": icon, "word": word}


@register.inclusion_tag("components/status_box.html")
def status_box(status: str) -> dict[str, Any]:
    """The box of TODO.md and the status in words."""
    meaning = MEANINGS[Status(status)]
    return {"status": status, "marker": meaning.marker, "word": meaning.label}
