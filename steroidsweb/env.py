"""Reading settings from environment variables; an invalid value stops the program."""

import os
import pwd
import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from math import isfinite
from pathlib import Path
from shlex import quote
from urllib.parse import parse_qs, unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.exceptions import ImproperlyConfigured

from tasks.configuration import schema
from tasks.text.regex import regex

SEPARATOR = regex(r"(?<!\\),")
SHOWN_MAX = 80  # characters of a wrong value
SECONDS_MAX = 2_000_000  # three weeks: what waits for longer is more than the system can be asked for
INT_MAX = 2**50
TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class Form:
    """What the whole of a word has to look like, and how that is said."""

    pattern: re.Pattern[str]
    says: str
    is_secret: bool = False

    def is_met_by(self, word: str) -> bool:
        return self.pattern.fullmatch(word) is not None


class Forms:
    """The forms that words of variables have."""

    HOST = Form(schema.HOST, schema.HOST_SAYS)
    OWN_NAME = Form(
        regex(r"\*|\.?[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?|\[[0-9a-f:.]{2,45}\]", re.IGNORECASE),
        "a host name without scheme and port, such as steroids.example.org; .example.org for all below it",
    )
    DOMAIN = Form(regex(r"@?[\w-]+(\.[\w-]+)+"), "a domain such as example.org")
    LABEL = Form(
        regex(r"[A-Za-z0-9]([\w.-]{0,118}[A-Za-z0-9])?", re.ASCII),
        "letters, digits, dots, hyphens and underscores, 120 at most, with a letter or digit at both ends",
    )
    PROTOCOL = Form(regex("https?|ssh|git|file"), "https, http, ssh, git or file")
    VARIABLE = Form(regex(r"[A-Za-z_]\w*", re.ASCII), "the name of a variable")
    SECRET = Form(regex(r"[!-~]+"), "a token: letters, digits and signs without blanks", is_secret=True)


def env_str(name: str, default: str = "", form: Form | None = None) -> str:
    """Return the variable as text, the default if it is empty or not set.

    If NAME_FILE is set, it names a file that contains the text. Raises ImproperlyConfigured if the file
    cannot be read, or if the text does not have this form.
    """
    text, path = os.environ.get(name, ""), os.environ.get(f"{name}_FILE")
    if path:
        try:
            text = Path(path).read_text()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise ImproperlyConfigured(f"{name}_FILE={path} cannot be read: {why}.") from error
    text = text.strip() or default
    if form and text and not form.is_met_by(text):
        raise ImproperlyConfigured(
            f"{name}{'' if form.is_secret else f'={_begin(text)}'} is not {form.says}."
        )
    return text


def _begin(word: str) -> str:
    return repr(word if len(word) <= SHOWN_MAX else f"{word[:SHOWN_MAX]}…")


def env_bool(name: str, default: bool) -> bool:
    """Return the variable as a bool. Raises ImproperlyConfigured if it is neither yes nor no."""
    word = env_str(name)
    if not word:
        return default
    if word.lower() in TRUE_WORDS:
        return True
    if word.lower() in FALSE_WORDS:
        return False
    raise ImproperlyConfigured(f"{name}={word!r} is neither yes nor no; use 1 or 0.")


def env_number(name: str, default: float, *, minimum: float = 0, maximum: float = SECONDS_MAX) -> float:
    """Return the variable as a number. Raises ImproperlyConfigured if it is not one or is out of bounds."""
    word = env_str(name)
    if not word:
        return default
    try:
        value = float(word)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}={word!r} is not a number.") from error
    if not isfinite(value):
        raise ImproperlyConfigured(f"{name}={word!r} is no number that anything can be set to.")
    if value < minimum:
        raise ImproperlyConfigured(f"{name}={word} is below its minimum {minimum:.15g}.")
    if value > maximum:
        raise ImproperlyConfigured(f"{name}={word} is above its maximum {maximum:.15g}.")
    return value


def env_int(name: str, default: int, *, minimum: int = 0, maximum: int = INT_MAX) -> int:
    """Return the variable as an int. Raises ImproperlyConfigured if it is not whole or out of bounds."""
    value = env_number(name, default, minimum=minimum, maximum=maximum)
    if value != int(value):
        raise ImproperlyConfigured(f"{name}={env_str(name)!r} is not a whole number.")
    return int(value)


def env_list(name: str, default: list[str], form: Form | None = None) -> list[str]:
    r"""Return the words of the variable, which are separated by commas; the default if it has none.

    A comma that belongs to a word is written `\,`. Raises ImproperlyConfigured if a word does not have this
    form.
    """
    parts = (part.replace("\\,", ",").strip() for part in SEPARATOR.split(env_str(name)))
    words = [part for part in parts if part]
    if form and (wrong := next((word for word in words if not form.is_met_by(word)), "")):
        raise ImproperlyConfigured(f"{name} holds {_begin(wrong)}; each of its words is {form.says}.")
    return words or default


def env_choice(name: str, default: str, choices: Sequence[str]) -> str:
    """Return the variable, which is one of these words. Raises ImproperlyConfigured."""
    word = env_str(name, default)
    if word not in choices:
        raise ImproperlyConfigured(f"{name}={word} is none of {', '.join(choices)}.")
    return word


