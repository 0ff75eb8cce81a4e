"""Text by agents, made safe to show. Pure."""

from tasks.text.regex import regex

# Control characters, and characters that reorder or hide the text around them.
_UNSEEN = regex("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def plain(text: str) -> str:
    """Return the text without characters that move the cursor or change the reading direction."""
    return _UNSEEN.sub("", text)


def visible(text: str) -> str:
    """Return code with such characters spelled out, because hiding them in a diff would hide what they do."""
    return _UNSEEN.sub(lambda found: f"\u27e8U+{ord(found[0]):04X}\u27e9", text)
