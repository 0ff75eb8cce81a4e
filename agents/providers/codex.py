"""Codex: its configuration is a file in the run's home, and it reports errors only in words."""

import json
from datetime import UTC, datetime
from typing import Any

from agents.providers.base import Launch
from agents.providers.clis import Cli
from agents.providers.reports import MESSAGE_MAX, TEXT_MAX, ErrorClass, EventReader, count, mapping, words
from agents.providers.troubles import error_of, retry_at

OWN_SERVER = "https://api.openai.com/v1"
RETRIES = 2
IDLE_MS = 300_000
WAITING = "waiting for network"  # if no server answers it waits for ever, whatever its retries are
WAITS_MAX = 3


class Codex(Cli):
    """The key is given as OPENAI_API_KEY; a subscription's auth.json is a `sign_in_file`."""

    title = "Codex"
    vendor = "openai"
    command = "codex"
    key_variable = "OPENAI_API_KEY"
    own_hosts = ("api.openai.com", "chatgpt.com", "auth.openai.com")
    sign_in_place = ".codex/auth.json"

    def arguments(self, settings: dict[str, Any], launch: Launch) -> list[str]:
        return [
            "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "--disable", "plugins",
            "--disable", "apps", "-C", str(launch.clone), "-",
        ]  # fmt: skip

    def environment(self, settings: dict[str, Any], launch: Launch) -> dict[str, str]:
        key = self.key(settings, launch)
        return {
            **super().environment(settings, launch),
            "CODEX_HOME": str(launch.home / ".codex"),
            **({"OPENAI_API_KEY": key} if key else {}),
        }

    def files(self, settings: dict[str, Any], launch: Launch) -> dict[str, str]:
        lines = [
            "check_for_update_on_startup = false",
            "allow_login_shell = false",  # otherwise /etc/profile resets PATH, and `steroids` is not found
        ]
        if launch.judges:
            lines.append("project_doc_max_bytes = 0")  # the prompt quotes AGENTS.md as it was before
        if launch.model:
            lines.append(f"model = {_toml(launch.model)}")
        own_provider = bool(self.key(settings, launch)) or not settings.get("sign_in_file")
        if own_provider:
            lines += [
                'model_provider = "steroids"',
                "",
                "[model_providers.steroids]",
                f"name = {_toml(self.title)}",
                f"base_url = {_toml(settings.get('base_url') or OWN_SERVER)}",
                'env_key = "OPENAI_API_KEY"',
                'wire_api = "responses"',
                "requires_openai_auth = false",
                "supports_websockets = false",
                f"request_max_retries = {RETRIES}",
                f"stream_max_retries = {RETRIES}",
                f"stream_idle_timeout_ms = {IDLE_MS}",
            ]
        lines += ["", "[analytics]", "enabled = false", "", "[otel]", 'exporter = "none"', ""]
        return {**super().files(settings, launch), ".codex/config.toml": "\n".join(lines)}

    def reader(self) -> "CodexReader":
        return CodexReader()


def _toml(text: str) -> str:
    """Return the text as a TOML string; it must be printable."""
    return json.dumps(text, ensure_ascii=False)


class CodexReader(EventReader):
    """Reads the events of Codex.

    `usage` counts from the beginning of the thread, so the last one holds. Errors have no codes, only words.
    """

    knows_cost = False

    def __init__(self) -> None:
        super().__init__()
        self._waits = 0

    def _event(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "thread.started":
                self._note(session_id=words(event.get("thread_id")))
            case "item.completed":
                self._item(mapping(event.get("item")))
            case "error":  # either of a retry that is under way, or the final one
                message = words(event.get("message"), MESSAGE_MAX)
                self._trouble(message, ErrorClass.NETWORK)
                self._waits = self._waits + 1 if WAITING in message else 0
                self._note(is_hopeless=self._waits >= WAITS_MAX)
            case "turn.completed":
                self._usage(mapping(event.get("usage")))
                self._note(is_ended=True, error=None, message="", retry_at=None)
            case "turn.failed":
                message = words(mapping(event.get("error")).get("message"), MESSAGE_MAX)
                self._usage(mapping(event.get("usage")))
                self._trouble(message, ErrorClass.CRASH)
                self._note(is_ended=True)

    def _item(self, item: dict[str, Any]) -> None:
        if item.get("type") == "error":  # only ever a warning
            return
        if item.get("type") == "agent_message":
            self._note(text=words(item.get("text"), TEXT_MAX))
        self._waits = 0
        if not self.report.is_ended:
            self._note(error=None, message="", retry_at=None, is_hopeless=False)

    def _usage(self, usage: dict[str, Any]) -> None:
        if not usage:
            return
        cached = count(usage.get("cached_input_tokens"))
        self._note(
            tokens_in=max(count(usage.get("input_tokens")) - cached, 0),
            tokens_cached=cached,
            tokens_out=count(usage.get("output_tokens")),  # reasoning is part of it
        )

    def _text(self, line: str) -> None:
        if not self.report.session_id:
            self._note(message=words(line, MESSAGE_MAX), error=error_of(line))

    def _trouble(self, message: str, otherwise: ErrorClass) -> None:
        self._note(
            error=error_of(message) or otherwise,
            message=message or "It gave no reason.",
            retry_at=retry_at(message, datetime.now(UTC)),
        )
