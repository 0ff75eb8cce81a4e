"""Pressing keys as a person does, who looks at the page first."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page


def press(page: "Page", key: str) -> None:
    """Press the key once the page takes letters as commands, which it does not right after arrival."""
    page.locator("html[data-keys=on]").wait_for(state="attached")
    page.keyboard.press(key)
