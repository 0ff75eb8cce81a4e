"""Reading a review in Org mode as if it were in Markdown (FND-10); lines keep their numbers."""

import re
from collections.abc import Iterator

from disputes.protocol.reviews.inline_severities import severity_in
from tasks.text.regex import regex

# No Markdown has these: a headline of the second level or deeper, a setting, a block.
IS_ORG = regex(r"^(?:\*{2,6} \S|#\+(?:title|author|date|begin_\w+)\b)", re.IGNORECASE | re.MULTILINE)
HEADLINE = regex(
    r"(?P<stars>\*{1,6}) (?:(?P<word>[A-Z]{3,12}) )?(?:\[#(?P<priority>[A-C])\] )?(?P<title>\S.*?)"
    r"(?:\s+:[\w@:]+:)?\s*$"
)
PRIORITIES = {"A": "HIGH", "B": "MEDIUM", "C": "LOW"}
STATES = {"TODO": "", "NEXT": "", "WAITING": "", "DONE": "✅ "}
BLOCK = regex(r"\s*#\+(?P<edge>begin|end)_(?P<kind>\w+)(?:\s+(?P<language>\w+))?.*", re.IGNORECASE)
SETTING = regex(r"\s*#\+\w+:|\s*:(?:PROPERTIES|LOGBOOK|END):\s*$")
PROPERTY = regex(r"\s*:(?P<name>[A-Za-z_]{2,20}):\s+(?P<value>\S.*)")
CODE = regex(r"(?<![\w=~])(?P<mark>[=~])(?=\S)(?P<said>[^=~\n]{1,200}?)(?<=\S)(?P=mark)(?![\w=~])")
BOLD = regex(r"(?<![\w*])\*(?=\S)(?P<said>[^*\n]{1,200}?)(?<=\S)\*(?![\w*])")
LINK = regex(
    r"\[\[(?:file:)?(?P<path>[^\[\]\n]{1,300}?)(?:::(?P<line>\d{1,7}))?\](?:\[(?P<said>[^\[\]\n]{1,200})\])?\]"
)


def in_markdown(text: str) -> str:
    """Return the text with the marks of Org mode as those of Markdown; any other text as it is."""
    return "\n".join(_written(text.split("\n"))) if IS_ORG.search(text) else text


def _written(lines: list[str]) -> Iterator[str]:
    is_code = False
    for line in lines:
        if block := BLOCK.fullmatch(line):
            if block["kind"].lower() != "quote":
                is_code = block["edge"].lower() == "begin"
                yield f"```{(block['language'] or '') if is_code else ''}"
            else:
                yield ""
        elif is_code:
            yield line
        elif headline := HEADLINE.match(line):
            yield _headline(headline)
        elif SETTING.match(line):
            yield ""
        else:
            told = PROPERTY.sub(r"\g<name>: \g<value>", line)
            yield LINK.sub(_link, BOLD.sub(r"**\g<said>**", CODE.sub(r"`\g<said>`", told)))


def _headline(match: re.Match[str]) -> str:
    """Return a headline as a heading, its keyword or priority as a tag if it states a severity."""
    word, title = match["word"] or "", CODE.sub(r"`\g<said>`", match["title"])
    severe = word if word and severity_in(word) else PRIORITIES.get(match["priority"] or "", "")
    if word and word not in STATES and word != severe:
        title = f"{word} {title}"
    return f"{'#' * len(match['stars'])} {STATES.get(word, '')}{f'[{severe}] ' if severe else ''}{title}"


def _link(match: re.Match[str]) -> str:
    at = f":{match['line']}" if match["line"] else ""
    return " ".join(filter(None, [match["said"], f"`{match['path']}{at}`"]))
