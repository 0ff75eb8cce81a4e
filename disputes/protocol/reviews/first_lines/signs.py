"""Signs before the words of a line: coloured circles, ticks and crosses (FND-1)."""

from disputes.protocol.reviews.headings import FIRST_SIGN

# Coloured signs before a title; a green one may be praise and does not count.
CIRCLES = {"🔴": "critical", "🟠": "high", "🟡": "medium", "⚪": "low", "🔵": "low"}
# The signs that reviewers use; a tick is praise.
TICKS, CROSSES = "✅✓✔☑", "❌✗✘☒"


def without_signs(text: str) -> tuple[str, str]:
    """Return a text without the signs before it (🔴, ⚠️, ✅), and "x" or " " for a tick or cross in them."""
    if text[:1] < FIRST_SIGN:
        return text, ""
    found = ""
    for place, letter in enumerate(text):
        if letter in TICKS:
            found = "x"
        elif letter in CROSSES:
            found = " "
        elif letter != " " and (letter < FIRST_SIGN or letter.isalpha() or letter.isdecimal()):
            return text[place:], found
    return "", found
