"""Reading settings from the environment, failing loudly."""

import os
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off", ""})


def env_str(name: str, default: str = "") -> str:
    """The variable as text; NAME_FILE, where set, names a file that holds it."""
    path = os.environ.get(f"{name}_FILE")
    if path:
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE={path} cannot be read: {error.strerror}.") from error
    return os.environ.get(name, default)


def env_bool(name: str, default: bool) -> bool:
    """Yes or no; anything that is neither raises ImproperlyConfigured."""
    word = os.environ.get(name)
    if word is None:
        return default
    if word.lower() in TRUE_WORDS:
        return True
    if word.lower() in FALSE_WORDS:
        return False
    raise ImproperlyConfigured(f"{name}={word!r} is neither yes nor no; use 1 or 0.")


def env_number(name: str, default: float, *, minimum: float = 0) -> float:
    """A number not below `minimum`; anything else raises ImproperlyConfigured."""
    word = os.environ.get(name)
    if word is None:
        return default
    try:
        value = float(word)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}={word!r} is not a number.") from error
    if value < minimum:
        raise ImproperlyConfigured(f"{name}={word} is below its minimum {minimum:g}.")
    return value


def env_int(name: str, default: int, *, minimum: int = 0) -> int:
    """A whole number not below `minimum`; anything else raises ImproperlyConfigured."""
    value = env_number(name, default, minimum=minimum)
    if value != int(value):
        raise ImproperlyConfigured(f"{name}={os.environ[name]!r} is not a whole number.")
    return int(value)


def env_list(name: str, default: list[str]) -> list[str]:
    """Words separated by commas."""
    word = os.environ.get(name)
    return default if word is None else [part.strip() for part in word.split(",") if part.strip()]


def env_networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Addresses and networks separated by commas, such as `10.0.0.0/8,::1`; none where it is not set."""
    try:
        return [ip_network(word) for word in env_list(name, [])]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}.") from error


def redis(url: str) -> str:
    """The address with an end to waiting: a store that hangs must hold up nobody for long."""
    if not url:
        return ""
    return f"{url}{'&' if '?' in url else '?'}socket_connect_timeout=2&socket_timeout=5"


SQLITE_OPTIONS = {
    # FULL: with NORMAL a power cut may lose acknowledged rulings. IMMEDIATE: no upgrade deadlocks.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA mmap_size=134217728; "
        "PRAGMA journal_size_limit=27262976; PRAGMA cache_size=-8000; PRAGMA temp_store=MEMORY;"
    ),
}


GONE = 20  # seconds after which either side of a connection without an answer takes the other for gone
POSTGRES_OPTIONS = {
    # As they ship, a connection whose packets vanish hangs for two hours. A server without these would keep
    # the locks of a host that lost power for as long, and every other host would wait for them.
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "tcp_user_timeout": f"{GONE * 1000}",
    "options": (
        "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=2 "
        f"-c tcp_user_timeout={GONE * 1000}"
    ),
    # What a connection asks for the fifth time it has prepared: most questions took longer to plan than to
    # answer. Empty: never, for a pooler that knows no prepared statements.
    "prepare_threshold": "5",
}


def database(url: str) -> dict[str, object]:
    """Django's DATABASES entry for sqlite:///path or postgres://user:password@host:port/name."""
    parts = urlsplit(url)
    common = {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True, "ATOMIC_REQUESTS": False}
    if parts.scheme == "sqlite":
        path = unquote(parts.path)
        if not path.strip("/"):
            raise ImproperlyConfigured(f"DATABASE_URL={url} names no file; use sqlite:////absolute/path.")
        return {
            "ENGINE": "steroidsweb.sqlite3",
            "NAME": "/" + path.lstrip("/"),
            "OPTIONS": dict(SQLITE_OPTIONS),
            **common,
        }
    if parts.scheme in {"postgres", "postgresql"}:
        asked = parse_qs(parts.query, keep_blank_values=True)  # `?options=`: a pooler may refuse ours
        query = POSTGRES_OPTIONS | {key: values[-1] for key, values in asked.items()}
        repeats = query.pop("prepare_threshold")
        if repeats and not repeats.isdecimal():
            raise ImproperlyConfigured(
                f"DATABASE_URL says prepare_threshold={repeats}; give a number or nothing."
            )
        prepares = {"server_side_binding": True, "prepare_threshold": int(repeats)} if repeats else {}
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.lstrip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": unquote(parts.hostname or query.pop("host", "")),
            "PORT": str(parts.port or ""),
            "OPTIONS": query | prepares,
            **common,
        }
    raise ImproperlyConfigured(
        f"DATABASE_URL has the scheme {parts.scheme!r}; this program knows sqlite and postgres."
    )


LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
ROLES = ("viewer", "triager", "maintainer")  # from the least to the most


@dataclass(frozen=True, slots=True)
class OIDC:
    """The OpenID Connect provider of the team, and whom it brings in."""

    name: str
    issuer: str
    client_id: str
    client_secret: str
    domains: tuple[str, ...]
    claim: str
    groups: tuple[tuple[str, str, str], ...]  # value of the claim, slug of a project or *, role there

    @property
    def apps(self) -> list[dict[str, object]]:
        """In the words of django-allauth's settings."""
        about = {"server_url": self.issuer}
        return [
            {
                "provider_id": "team", "name": self.name, "client_id": self.client_id,
                "secret": self.client_secret, "settings": about,
            }
        ]  # fmt: skip


def single_sign_on() -> OIDC | None:
    """STEROIDS_OIDC_*; None where no issuer is named. Raises ImproperlyConfigured."""
    issuer = env_str("STEROIDS_OIDC_ISSUER").rstrip("/")
    if not issuer:
        return None
    parts = urlsplit(issuer)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise ImproperlyConfigured(f"STEROIDS_OIDC_ISSUER={issuer} does not begin with https://.")
    client_id, secret = env_str("STEROIDS_OIDC_CLIENT_ID"), env_str("STEROIDS_OIDC_CLIENT_SECRET")
    if not client_id or not secret:
        raise ImproperlyConfigured(
            "STEROIDS_OIDC_ISSUER needs STEROIDS_OIDC_CLIENT_ID and STEROIDS_OIDC_CLIENT_SECRET, or "
            "STEROIDS_OIDC_CLIENT_SECRET_FILE."
        )
    domains = tuple(domain.lower().lstrip("@") for domain in env_list("STEROIDS_OIDC_DOMAINS", []))
    groups = tuple(_group(word) for word in env_list("STEROIDS_OIDC_GROUPS", []))
    name, claim = env_str("STEROIDS_OIDC_NAME", "single sign-on"), env_str("STEROIDS_OIDC_CLAIM", "groups")
    return OIDC(name, issuer, client_id, secret, domains, claim, groups)


def _group(word: str) -> tuple[str, str, str]:
    """platform=ledger:maintainer, taken apart."""
    group, _, rest = word.partition("=")
    project, _, role = rest.partition(":")
    if not group or not project or role not in ROLES:
        raise ImproperlyConfigured(
            f"STEROIDS_OIDC_GROUPS: {word!r} is not GROUP=PROJECT:ROLE, with a role of {', '.join(ROLES)}."
        )
    return group.strip(), project.strip(), role
