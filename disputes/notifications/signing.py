"""How the receiver of a webhook knows that a message is ours: HMAC-SHA256 over id.timestamp.body.

The headers follow the Standard Webhooks convention, so that its libraries can verify them.
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
    """Return 32 random bytes in the form in which receivers expect a secret."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signature(secret: str, uid: str, timestamp: int, body: bytes) -> str:
    """Return "v1," and the HMAC in base64."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{uid}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def headers(ring: list[str], uid: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers to send; while a secret is being replaced, the body is signed with both."""
    return {
        "content-type": "application/json",
        "user-agent": "Steroids-Web",
        "webhook-id": uid,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(secret, uid, timestamp, body) for secret in ring),
    }


# --- The secrets of a channel -----------------------------------------------------------------------------
# Stored as JSON, newest first, each with the moment until which it signs (empty: no limit).


def ring_of(kept: str, now: datetime) -> list[str]:
    """Return the secrets that sign at this moment, newest first."""
    return [secret for secret, until in _entries(kept) if not until or datetime.fromisoformat(until) > now]


def exchanged(kept: str, secret: str, now: datetime) -> str:
    """Return the stored secrets with a new one in front; the previous one signs for another day."""
    before = [[old, (now + OVERLAP).isoformat()] for old in ring_of(kept, now)[:1]]
    return json.dumps([[secret, ""], *before])


def _entries(kept: str) -> list[Any]:
    return json.loads(kept) if kept else []
