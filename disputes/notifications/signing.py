"""How a webhook's reader knows that a message is ours: HMAC-SHA256 over id.timestamp.body.

The headers are those of the Standard Webhooks convention, so its ready libraries verify them.
"""

import base64
import hashlib
import hmac
import json
import secrets
from datetime import datetime, timedelta
from typing import Any

PREFIX = "whsec_"
OVERLAP = timedelta(hours=24)


def new_secret() -> str:
    """Thirty-two random bytes, as receivers expect to be given them."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signature(secret: str, uid: str, timestamp: int, body: bytes) -> str:
    """v1, and the HMAC in base64."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{uid}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def headers(ring: list[str], uid: str, timestamp: int, body: bytes) -> dict[str, str]:
    """What is sent beside the body; while a secret is exchanged, it is signed with both."""
    return {
        "content-type": "application/json",
        "user-agent": "Steroids-Web",
        "webhook-id": uid,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(secret, uid, timestamp, body) for secret in ring),
    }


# --- The secrets of a channel -----------------------------------------------------------------------------
# Kept as JSON: the newest first, each with the moment until which it signs (empty: for good).


def ring_of(kept: str, now: datetime) -> list[str]:
    """The secrets that sign at this moment."""
    return [secret for secret, until in _entries(kept) if not until or datetime.fromisoformat(until) > now]


def exchanged(kept: str, secret: str, now: datetime) -> str:
    """A new secret in front; the one before it signs for a day longer."""
    before = [[old, (now + OVERLAP).isoformat()] for old in ring_of(kept, now)[:1]]
    return json.dumps([[secret, ""], *before])


def _entries(kept: str) -> list[Any]:
    return json.loads(kept) if kept else []
