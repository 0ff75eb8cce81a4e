"""Addresses and secrets at rest, encrypted with a key derived from SECRET_KEY."""

import base64

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from disputes import hooks
from disputes.models import Channel


class Unreadable(Exception):
    """The text was sealed with a key that is no longer known."""


def seal(text: str) -> str:
    """Return the text encrypted, readable only with SECRET_KEY."""
    return _box().encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """Return the decrypted text, even if an earlier key sealed it. Raises Unreadable."""
    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise Unreadable("SECRET_KEY has changed since this address was entered.") from error


def resealed(sealed: str) -> str:
    """Return the text sealed with today's key, so that earlier ones can be dropped. Raises Unreadable."""
    try:
        return _box().rotate(sealed.encode()).decode()
    except InvalidToken as error:
        raise Unreadable("The key with which this was sealed is no longer known.") from error


def reseal() -> int:
    """Seal everything with today's key. Return how many channels and second factors."""
    done = hooks.reseal_above(resealed)
    for channel in Channel.objects.exclude(sealed_address="").iterator(chunk_size=200):
        try:
            address = resealed(channel.sealed_address)
            secret = channel.sealed_secret and resealed(channel.sealed_secret)
        except Unreadable:
            continue  # the channel reports this itself when it is used
        same = {"pk": channel.pk, "sealed_address": channel.sealed_address}
        done += Channel.objects.filter(**same, sealed_secret=channel.sealed_secret).update(
            sealed_address=address, sealed_secret=secret
        )
    return done


def _box() -> MultiFernet:
    return MultiFernet([_key(key) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


def _key(secret: str) -> Fernet:
    """Derive a key for this purpose only, so that other uses of SECRET_KEY reveal nothing about it."""
    derived = HKDF(SHA256(), length=32, salt=None, info=b"steroids channels").derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
