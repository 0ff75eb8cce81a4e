"""Core: URLs of repositories, and the passwords that people leave in them."""

import re

from tasks.text.regex import regex

# `user:secret@` after a scheme. A slash in a secret should be written as %2F, but people forget. What comes
# after the colon of a URL without a secret is a port.
_WITH_PASSWORD = regex(
    r"(?P<scheme>\b[a-z][a-z0-9+.-]{0,30}://)(?P<user>[^\s/:@'\"]{0,200}):(?!\d{0,5}(?:/|\s|$))[^\s'\"]{0,2000}@",
    re.IGNORECASE,
)
# Services also accept a token in place of the user name.
_TOKEN = regex(
    r"(?P<scheme>\bhttps?://)(?:(?:gh[a-z]|glpat|github_pat|ATBB|xox[a-z])[_-]?[^\s/:@'\"]{8,400}"
    r"|[A-Za-z0-9_.~%-]{32,400})@",
    re.IGNORECASE,
)
# Others take it in a query or in the path, where only its well-known beginning tells it from a name.
_URL = regex(r"\b[a-z][a-z0-9+.-]{0,30}://[^\s'\"]{1,4000}", re.IGNORECASE)
_QUERY = regex(r"(?<=[?#]).+", re.DOTALL)
_KNOWN_TOKEN = regex(
    r"\b(?:(?:gh[a-z]_|hf_|ATBB)[A-Za-z0-9]{16,400}|(?:glpat-|github_pat_|xox[a-z]-)[\w.=-]{16,400})"
)
_WITHOUT_SCHEME = regex(r"[^\s/:@]{1,200}:[^\s/@]{1,2000}@[^\s/:@]+[/:]")
HIDDEN = "***"


def redact(text: str) -> str:
    """Return the text with every password or token in a URL masked, whatever its scheme, in linear time."""
    text = _WITH_PASSWORD.sub(rf"\g<scheme>\g<user>:{HIDDEN}@", text)
    text = _TOKEN.sub(rf"\g<scheme>{HIDDEN}@", text)
    text = _URL.sub(lambda url: _QUERY.sub(HIDDEN, url[0], count=1), text)
    return _KNOWN_TOKEN.sub(HIDDEN, text)


def is_found_anywhere(url: str) -> bool:
    """Whether the address means the same in every folder: a URL, HOST:PATH or an absolute path."""
    return url.startswith("/") or ":" in url.partition("/")[0]


def host_of(url: str) -> str:
    """Return the host of a URL, with its port; empty for a path of this machine."""
    scheme, is_url, rest = url.partition("://")
    if is_url:
        where = "" if scheme.lower() == "file" else rest.partition("/")[0]
    else:
        where = "" if url.startswith("/") or ":" not in url.partition("/")[0] else url.partition(":")[0]
    return where.rpartition("@")[2].lower()


def has_password(url: str) -> bool:
    """Whether the address contains a secret, such as a password, a token or a query."""
    scheme, is_url, rest = url.partition("://")
    user = rest.partition("/")[0].rpartition("@")[0]
    return redact(url) != url or bool(is_url and ":" in user) or _WITHOUT_SCHEME.match(url) is not None
