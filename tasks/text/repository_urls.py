"""Core: addresses of repositories, and the passwords that people leave in them."""

import re

from tasks.text.regex import regex

# `user:secret@` after a scheme. A slash in a secret has to be written as %2F, but people forget; what stands
# behind the colon of an address without one is a port.
_WITH_PASSWORD = regex(
    r"(?P<scheme>\b[a-z][a-z0-9+.-]{0,30}://)(?P<user>[^\s/:@'\"]{0,200}):(?!\d{0,5}(?:/|\s|$))[^\s'\"]{0,2000}@",
    re.IGNORECASE,
)
# Services take a token as the user name as well.
_TOKEN = regex(
    r"(?P<scheme>\bhttps?://)(?:(?:gh[a-z]|glpat|github_pat|ATBB|xox[a-z])[_-]?[^\s/:@'\"]{8,400}"
    r"|[A-Za-z0-9_.~%-]{32,400})@",
    re.IGNORECASE,
)
HIDDEN = "***"


def redact(text: str) -> str:
    """The text with every password in an address masked, whatever its scheme. Its cost is linear."""
    text = _WITH_PASSWORD.sub(rf"\g<scheme>\g<user>:{HIDDEN}@", text)
    return _TOKEN.sub(rf"\g<scheme>{HIDDEN}@", text)


def has_password(url: str) -> bool:
    """Whether the address holds what nobody else may read."""
    scheme, is_url, rest = url.partition("://")
    user = rest.partition("/")[0].rpartition("@")[0]
    return redact(url) != url or bool(is_url and ":" in user)
