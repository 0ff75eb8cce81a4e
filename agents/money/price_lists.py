"""The price lists of this installation."""

import logging
from typing import Any

from django.conf import settings

from agents.money import prices
from agents.money.prices import BadPrices, PriceList

log = logging.getLogger(__name__)

_last: dict[str, Any] = {"good": None, "fault": ""}


def price_list() -> PriceList:
    """Return the current lists. A faulty one is logged once, and the last good one stays in use."""
    try:
        found = prices.load(settings.PRICES)
    except (BadPrices, OSError) as error:
        if _last["fault"] != str(error):
            log.error("The price list cannot be used, the one before it counts: %s", error)
            _last["fault"] = str(error)
        return _last["good"] or prices.load(None)
    _last.update(good=found, fault="")
    return found
