"""What SECRET_KEY seals besides the addresses of channels: second factors."""

from collections.abc import Callable

from django.conf import settings


def reseal(again: Callable[[str], str]) -> int:
    """Seal the secrets of second factors with today's key. Return how many."""
    if settings.MFA == "off":
        return 0
    from steroidsweb.accounts import second_factor

    return second_factor.reseal(again)
