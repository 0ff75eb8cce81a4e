"""Addresses and secrets at rest: sealed with a key that comes from SECRET_KEY."""

import base64

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from disputes.models import Channel


class Unreadable(Exception):
    """Sealed with a key that is no longer known."""


def seal(text: str) -> str:
    """The text, readable only with SECRET_KEY."""
    return _box().encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """The text again; also where an earlier key sealed it. Raises Unreadable."""
    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise Unreadable("SECRET_KEY has changed since this address was entered.") from error


def reseal() -> int:
    """Seal everything with today's key; afterwards no earlier one is needed. Returns how many channels."""
    box, done = _box(), 0
    for channel in Channel.objects.exclude(sealed_address="").iterator(chunk_size=200):
        try:
            address = box.rotate(channel.sealed_address.encode()).decode()
            secret = channel.sealed_secret and box.rotate(channel.sealed_secret.encode()).decode()
        except InvalidToken:
            continue  # the channel says so itself when it is to be used
        same = {"pk": channel.pk, "sealed_address": channel.sealed_address}
        done += Channel.objects.filter(**same, sealed_secret=channel.sealed_secret).update(
            sealed_address=address, sealed_secret=secret
        )
    return done


def _box() -> MultiFernet:
    return MultiFernet([_key(key) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


def _key(secret: str) -> Fernet:
    """A key of its own for this purpose, so that nothing else made with SECRET_KEY tells anything of it."""
    derived = HKDF(SHA256(), length=32, salt=None, info=b"steroids channels").derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
