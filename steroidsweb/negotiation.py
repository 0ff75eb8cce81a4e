"""In which format the API answers."""

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer

from tasks.errors import Refused
from tasks.text.unseen import visible


class Formats(DefaultContentNegotiation):
    """Says of an unknown ?format= that it is the format which is not there."""

    def filter_renderers(self, renderers: list[BaseRenderer], format: str) -> list[BaseRenderer]:
        known = [renderer for renderer in renderers if renderer.format == format]
        if not known:
            others = ", ".join(sorted({renderer.format for renderer in renderers}))
            hint = f"Leave out `format`, or take one of: {others}."
            raise Refused("not_found", f"This is not there as {visible(format[:40])}.", hint, status=404)
        return known
