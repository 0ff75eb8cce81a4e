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
HIDDEN = "***"


def redact(text: str) -> str:
    """Return the text with every password in a URL masked, whatever its scheme, in linear time."""
    text = _WITH_PASSWORD.sub(rf"\g<scheme>\g<user>:{HIDDEN}@", text)
    return _TOKEN.sub(rf"\g<scheme>{HIDDEN}@", text)


def is_found_anywhere(url: str) -> bool:
    """Whether the address means the same in every folder: a URL, HOST:PATH or an absolute path."""
    return url.startswith("/") or ":" in url.partition("/")[0]


def has_password(url: str) -> bool:
    """Whether the URL contains a secret, such as a password or a token."""
    scheme, is_url, rest = url.partition("://")
    user = rest.partition("/")[0].rpartition("@")[0]
    return redact(url) != url or bool(is_url and ":" in user)
