"""Gemini CLI: its exit code is the server's status modulo 256, and 0 if it was ended from outside."""

import json
from datetime import UTC, datetime
from typing import Any

from agents.providers.base import Launch
from agents.providers.clis import Cli
from agents.providers.reports import (
    MESSAGE_MAX,
    TEXT_MAX,
    ErrorClass,
    EventReader,
    Report,
    count,
    mapping,
    words,
)
from agents.providers.troubles import error_of, of_status, retry_at

ATTEMPTS = 2
NO_SIGN_IN = 41
USED_UP = "TerminalQuotaError"
STATUSES = (400, 401, 402, 403, 404, 408, 413, 429, 500, 501, 502, 503, 504, 529)
BY_EXIT = {status % 256: status for status in STATUSES}


class Gemini(Cli):
    """The key is given as GEMINI_API_KEY; a signed-in account's oauth_creds.json is a `sign_in_file`."""

    title = "Gemini CLI"
    vendor = "google"
    command = "gemini"
    key_variable = "GEMINI_API_KEY"
    own_hosts = ("generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com")
    sign_in_place = ".gemini/oauth_creds.json"

    def arguments(self, settings: dict[str, Any], launch: Launch) -> list[str]:
        model = ["-m", launch.model] if launch.model else []  # without a model it asks a router first
        # The folder stays untrusted, so the repository's hooks and servers do not run.
        # --skip-trust only spares the question.
        return ["-o", "stream-json", "--skip-trust", "--approval-mode", "yolo", *model]

    def environment(self, settings: dict[str, Any], launch: Launch) -> dict[str, str]:
        key = self.key(settings, launch)
        return {
            **super().environment(settings, launch),
            "GEMINI_CLI_NO_RELAUNCH": "true",
            "GEMINI_TELEMETRY_ENABLED": "false",
            **({"GOOGLE_GEMINI_BASE_URL": settings["base_url"]} if settings.get("base_url") else {}),
            **({"GEMINI_API_KEY": key} if key else {}),
        }

    def files(self, settings: dict[str, Any], launch: Launch) -> dict[str, str]:
        sign_in = "gemini-api-key" if self.key(settings, launch) else "oauth-personal"
        config = {
            "general": {
                "enableAutoUpdate": False,
                "enableAutoUpdateNotification": False,
                "maxAttempts": ATTEMPTS,
                "retryFetchErrors": False,
            },
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "security": {"auth": {"selectedType": sign_in}, "folderTrust": {"enabled": True}},
            "tools": {"sandbox": False},
        }
        return {**super().files(settings, launch), ".gemini/settings.json": json.dumps(config, indent=1)}

    def reader(self) -> "GeminiReader":
        return GeminiReader()

    def classify(self, report: Report, exit_code: int | None, tail: str = "") -> ErrorClass | None:
        """Return what went wrong; the status in the exit code is more reliable than the words.

        No exit code stands for trouble with the network, so there the words decide.
        """
        if exit_code == NO_SIGN_IN:
            return ErrorClass.SIGN_IN
        if not exit_code or exit_code < 0:
            return report.error
        said = report.error if report.error != ErrorClass.CRASH else None
        if said in {ErrorClass.PROMPT, ErrorClass.QUOTA}:
            return said
        return of_status(BY_EXIT.get(exit_code)) or said or ErrorClass.CRASH


class GeminiReader(EventReader):
    """Reads the events of Gemini CLI.

    The type of an error is always "unknown", so its words decide. The statistics are of this run alone.
    """

    knows_cost = False

    def __init__(self) -> None:
        super().__init__()
        self._is_new = True  # the next piece of text begins a message

    def _event(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "init":
                session, model = words(event.get("session_id")), words(event.get("model"))
                self._note(session_id=session, model=model)
            case "message" if event.get("role") == "assistant":
                before = "" if self._is_new or not event.get("delta") else self.report.text
                text = (before + words(event.get("content"), TEXT_MAX))[:TEXT_MAX]
                self._note(text=text)
                self._is_new = False
            case "message" | "tool_use" | "tool_result":
                self._is_new = True
            case "error" if event.get("severity") == "error":
                self._trouble(words(event.get("message"), MESSAGE_MAX))
            case "result":
                self._result(event)

    def _result(self, event: dict[str, Any]) -> None:
        stats = mapping(event.get("stats"))
        asked, cached = count(stats.get("input_tokens")), count(stats.get("cached"))
        out = count(stats.get("output_tokens"))
        thought = count(stats.get("total_tokens")) - asked - out  # only part of the total, but paid for
        self._note(
            tokens_in=max(asked - cached, 0),
            tokens_cached=cached,
            tokens_out=out + max(thought, 0),
            is_ended=True,
        )
        message = words(mapping(event.get("error")).get("message"), MESSAGE_MAX * 4)
        if message or (event.get("status") == "error" and self.report.error is None):
            self._trouble(message)
        elif event.get("status") != "error":
            self._note(error=None, message="", retry_at=None)

    def _text(self, line: str) -> None:
        """Look for an error on standard error, which is mostly noise.

        Before the session begins any known error counts; after that only a used-up quota, which is named
        nowhere else.
        """
        if self.report.is_ended:
            return
        if USED_UP in line:
            self._trouble(line, ErrorClass.QUOTA)
        elif not self.report.session_id and (error := error_of(line)):
            self._trouble(line, error)

    def _trouble(self, message: str, error: ErrorClass | None = None) -> None:
        known = self.report.error
        found = error or error_of(message) or known or ErrorClass.CRASH
        if known == ErrorClass.QUOTA and found == ErrorClass.RATE:
            found = known
        self._note(
            error=found,
            message=words(message, MESSAGE_MAX) or "It gave no reason.",
            retry_at=retry_at(message, datetime.now(UTC)) or self.report.retry_at,
        )
