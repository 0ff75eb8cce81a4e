"""Three hundred texts that want more than to be read, and a way to put them into every text column there is.

A text that runs sets `window.hostile` or opens a dialog; a text that becomes markup leaves an element of the
class `hostile`, or one of the tags that no page of ours has.
"""
# ruff: noqa: E501

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle

from django.apps import apps
from django.db import connection, models

RUN = "window.hostile=1"
SHORT = 20  # a column below this length holds a code word of ours, not a text

SCRIPTS = [
    f"<script>{RUN}</script>", f"<SCRIPT>{RUN}</SCRIPT>", f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    f"<script src='data:text/javascript,{RUN}'></script>", "<script src=//example.org/hostile.js></script>",
    f"<script type=module>{RUN}</script>", f"</script><script>{RUN}</script>", f"<script\n>{RUN}</script\n>",
    f"<script/x>{RUN}</script>", f"<!--><script>{RUN}</script-->", f"<![CDATA[<script>{RUN}</script>]]>",
    f"</title><script>{RUN}</script>", f"</textarea><script>{RUN}</script>", f"</style><script>{RUN}</script>",
    f"</pre><script>{RUN}</script>", f"</noscript><script>{RUN}</script>", f"</template><script>{RUN}</script>",
    f"--><script>{RUN}</script><!--", f"*/</script><script>{RUN}</script>/*", f"<svg><script>{RUN}</script></svg>",
    f"<math><mtext><script>{RUN}</script></mtext></math>", f"<plaintext class=hostile><script>{RUN}</script>",
    "<script>alert(1)</script>", f"<script>{RUN}//", f"<<script>{RUN}//<</script>",
]  # fmt: skip
HANDLERS = [
    f"<{tag} class=hostile {event}={RUN}>"
    for tag, event in (
        ("img src=x", "onerror"), ("img src=data:,", "onload"), ("svg", "onload"), ("body", "onload"),
        ("input autofocus", "onfocus"), ("select autofocus", "onfocus"), ("textarea autofocus", "onfocus"),
        ("details open", "ontoggle"), ("video src=x", "onerror"), ("audio src=x", "onerror"),
        ("video><source", "onerror"), ("marquee", "onstart"), ("iframe", "onload"), ("object data=x", "onerror"),
        ("embed src=x", "onerror"), ("div contenteditable autofocus tabindex=1", "onfocus"), ("a href=#", "onclick"),
        ("button popovertarget=x", "onclick"), ("p", "onmouseover"), ("style", "onload"), ("link rel=stylesheet href=x", "onerror"),
        ("meta http-equiv=refresh content=0", "onload"), ("form", "onsubmit"), ("dialog open", "onclose"),
        ("div style=animation-name:x", "onanimationstart"), ("svg><animate attributeName=x", "onbegin"),
        ("svg><set attributeName=x", "onend"), ("frameset", "onload"), ("table background=x", "onload"), ("keygen autofocus", "onfocus"),
    )
]  # fmt: skip
BREAKOUTS = [
    f"\" onfocus={RUN} autofocus class=hostile x=\"", f"' onfocus={RUN} autofocus class=hostile x='",
    f"\"><img class=hostile src=x onerror={RUN}>", f"'><img class=hostile src=x onerror={RUN}>",
    f"`><img class=hostile src=x onerror={RUN}>", f"x onmouseover={RUN} ", f"\\\"><script>{RUN}</script>",
    f"\"/><svg class=hostile onload={RUN}>", "\" style=\"position:fixed;inset:0\" class=\"hostile", "\" hidden class=\"hostile",
    f"\" x-data x-init=\"{RUN}\" class=\"hostile", f"' x-data x-init='{RUN}' class='hostile",
    "\" hx-get=\"/healthz\" hx-trigger=\"load\" class=\"hostile", f"\" hx-on:load=\"{RUN}\" class=\"hostile",
    "\" formaction=\"https://example.org/\" class=\"hostile", "\" href=\"https://example.org/\" class=\"hostile",
    f"'}}; {RUN}; ({{x: '", f"'; {RUN}; '", f"\"; {RUN}; \"", f"'+({RUN})+'", f"\\'; {RUN}; //", f"'-{RUN}-'",
    f"${{{RUN}}}", f"`${{{RUN}}}`", f"' || ({RUN}) || '", f"\\u0027;{RUN};\\u0027", f"&#39;;{RUN};&#39;",
    f"&quot; onfocus={RUN} autofocus x=&quot;", f"%27;{RUN};%27", f"\r\n\r\n<script>{RUN}</script>",
]  # fmt: skip
MARKUP = [
    "<style class=hostile>*{display:none!important}</style>", "<link class=hostile rel=stylesheet href=//example.org/x.css>",
    "<base class=hostile href=//example.org/>", "<meta class=hostile http-equiv=refresh content='0;url=//example.org/'>",
    "<iframe class=hostile srcdoc='<script>parent.hostile=1</script>'></iframe>", "<iframe class=hostile src=//example.org/></iframe>",
    "<form class=hostile action=//example.org/><button>Rule</button></form>", "<a class=hostile href=//example.org/>Approve</a>",
    "<img class=hostile src=//example.org/beacon.png>", "<object class=hostile data=//example.org/x.swf></object>",
    "<embed class=hostile src=//example.org/x>", "<svg class=hostile><use href='data:image/svg+xml,<svg/>#x'/></svg>",
    "<svg class=hostile><foreignObject><iframe src=//example.org/></foreignObject></svg>", "<math class=hostile><mi xlink:href=//example.org/>x</mi></math>",
    "<noscript><p title='</noscript><img class=hostile src=x>'>", "<template class=hostile><p>x</template>", "<portal class=hostile src=//example.org/></portal>",
    "<input class=hostile name=option value=uphold_coder>", "<input class=hostile type=hidden name=csrfmiddlewaretoken value=x>",
    "</form><form class=hostile method=post action=/queue/decisions/1/undo/>", "</div></main></body></html>", "</td></tr></table>", "</option></select>", "</li></ul></nav>",
    "<dialog class=hostile open>Signed out. <input type=password></dialog>", "<div class=hostile style='position:fixed;inset:0;z-index:9999'>",
    "<marquee class=hostile>x</marquee>", "<blink class=hostile>x</blink>", "<font class=hostile size=99>x</font>", "<h1 class=hostile>x",
    "<table class=hostile><tr><td>x", "<b class=hostile><i><u>", "<!-- hostile", "<!DOCTYPE html [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>&x;",
    "<?xml version='1.0'?><?php echo 1 ?>", "<%= hostile %>", "<x-hostile class=hostile></x-hostile>", "<hostile>x</hostile>", "<p class=hostile", "< script >",
    "<ol class=hostile start=99999>", "<video class=hostile poster=//example.org/x.png>", "<button class=hostile accesskey=a>x</button>", "<label class=hostile for=option-A>x</label>", "<slot class=hostile name=x>",
]  # fmt: skip
ADDRESSES = [
    f"javascript:{RUN}", f"JaVaScRiPt:{RUN}", f"java\tscript:{RUN}", f"java\nscript:{RUN}", f"\x01javascript:{RUN}", f" javascript:{RUN}",
    f"javascript&colon;{RUN}", f"&#106;avascript:{RUN}", f"javascript://example.org/%0a{RUN}", f"vbscript:{RUN}",
    f"data:text/html,<script>opener.{RUN}</script>", "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==", "data:image/svg+xml,<svg onload=alert(1)>",
    "//example.org/hostile", "https://example.org/hostile", "http://127.0.0.1:6379/", "file:///etc/passwd", "blob:https://example.org/x", "ftp://example.org/",
    "mailto:x@example.org?body=hostile", "https://ledger.example@example.org/", "https://еxample.org/", "../../../../etc/passwd", "..\\..\\windows\\system.ini", "/queue/decisions/1/undo/",
]  # fmt: skip
MARKDOWN = [
    f"[click](javascript:{RUN})", f"[click](JAVASCRIPT:{RUN})", f"[click](data:text/html,<script>{RUN}</script>)", f"![x](x\" onerror=\"{RUN})", "![beacon](https://example.org/beacon.png)",
    f"<javascript:{RUN}>", f"[x]: javascript:{RUN}\n[x]", f"[a](<javascript:{RUN}>)", f"[a](x '\" onmouseover={RUN} x=\"')", f"```html\n<script>{RUN}</script>\n```", f"```\"><script>{RUN}</script>\nx\n```", f"`<img class=hostile onerror={RUN} src=x>`",
    "# " * 60, "> " * 300 + "deep", "- " * 300 + "deep", "*" * 500, "[" * 500, "![" * 300, "`" * 501, "| a | b |\n|---|---|\n" + "| x | y |\n" * 200,
    "---\ntitle: hostile\n---", "<details class=hostile open><summary>x</summary></details>", "## Decision\n\nA. The reviewer is right.\n\n**APPROVED**", "## [ISSUE-R1-001]\nSeverity: LOW\n", "<!-- t:1 --> - [x] done",
]  # fmt: skip
TEMPLATES = [
    "{{ 7|add:7 }}", "{% include 'admin/index.html' %}", "{% debug %}", "{{ settings.SECRET_KEY }}", "{{ request.user.password }}", "{{7*7}}", "{{constructor.constructor('window.hostile=1')()}}", "${7*7}", "#{7*7}", "<%= 7*7 %>",
    "{% load steroids %}{% endblock %}", "{# hostile #}", "%(name)s %s %d %n", "{0} {name} {}", "{0.__class__.__mro__}", "$(touch hostile)", "`touch hostile`", "; rm -rf / ;", "'; DROP TABLE tasks_task; --", "\" OR 1=1 --",
    "=1+1", "=cmd|'/c calc'!A1", "+1+1", "-1+1", "@SUM(1+1)", "=HYPERLINK(\"https://example.org/\",\"Approve\")", "\t=1+1", "\r=1+1", "=IMPORTXML(\"https://example.org/\",\"//a\")", "\",=1+1,\"",
]  # fmt: skip
CONTROLS = [
    "\x1b[2J\x1b[31mhostile\x1b[0m", "\x1b]0;hostile\x07", "\x1b]8;;https://example.org/\x07Approve\x1b]8;;\x07", "\x1b[1A\x1b[2K", "\x9b31m", "a\x08\x08b", "a\rb", "a\x0bb\x0cc", "\x07" * 50, "\x7f" * 50,
    "".join(map(chr, range(1, 32))), "".join(map(chr, range(127, 160))), "a\u2028b\u2029c", "a\x85b", "\ufeffa", "a\ufffeb\uffffc", "a\ufffdb", "\udb40\udc41".encode("utf-16", "surrogatepass").decode("utf-16"), "\n" * 400, "\t" * 400,
]  # fmt: skip
BIDI = [
    "\u202ehostile\u202c", "approve\u202e eteled", "\u202d" * 50 + "x", "\u2067hostile\u2066x\u2069", "user\u202etxt.exe", "if (a\u2066 /* \u202e } \u2069) {", "\u200f\u200e" * 100, "\u061cx", "\u202a\u202b\u202c" * 80, "مرحبا <b class=hostile>", "שלום \" x='", "\u2068" * 200 + "open",
]  # fmt: skip
INVISIBLE = [
    "a\u200bb\u200cc\u200dd", "\u200b" * 500, "\u2060" * 500, "\ufe0f" * 100, "\u3164", "\u00ad" * 300, "\u180e\u2800", "pass\u200bword", "\u034f" * 200, "\U000e0041\U000e0042", "\u115f\u1160", "\u00a0" * 500,
]  # fmt: skip
SHAPES = [
    "аррrоvе", "ΑΡΡROVE", "ａｐｐｒｏｖｅ", "𝐚𝐩𝐩𝐫𝐨𝐯𝐞", "Ⓐⓟⓟⓡⓞⓥⓔ", "lеdger‐214", "ledger－214", "＜script＞window.hostile=1＜/script＞", "ʺ onfocus=", "ﷺ" * 60, "𒐫" * 60, "꧅" * 60,
    "Z̸͎͂a̷̛l̵g̶o" + "\u0300\u0316\u0489" * 300, "e" + "\u0301" * 1000, "👩‍👩‍👧‍👦" * 200, "🏴󠁧󠁢󠁥󠁮󠁧󠁿" * 60, "👍🏿" * 200, "🇩🇪" * 200, "\U0001f3f3\ufe0f\u200d\U0001f308" * 80, "ⅰ" * 200, "ﬃ" * 200, "İıſK", "ß" * 200, "ǅ" * 200,
]  # fmt: skip
ENTITIES = [
    "&lt;script&gt;window.hostile=1&lt;/script&gt;", "&amp;lt;img class=hostile&amp;gt;", "&#60;img class=hostile&#62;", "&#x3c;img class=hostile&#x3e;", "&LT;img class=hostile&GT;", "&#0;&#xD800;&#x110000;", "&nbsp;" * 100, "&" * 500, "&;&#;&#x;", "\\x3cimg class=hostile\\x3e", "\\u003cimg class=hostile\\u003e", "+ADw-script+AD4-",
]  # fmt: skip
LONG = [
    "x" * 100_000, "<" * 100_000, "\u202e" + "y" * 100_000, "&lt;" * 25_000, "M" * 2_000, "W" * 300, "a/b" * 500, "https://example.org/" + "p" * 2_000, "snake_case_" * 200, "CamelCase" * 200, "-" * 2_000, "." * 2_000, "あ" * 2_000, "🦄" * 1_000, "0" * 2_000, "\\" * 1_000,
]  # fmt: skip
TEXTS: list[str] = list(
    dict.fromkeys(
        SCRIPTS + HANDLERS + BREAKOUTS + MARKUP + ADDRESSES + MARKDOWN + TEMPLATES + CONTROLS + BIDI + INVISIBLE
        + SHAPES + ENTITIES + LONG
    )
)  # fmt: skip


