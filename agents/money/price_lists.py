"""The price lists of this installation, and what to say where the operator's is faulty."""

import logging
from typing import Any

from django.conf import settings
from django.core import checks

from agents.money import prices
from agents.money.prices import BadPrices, PriceList

log = logging.getLogger(__name__)

_last: dict[str, Any] = {"good": None, "fault": ""}


def price_list() -> PriceList:
    """The current lists. A faulty one is logged once, and the last good one stays in use."""
    try:
        found = prices.load(settings.PRICES)
    except (BadPrices, OSError) as error:
        if _last["fault"] != str(error):
            log.error("The price list cannot be used, the one before it counts: %s", error)
            _last["fault"] = str(error)
        return _last["good"] or prices.load(None)
    _last.update(good=found, fault="")
    return found


@checks.register
def check_prices(**kwargs: Any) -> list[checks.CheckMessage]:
    """Warn, naming the faulty lines, about a price list that cannot be read; the program runs without it."""
    try:
        prices.load(settings.PRICES)
    except (BadPrices, OSError) as error:
        hint = "Mend the file; until then the list before it counts, or else the program's own prices."
        return [checks.Warning(f"The price list cannot be used. {error}", hint=hint, id="agents.W010")]
    return []
