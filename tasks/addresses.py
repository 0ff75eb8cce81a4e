"""The IP address that a request comes from, for limiting how much one address may try."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest

Address = IPv4Address | IPv6Address
HOUSEHOLD = 64  # bits of an IPv6 address that a provider gives to one customer


def address_of(request: HttpRequest) -> str:
    """Return the caller's IP address, or the /64 network of an IPv6 address; "unknown" if there is none.

    `X-Forwarded-For` is read from the right, only as far as TRUSTED_PROXIES wrote it: up to the first address
    that is not one of them.
    """
    address = _parsed(request.META.get("REMOTE_ADDR", ""))
    if address is None:
        return "unknown"
    for word in reversed(request.headers.get("X-Forwarded-For", "").split(",")):
        if not _is_trusted(address) or (before := _parsed(word)) is None:
            break
        address = before
    return str(address if address.version == 4 else ip_network((address, HOUSEHOLD), strict=False))


def _parsed(word: str) -> Address | None:
    try:
        address = ip_address(word.strip())
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_trusted(address: Address) -> bool:
    return any(address in network for network in settings.TRUSTED_PROXIES)
