"""Filters for the figures of the insights, `{% load insights %}`; functions, as a page has hundreds."""

from decimal import Decimal

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from disputes.protocol.completion.budget import money
from disputes.protocol.rulings.figures import Share

register = template.Library()

FEW = SafeString('<span class="few">too few</span>')
BAR = (
    '<svg class="part" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
    '<rect class="part-all" width="100" height="8"/><rect class="part-one" width="{}" height="8"/></svg>'
)
INTERVAL = (
    '<svg class="interval" viewBox="0 0 140 14" aria-hidden="true">'
    '<line class="interval-half" x1="70" x2="70" y1="1" y2="13"/>'
    '<line class="interval-line" x1="{}" x2="{}" y1="7" y2="7"/>'
    '<circle class="interval-dot" cx="{}" cy="7" r="4"/></svg>'
)
EDGE = 4  # so that a dot at either end is not cut off


@register.filter
def dollars(amount: float) -> str:
    """Return dollars as the other pages show them."""
    return money(Decimal(str(amount)))


@register.filter
def thousands(number: int) -> str:
    return f"{number:,}"


@register.filter
def percent(share: Share) -> str:
    """Return the share as 62 %, or a note that there are too few."""
    return FEW if share.value is None else f"{share.value:.0%}".replace("%", " %")


@register.filter
def interval(share: Share) -> str:
    """Return the 95 % interval in percent, such as 45–76."""
    return "" if share.is_few else f"{share.low * 100:.0f}–{share.high * 100:.0f}"


@register.filter
def drawn(share: Share) -> str:
    """Draw the share as a point on its interval, on a scale from 0 to 100 % with a line at one half."""
    if share.value is None:
        return ""
    places = (share.low, share.high, share.value)
    return format_html(INTERVAL, *(f"{EDGE + place * (140 - 2 * EDGE):.1f}" for place in places))


@register.filter
def bar(share: Share) -> str:
    """Draw the share as a bar."""
    return "" if share.value is None else format_html(BAR, f"{share.value * 100:.1f}")
