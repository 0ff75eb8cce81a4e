"""opencode: its configuration is passed in a variable, and it never says that it is done."""

import json
from collections.abc import Container
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from agents.providers import reports
from agents.providers.base import Launch, ProviderError
from agents.providers.clis import Cli
from agents.providers.troubles import CLAIMED_MAX, error_of, retry_at
from tasks.text.regex import regex

LOGGED = regex(r'\blevel=ERROR\b.*\berror\.error="(.*)"')
BROKEN_OFF_MAX = 10  # answers in a row that broke off; it would go on asking for ever
NAMES = {
    "ContextOverflowError": reports.ErrorClass.PROMPT,
    "ProviderAuthError": reports.ErrorClass.SIGN_IN,
    "ProviderModelNotFoundError": reports.ErrorClass.MODEL,
    "ModelNotFoundError": reports.ErrorClass.MODEL,
}
KEY_VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
}
HOSTS = {
    "anthropic": ("api.anthropic.com", "console.anthropic.com"),
    "google": ("generativelanguage.googleapis.com",),
    "openai": ("api.openai.com", "auth.openai.com"),
    "openrouter": ("openrouter.ai",),
}


class Opencode(Cli):
    """The model is PROVIDER/MODEL. With base_url, PROVIDER is any name for a server of chat completions.

    `cost` (dollars for a million tokens: input, output, cache_read) and `limit` (context, output) describe
    the model of that server.
    """

    title = "opencode"
    about = "Any vendor's models, or a server of your own."
    command = "opencode"
    key_variable = "ANTHROPIC_API_KEY"
    sign_in_place = ".local/share/opencode/auth.json"
    settings = Cli.settings | {"cost", "limit"}

    def check(self, settings: dict[str, Any], model: str = "") -> None:
        super().check(settings, model)
        for name, keys in (("cost", {"input", "output", "cache_read"}), ("limit", {"context", "output"})):
            table = settings.get(name, {})
            if not isinstance(table, dict) or set(table) - keys or not all(map(_is_amount, table.values())):
                raise ProviderError(
                    f"{name} is a mapping of numbers: {', '.join(sorted(keys))}.", setting=name
                )
        vendor, slash, name = model.partition("/")
        if model and not (vendor and slash and name):
            raise ProviderError(
                f"A model of opencode is PROVIDER/MODEL, such as anthropic/{model}.", setting="model"
            )

    def arguments(self, settings: dict[str, Any], launch: Launch) -> list[str]:
        if not launch.model:
            raise ProviderError("opencode needs a model: PROVIDER/MODEL.")
        # Only its log says that it retries.
        log = ["--print-logs", "--log-level", "ERROR"]
        return ["run", "--format", "json", "--pure", "--title", "run", *log, "-m", launch.model]

    def environment(self, settings: dict[str, Any], launch: Launch) -> dict[str, str]:
        vendor, _, model = launch.model.partition("/")
        config: dict[str, Any] = {
            "autoupdate": False,
            "share": "disabled",
            "permission": "allow",
            "model": launch.model,
            "small_model": launch.model,
            "enabled_providers": [vendor],
        }
        options = {"apiKey": key} if (key := self.key(settings, launch)) else {}
        if url := settings.get("base_url"):
            described = {name: settings[name] for name in ("cost", "limit") if settings.get(name)}
            config["provider"] = {
                vendor: {
                    "npm": "@ai-sdk/openai-compatible",
                    "name": vendor,
                    "options": {"baseURL": url, **options},
                    "models": {model: {"name": model, "tool_call": True, **described}},
                }
            }
        elif options:
            config["provider"] = {vendor: {"options": options}}
        return {
            **super().environment(settings, launch),
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_SHARE": "1",
            "OPENCODE_DISABLE_PROJECT_CONFIG": "1",  # otherwise the repository's servers and tools would run
        }

    def sign_in(self, given: Container[str], home: Path, model: str = "") -> dict[str, Any] | None:
        """Return the settings to sign in with, or None.

        The model names the vendor; without one, the key of any vendor will do.
        """
        if not model and any(name in given for name in KEY_VARIABLES.values()):
            return {}
        return super().sign_in(given, home, model)

    def vendor_hosts(self, model: str) -> tuple[str, ...]:
        return HOSTS.get(model.partition("/")[0], ())

    def usual_variable(self, model: str) -> str:
        vendor = model.partition("/")[0]
        return KEY_VARIABLES.get(vendor, f"{vendor.upper().replace('-', '_')}_API_KEY")

    def reader(self) -> "OpencodeReader":
        return OpencodeReader()


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 10**9


