"""The Content-Security-Policy stops what it is there for.

That no page breaks it is held by every browser test: Chromium reports a violation as an error of the console,
and `open_page` takes none.
"""

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.")
if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# What hostile text could leave behind if a template forgot to escape it.
INJECT = """
window.refused = [];
document.addEventListener("securitypolicyviolation", event => window.refused.push(event.effectiveDirective));
document.body.insertAdjacentHTML("beforeend", `
    <img src="data:," onerror="window.ran = 'attribute'">
    <style>body { color: red }</style>
    <base href="/elsewhere/">
    <form id="away" action="https://example.org/"></form>`);
const scripts = [{textContent: "window.ran = 'element'"}, {src: "data:text/javascript,window.ran='data'"}];
for (const script of scripts) {
    document.body.append(Object.assign(document.createElement("script"), script));
}
document.getElementById("away").submit();
"""


def test_the_policy_stops_what_no_template_should_let_through(chromium: "Browser", live_server: Any) -> None:
    with chromium.new_context() as context:
        page = context.new_page()
        page.goto(f"{live_server.url}/admin/login/")
        page.evaluate(INJECT)
        stopped = ["script-src-attr", "script-src-elem", "style-src-elem", "base-uri", "form-action"]
        page.wait_for_function("names => names.every(name => refused.includes(name))", arg=stopped)
        assert page.evaluate("window.ran") is None
        assert page.url == f"{live_server.url}/admin/login/"
