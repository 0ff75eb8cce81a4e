"""Core: characters that nobody sees, and that move, hide or reorder what stands around them.

Agents, repositories and people may write any of them. In prose they are left out. In code and in paths they
are spelled out, because to leave them out there would hide what they do.
"""

from tasks.text.regex import regex

# Controls but for tab and newline, marks of the direction of writing, lone surrogates, and what Unicode calls
# ignorable by default: blanks that are letters, further variation selectors, and the invisible "tag" letters.
UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# What a joiner or one of the two common selectors belongs behind: a letter of Arabic to Burmese, or a symbol.
_JOINED = (
    "\xa9\xae\u0600-\u109f\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_LEFT_OUT = regex(f"[{UNSEEN}]")
_SPELLED_OUT = regex(
    rf"[{UNSEEN}]|(?<![{_JOINED}\ufe0f])[\u200c\u200d]|(?<![{_JOINED}])[\ufe0e\ufe0f](?!\u20e3)"
)


def plain(text: str) -> str:
    """Return the text without characters that move the cursor, change the reading direction or are unseen."""
    return _LEFT_OUT.sub("", text)


def visible(text: str) -> str:
    """Return code or a path with such characters spelled out, and with joiners that join nothing."""
    return _SPELLED_OUT.sub(lambda found: f"\u27e8U+{ord(found[0]):04X}\u27e9", text)