def env_address(name: str) -> str:
    """Return the variable, an address of the web, without a slash at its end; empty if it is not set."""
    return next(iter(env_addresses(name)), "")


def env_addresses(name: str) -> list[str]:
    """Return the addresses of the variable, which are separated by commas. Raises ImproperlyConfigured."""
    words = [word.strip().rstrip("/") for word in env_str(name).split(",") if word.strip()]
    for word in words:
        if not word.startswith(("https://", "http://")):
            raise ImproperlyConfigured(f"{name}={word} is no address; it begins with https:// or http://.")
    return words


def env_rate(name: str, default: str) -> str:
    """Return the variable, so many in a unit of time, such as 60/min. Raises ImproperlyConfigured."""
    word = env_str(name, default)
    count, _, unit = word.partition("/")
    if not count.isdecimal() or unit[:1] not in {"s", "m", "h", "d"}:
        raise ImproperlyConfigured(f"{name}={word} is no rate such as 60/min, 1000/hour or 5/sec.")
    return word


def env_time_zone(name: str) -> str:
    """Return the variable, the name of a time zone; UTC if it is not set. Raises ImproperlyConfigured."""
    word = env_str(name, "UTC")
    try:
        ZoneInfo(word)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ImproperlyConfigured(f"{name}={word} is no time zone such as Europe/Berlin.") from error
    return word


def env_networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Return the addresses and networks of the variable, such as `10.0.0.0/8,::1`; empty if it is not set."""
    try:
        return [ip_network(word) for word in env_list(name, [])]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}.") from error


def env_paths(name: str) -> list[str]:
    """Return the paths of the variable, all of which are there. Raises ImproperlyConfigured."""
    paths = env_list(name, [])
    for path in paths:
        if not path.startswith("/"):
            raise ImproperlyConfigured(
                f"{name} holds {_begin(path)}; each of its words is the absolute path of a folder or file."
            )
        if not os.path.exists(path):
            raise ImproperlyConfigured(
                f"{name} holds {_begin(path)}, where this user can see nothing. Make it or mount it, or take "
                "it out of the variable."
            )
    return paths


def redis(url: str) -> str:
    """Return the URL with time-outs, so that a store that hangs does not hold anybody up for long."""
    if not url:
        return ""
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise ImproperlyConfigured("REDIS_URL begins with redis://, rediss:// or unix://.")
    return f"{url}{'&' if '?' in url else '?'}socket_connect_timeout=2&socket_timeout=5"


def data_folder(path: Path) -> Path:
    """Return the folder, made if it is missing. Raises ImproperlyConfigured if it is another user's.

    That user could not change what root writes into it, and git trusts only the folders of its own user.
    """
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        owner = path.stat().st_uid
    except OSError as error:
        raise ImproperlyConfigured(f"The data folder {path} cannot be used: {error.strerror}.") from error
    if owner != os.geteuid():
        name = user_name(owner)
        raise ImproperlyConfigured(
            f"The data folder {path} belongs to the user {name}. "
            f"Run this as that user (sudo -u {quote(name)} ...), or set STEROIDS_HOME."
        )
    return path


def user_name(number: int) -> str:
    """Return the name of a user of this machine, or else #NUMBER, as sudo takes it, too."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"#{number}"


SQLITE_OPTIONS = {
    # FULL, because with NORMAL a power cut may lose acknowledged rulings. IMMEDIATE avoids upgrade deadlocks.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA mmap_size=134217728; "
        "PRAGMA journal_size_limit=27262976; PRAGMA cache_size=-8000; PRAGMA temp_store=MEMORY;"
    ),
}


SQLITE_BEGIN = b"SQLite format 3\0"
CONNECTED = 600  # seconds for which a connection is kept; a new one has to prepare everything again
GONE = 20  # seconds without an answer after which either side of a connection gives up the other
POSTGRES_OPTIONS = {
    # By default, a connection whose packets vanish hangs for two hours. A server without these would keep
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
    # The fifth time that a connection sends a query, it prepares it: most took longer to plan than to
    # run. Empty: never, for a pooler that does not support prepared statements.
    "prepare_threshold": "5",
}


MISWRITTEN = (
    "DATABASE_URL has to read postgres://user:password@host:port/name. "
    "In user and password, write %23 for #, %2F for /, %3F for ?, %40 for @ and %25 for %."
)


