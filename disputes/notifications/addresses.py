"""The URLs that a channel may have. Where they lead is checked again, more strictly, by the courier."""

import ipaddress
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from django.conf import settings

from disputes.models import Channel
from disputes.notifications import post
from disputes.notifications.courier import is_public
from tasks.errors import Invalid, Refused

LENGTH_MAX = 2000
# Only services reached over the network, none that runs a program, writes a file or talks to the desktop.
SCHEMES = frozenset(
    {
        "mailto", "mailtos", "slack", "msteams", "workflow", "workflows", "discord", "tgram", "matrix",
        "matrixs", "mmost", "mmosts", "rocket", "rockets", "zulip", "gchat", "webex", "wxteams", "ntfy",
        "ntfys", "pover", "gotify", "gotifys", "signal", "signals", "opsgenie", "pagerduty", "nctalk",
        "nctalks", "line", "lark", "feishu", "dingtalk", "synology", "synologys", "twilio", "mailgun",
        "sendgrid", "json", "jsons",
    }
)  # fmt: skip
# Parameters that name files on this machine.
FILES = frozenset(
    {"template", "pgp", "pgpkey", "pgppub", "pgpprv", "keyfile", "attach", "attachment", "config"}
)
# Hosts of the URLs that services hand out themselves.
NATIVE = (
    "hooks.slack.com", "discord.com", "discordapp.com", ".webhook.office.com", ".logic.azure.com",
    ".api.powerplatform.com", "chat.googleapis.com", "webexapis.com",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Address:
    """A URL that may be used, and the name of its service."""

    text: str
    service: str


def checked(kind: str, text: str) -> Address:
    """Return the URL if a channel of that kind may have it. Raises Refused("bad_address") if not."""
    text = text.strip()
    if not text or len(text) > LENGTH_MAX or not text.isprintable() or " " in text:
        raise _refused("It is one line without spaces.")
    try:
        url = urlsplit(text)
        host, scheme = (url.hostname or "").lower(), url.scheme.lower()
        url.port  # noqa: B018  (raises ValueError if it is not a port)
    except ValueError:
        raise _refused("It cannot be read.") from None
    if not settings.TELL_PRIVATE and _is_private(host):
        raise _refused("It leads to this machine or to a private network, which this installation forbids.")
    return _webhook(text) if kind == Channel.Kind.WEBHOOK else _people(text, scheme, host)


def _webhook(text: str) -> Address:
    url = urlsplit(text)
    allowed = {"https", "http"} if settings.TELL_PRIVATE else {"https"}
    if url.scheme.lower() not in allowed or not url.hostname:
        raise _refused("A webhook begins with https://.")
    if url.username or url.password or url.fragment:
        raise _refused("A webhook carries no user name and no #: it is signed instead.")
    return Address(text, url.hostname[:40])


def _people(text: str, scheme: str, host: str) -> Address:
    is_native = scheme == "https" and any(
        host == each or (each.startswith(".") and host.endswith(each)) for each in NATIVE
    )
    if not scheme:
        raise _refused("It begins with a service, such as mailto:// or slack://.")
    if scheme not in SCHEMES and not is_native:
        raise _refused(f"{scheme} is none of the services that are allowed here.")
    named = {
        name.lower().lstrip("+-:") for name, _ in parse_qsl(urlsplit(text).query, keep_blank_values=True)
    }
    if found := sorted(named & FILES):
        raise _refused(f"{found[0]} names a file, which no address may.")
    seen = post.look_at(text)
    if not seen.ok:
        raise _refused(seen.error)
    return Address(text, seen.service or scheme)


def _is_private(host: str) -> bool:
    """Whether a numeric host or localhost is private; names are only resolved when something is sent."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return not is_public(host)


def _refused(why: str) -> Refused:
    return Invalid("bad_address", f"This address cannot be used. {why}", "Give another one.")