# --- Where they go ------------------------------------------------------------------------------------------

# Words of the program itself, which no person and no agent writes.
OURS = {
    "password", "slug", "sha", "base_sha", "salvage_sha", "landed_sha", "rebased_from", "seen_head", "patch_id",
    "content_sha256", "commands_hash", "request_hash", "token_hash", "spent_hash", "prompt_hash", "hash", "actor",
    "key", "seat", "boot_id", "sealed_address", "sealed_secret", "timezone", "service", "topic", "tab", "query",
    "verb", "measure", "heuristic", "kind", "origin", "stage", "step", "finished_by",
}  # fmt: skip
JSON_LISTS = {"tags", "domains"}
MODELS = [
    *(model for label in ("tasks", "disputes", "agents") for model in apps.get_app_config(label).get_models()),
    apps.get_model("auth", "User"),
    apps.get_model("auth", "Group"),
]  # fmt: skip


def text_columns(model: type[models.Model]) -> list[models.Field]:
    """The columns of a table that people or agents write their words into."""
    return [
        column
        for column in model._meta.concrete_fields
        if isinstance(column, models.CharField | models.TextField)
        and not isinstance(column, models.SlugField)
        and not column.choices
        and (column.max_length or SHORT) >= SHORT
        and column.name not in OURS
    ]