def database(url: str) -> dict[str, object]:
    """Return Django's DATABASES entry for sqlite:///path or postgres://user:password@host:port/name.

    Raises ImproperlyConfigured.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ImproperlyConfigured(MISWRITTEN) from error
    common = {"CONN_MAX_AGE": CONNECTED, "CONN_HEALTH_CHECKS": True, "ATOMIC_REQUESTS": False}
    if parts.scheme == "sqlite":
        path = unquote(parts.path)
        if not path.strip("/"):
            raise ImproperlyConfigured(f"DATABASE_URL={url} names no file; use sqlite:////absolute/path.")
        return {
            "ENGINE": "steroidsweb.sqlite3",
            "NAME": _sqlite_file(Path("/" + path.lstrip("/"))),
            "OPTIONS": dict(SQLITE_OPTIONS),
            **common,
        }
    if parts.scheme in {"postgres", "postgresql"}:
        name = unquote(parts.path.lstrip("/"))
        if not name or parts.fragment:
            raise ImproperlyConfigured(MISWRITTEN)
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
            "NAME": name,
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": unquote(parts.hostname or query.pop("host", "")),
            "PORT": str(port or ""),
            "OPTIONS": query | prepares,
            **common,
        }
    raise ImproperlyConfigured(
        f"DATABASE_URL has the scheme {parts.scheme!r}; this program knows sqlite and postgres."
    )


def _sqlite_file(path: Path) -> str:
    """Return the path of a database, or of none that is to be made. Raises ImproperlyConfigured."""
    why = ""
    if path.is_dir():
        why = "is a folder; name a file in it"
    elif not path.parent.is_dir():
        why = "lies in a folder that is not there; make the folder first"
    elif path.is_file() and os.access(path, os.R_OK):
        with path.open("rb") as file:
            begin = file.read(len(SQLITE_BEGIN))
        if begin not in {b"", SQLITE_BEGIN}:
            why = "is no database of SQLite; move it away, or name another file"
    if why:
        raise ImproperlyConfigured(f"DATABASE_URL: {path} {why}.")
    return str(path)


LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
OWN_NAMES = {*LOOPBACK, "[::1]"}
SLUG = regex(r"[\w-]+", re.ASCII)
ROLES = ("viewer", "triager", "maintainer")  # from the least to the most


@dataclass(frozen=True, slots=True)
class OIDC:
    """The team's OpenID Connect provider, and which of its users may come in."""

    name: str
    issuer: str
    client_id: str
    client_secret: str
    domains: tuple[str, ...]
    claim: str
    groups: tuple[tuple[str, str, str], ...]  # value of the claim, slug of a project or *, role there

    @property
    def apps(self) -> list[dict[str, object]]:
        """The provider in the format of django-allauth's settings."""
        about = {"server_url": self.issuer}
        return [
            {
                "provider_id": "team", "name": self.name, "client_id": self.client_id,
                "secret": self.client_secret, "settings": about,
            }
        ]  # fmt: skip


def is_open_on_the_way(address: str) -> bool:
    """Tell whether others on the network can read and change what is said with this address."""
    parts = urlsplit(address)
    return parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK)


def is_behind_proxy(names: list[str], *others: Sequence[object]) -> bool:
    """Whether the names of this installation, or what else is said of a proxy, show that one is before it."""
    return any(others) or not {*names} <= OWN_NAMES


def single_sign_on() -> OIDC | None:
    """Return the provider in STEROIDS_OIDC_*; None if nothing of it is set. Raises ImproperlyConfigured."""
    issuer = env_str("STEROIDS_OIDC_ISSUER").removesuffix("/.well-known/openid-configuration").rstrip("/")
    if not issuer:
        if others := [name for name in os.environ if name.startswith("STEROIDS_OIDC_") and os.environ[name]]:
            raise ImproperlyConfigured(f"{min(others)} does nothing without STEROIDS_OIDC_ISSUER.")
        return None
    if is_open_on_the_way(issuer):
        raise ImproperlyConfigured(f"STEROIDS_OIDC_ISSUER={issuer} does not begin with https://.")
    client_id, secret = env_str("STEROIDS_OIDC_CLIENT_ID"), env_str("STEROIDS_OIDC_CLIENT_SECRET")
    if not client_id or not secret:
        raise ImproperlyConfigured(
            "STEROIDS_OIDC_ISSUER needs STEROIDS_OIDC_CLIENT_ID and STEROIDS_OIDC_CLIENT_SECRET, or "
            "STEROIDS_OIDC_CLIENT_SECRET_FILE."
        )
    domains = tuple(
        domain.lower().lstrip("@") for domain in env_list("STEROIDS_OIDC_DOMAINS", [], Forms.DOMAIN)
    )
    groups = tuple(_group(word) for word in env_list("STEROIDS_OIDC_GROUPS", []))
    name, claim = env_str("STEROIDS_OIDC_NAME", "single sign-on"), env_str("STEROIDS_OIDC_CLAIM", "groups")
    return OIDC(name, issuer, client_id, secret, domains, claim, groups)


def _group(word: str) -> tuple[str, str, str]:
    """Parse an entry such as platform=ledger:maintainer; the group may have a `=`, too.

    Raises ImproperlyConfigured.
    """
    group, _, rest = word.rpartition("=")
    project, _, role = rest.partition(":")
    group, project, role = group.strip(), project.strip(), role.strip()
    if not group or not (project == "*" or SLUG.fullmatch(project)) or role not in ROLES:
        raise ImproperlyConfigured(
            f"STEROIDS_OIDC_GROUPS: {word!r} is not GROUP=PROJECT:ROLE, with the short name of a project, or "
            f"* for all, and a role of {', '.join(ROLES)}. A comma of a group's own is written \\,."
        )
    return group, project, role
