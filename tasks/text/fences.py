"""Core: fences of Markdown, and which one a text leaves open, so that it would swallow what follows."""

import re

from tasks.text.regex import regex

FENCE = regex(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)")


def after_fence(line: str, fence: str) -> str:
    """Return the fence that is open after this line: the marks that opened it, or an empty string.

    A fence is closed by at least as many of the same character, with nothing after them.
    """
    match = FENCE.fullmatch(line)
    if match is None:
        return fence
    if not fence:
        return match[1]
    return "" if match[1].startswith(fence) and not match[2].strip() else fence


def open_fence(text: str) -> str:
    """Return the fence that the text opens and never closes; empty if there is none."""
    fence = ""
    for line in re.split(r"\r\n|\n|\r", text):
        fence = after_fence(line, fence)
    return fence


def closed(text: str) -> str:
    """Return the text with its last fence closed, so that it swallows nothing that follows."""
    fence = open_fence(text)
    return f"{text}\n{fence}" if fence else text