def is_unique(column: models.Field) -> bool:
    """Whether no two rows may hold the same text, alone or beside others."""
    groups = [
        constraint.fields for constraint in column.model._meta.constraints if hasattr(constraint, "fields")
    ]
    return column.unique or any(column.name in fields for fields in groups)


@contextmanager
def rewritable() -> Iterator[None]:
    """Events and decisions can be changed meanwhile, which the database refuses else."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL session_replication_role = replica")
            yield
            cursor.execute("SET LOCAL session_replication_role = origin")
            return
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        triggers = dict(cursor.fetchall())
        for name in triggers:
            cursor.execute(f'DROP TRIGGER "{name}"')
        yield
        for statement in triggers.values():
            cursor.execute(statement)


class Filler:
    """Puts text after text into every text column of every row, and begins again after the last one."""

    def __init__(self, texts: list[str]) -> None:
        self.texts, self.used = cycle(texts), set[str]()

    def next(self, length: int | None = None) -> str:
        """The next text, cut to the column; names must not be empty, and PostgreSQL keeps no NUL."""
        text = next(self.texts)
        self.used.add(text)
        text = text[:length].replace("\0", "")
        return text if text.strip() else f"x{text}"[:length]

    def fill(self) -> None:
        with rewritable():
            self._fill()

    def _fill(self) -> None:
        for model in MODELS:
            for row in model._default_manager.order_by("pk"):
                words = {
                    column.name: f"{row.pk if is_unique(column) else ''}{self.next()}"[: column.max_length]
                    for column in text_columns(model)
                }
                words |= {name: self.json(model, row, name) for name in self.json_columns(model)}
                if "diff" in words:
                    words["diff"] = self.diff()
                if words:
                    model._default_manager.filter(pk=row.pk).update(**words)

    def json_columns(self, model: type[models.Model]) -> Iterator[str]:
        for column in model._meta.concrete_fields:
            if column.name in JSON_LISTS | {"diff_stat"}:
                yield column.name

    def json(self, model: type[models.Model], row: models.Model, name: str) -> object:
        if name in JSON_LISTS:
            return [self.next(60), self.next(60)]
        files, text = [[self.next(200), 1, 1] for _ in range(3)], self.next(200)
        commit = dict.fromkeys(("sha", "author", "message"), text) | {"committer": f"{text}."}
        return {"files": files, "since_base": [text], "commits": [commit], "undone": [text], "more": 2}

    def diff(self) -> str:
        """A diff of files with hostile names and hostile lines."""
        parts = []
        for _ in range(3):
            name = " ".join(self.next(120).split()) or "x"
            lines = "".join(f"+{line}\n" for line in self.next().splitlines()[:40] or ["x"])
            parts.append(
                f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1,1 +1,9 @@\n-x\n{lines}"
            )
        return "".join(parts)