class OpencodeReader(reports.EventReader):
    """Reads the events of opencode.

    Each step says what it used. While it retries it writes no event, and an answer that broke off it asks for
    again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._broken_off = 0
        self._is_begun = False  # a step that has no end so far

    def _event(self, event: dict[str, Any]) -> None:
        part = reports.mapping(event.get("part"))
        if session := reports.words(event.get("sessionID")):
            self._note(session_id=session)
        match event.get("type"):
            case "step_start":
                self._note(is_ended=False)
                if self._is_begun:
                    self._break_off()
                self._is_begun = True
            case "text":
                self._note(text=reports.words(part.get("text"), reports.TEXT_MAX))
            case "step_finish":
                self._step(part)
            case "error":
                self._error(reports.mapping(event.get("error")))

    def _step(self, part: dict[str, Any]) -> None:
        tokens, reason = reports.mapping(part.get("tokens")), reports.words(part.get("reason"))
        cache, cost = reports.mapping(tokens.get("cache")), reports.dollars(part.get("cost"))
        known = self.report.cost
        self._note(
            tokens_in=self.report.tokens_in
            + reports.count(tokens.get("input"))
            + reports.count(cache.get("write")),
            tokens_cached=self.report.tokens_cached + reports.count(cache.get("read")),
            tokens_out=self.report.tokens_out
            + reports.count(tokens.get("output"))
            + reports.count(tokens.get("reasoning")),
            cost=(known or Decimal(0)) + cost if cost else known,  # 0 means that it knows no price
            is_ended=reason not in {"", "tool-calls", "unknown"},
        )
        self._is_begun = False
        if reason == "unknown":
            self._break_off()
            return
        self._broken_off = 0
        self._note(error=None, message="", retry_at=None, is_hopeless=False)

    def _break_off(self) -> None:
        self._broken_off += 1
        if self._broken_off >= BROKEN_OFF_MAX:
            message = f"{self._broken_off} answers in a row broke off; it asks for ever."
            self._note(error=reports.ErrorClass.NETWORK, message=message, is_hopeless=True)
        elif self.report.error is None:
            self._note(error=reports.ErrorClass.NETWORK, message="Its answer broke off.")

    def _error(self, error: dict[str, Any]) -> None:
        data = reports.mapping(error.get("data"))
        message = reports.words(data.get("message"), reports.MESSAGE_MAX)
        status = data.get("statusCode")
        code = status if isinstance(status, int) and not isinstance(status, bool) else None
        said = error_of(f"{message} {reports.words(data.get('responseBody'), 2000)}", code)
        now = datetime.now(UTC)
        self._note(
            error=NAMES.get(reports.words(error.get("name"))) or said or reports.ErrorClass.CRASH,
            message=message or reports.words(error.get("name")) or "It gave no reason.",
            retry_at=_header(reports.mapping(data.get("responseHeaders")), now) or retry_at(message, now),
            is_ended=True,
        )

    def _text(self, line: str) -> None:
        """Look for an error in its log on standard error; a used-up quota it only logs, and waits."""
        logged = LOGGED.search(line)
        said = reports.words(logged[1] if logged else line, reports.MESSAGE_MAX)
        if self.report.is_ended or not (logged or not self.report.session_id):
            return
        if error := error_of(said):
            found = retry_at(said, datetime.now(UTC))
            hopeless = bool(logged) and error == reports.ErrorClass.QUOTA
            self._note(message=said, error=error, retry_at=found, is_hopeless=hopeless)


def _header(headers: dict[str, Any], now: datetime) -> datetime | None:
    """Return the time that a Retry-After header names, if it is a number of seconds."""
    said = reports.words(headers.get("retry-after"), 12)
    seconds = int(said) if said.isdecimal() else 0
    return now + timedelta(seconds=seconds) if 0 < seconds <= CLAIMED_MAX.total_seconds() else None
