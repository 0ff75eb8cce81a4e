"""Markdown by people and agents as HTML without active content. Pure."""

from functools import lru_cache

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt

from tasks.text.unseen import plain

LENGTH_MAX = 20_000
LINE_MAX, BRACKETS_MAX = 2_000, 300  # text that exceeds these is not prose, and is shown as it is

TAGS = {
    "p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a",
    "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
ATTRIBUTES = {"a": {"href"}, "ol": {"start"}}


@lru_cache(maxsize=1)
def _reader() -> MarkdownIt:
    """Return the parser. HTML stays text, and an image becomes a link, because it would ask another host."""
    reader = MarkdownIt("commonmark", {"html": False, "breaks": True})
    return reader.enable(["table", "strikethrough"]).disable("image")


@lru_cache(maxsize=512)
def as_html(text: str) -> SafeString:
    """Return the text as HTML: harmless tags only, headings below the page's, links without a referrer."""
    shown = plain(text)
    is_long = len(shown) > LENGTH_MAX or any(len(line) > LINE_MAX for line in shown.split("\n"))
    if is_long or shown.count("[") > BRACKETS_MAX:
        return SafeString(f"<p>{escape(shown[:LENGTH_MAX])}</p>")
    tokens = _reader().parse(shown)
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(int(token.tag[1]) + 3, 6)}"
    html = _reader().renderer.render(tokens, _reader().options, {})
    return SafeString(
        nh3.clean(
            html, tags=TAGS, attributes=ATTRIBUTES, url_schemes={"http", "https", "mailto"},
            link_rel="nofollow noopener noreferrer",
        )
    )  # fmt: skip
