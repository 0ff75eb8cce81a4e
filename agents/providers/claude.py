"""Claude Code: it reads its prompt from standard input and writes events as lines of JSON."""

from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any

from agents.providers.base import Launch
from agents.providers.clis import Cli
from agents.providers.reports import (
    MESSAGE_MAX,
    TEXT_MAX,
    ErrorClass,
    EventReader,
    count,
    dollars,
    mapping,
    sequence,
    words,
)
from agents.providers.troubles import error_of, retry_at

RETRIES = 3
REQUESTS_KEPT = 64
NAMES = {
    "authentication_failed": ErrorClass.SIGN_IN,
    "oauth_org_not_allowed": ErrorClass.SIGN_IN,
    "billing_error": ErrorClass.QUOTA,
    "rate_limit": ErrorClass.RATE,
    "server_error": ErrorClass.RATE,
    "overloaded": ErrorClass.RATE,
    "model_not_found": ErrorClass.MODEL,
    "prompt_too_long": ErrorClass.PROMPT,
}


class Claude(Cli):
    """The key is ANTHROPIC_API_KEY; a subscription's CLAUDE_CODE_OAUTH_TOKEN is passed with `pass`."""

    title = "Claude Code"
    vendor = "anthropic"
    command = "claude"
    key_variable = "ANTHROPIC_API_KEY"
    own_variable = "CLAUDE_CODE_OAUTH_TOKEN"
    own_hosts = ("api.anthropic.com", "console.anthropic.com", "platform.claude.com")
    sign_in_place = ".claude/.credentials.json"

    def arguments(self, settings: dict[str, Any], launch: Launch) -> list[str]:
        model = ["--model", launch.model] if launch.model else []
        # Otherwise a repository's own hooks and servers would run before the agent has read anything.
        own_only = ["--strict-mcp-config", "--setting-sources", "user"]
        return [
            "-p", "--output-format", "stream-json", "--verbose", *model, *own_only,
            "--dangerously-skip-permissions",
        ]  # fmt: skip

    def environment(self, settings: dict[str, Any], launch: Launch) -> dict[str, str]:
        key = self.key(settings, launch)
        return {
            **super().environment(settings, launch),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "CLAUDE_CODE_MAX_RETRIES": str(RETRIES),
            **({"ANTHROPIC_BASE_URL": settings["base_url"]} if settings.get("base_url") else {}),
            **({"ANTHROPIC_API_KEY": key} if key else {}),
            **({"IS_SANDBOX": "1"} if launch.is_root else {}),  # otherwise it refuses to run as root
        }

    def reader(self) -> "ClaudeReader":
        return ClaudeReader()


class ClaudeReader(EventReader):
    """Reads the events of Claude Code.

    Every error seen so far had the `subtype` success, so `is_error` and the API's status decide. Until the
    result arrives, tokens are estimated from the counts each request began with and the length of its
    answers; the result's own numbers replace the estimate.
    """

    def __init__(self) -> None:
        super().__init__()
        self._requests: OrderedDict[str, tuple[int, int, int]] = OrderedDict()

    def _event(self, event: dict[str, Any]) -> None:
        match event.get("type"), event.get("subtype"):
            case "system", "init":
                session, model = words(event.get("session_id")), words(event.get("model"))
                self._note(session_id=session, model=model)
            case "system", "api_retry":
                self._trouble(event.get("error"), event.get("error_status"), words(event.get("error")))
            case "system", "permission_denied":
                self._denied(words(event.get("tool_name")), words(event.get("message"), MESSAGE_MAX))
            case "assistant", _:
                self._assistant(event)
            case "result", _:
                self._result(event)

    def _text(self, line: str) -> None:
        """Take a line of standard error as the error, if no event has arrived yet."""
        if not self.report.is_ended and not self.report.session_id:
            error = error_of(line)
            self._note(message=words(line, MESSAGE_MAX), error=error)

    def _assistant(self, event: dict[str, Any]) -> None:
        message = mapping(event.get("message"))
        pieces = [mapping(piece) for piece in sequence(message.get("content"))]
        said = [words(piece.get("text"), TEXT_MAX) for piece in pieces if piece.get("type") == "text"]
        text = "".join(said)[:TEXT_MAX] or self.report.text
        self._note(text=text)
        if name := event.get("error"):
            self._trouble(name, event.get("error_status"), text)
        else:
            self._estimate(message, pieces)
            if self.report.error != ErrorClass.PERMISSION:
                self._note(error=None, message="")

    def _estimate(self, message: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
        usage, name = mapping(message.get("usage")), words(message.get("id"))
        fresh = count(usage.get("input_tokens")) + count(usage.get("cache_creation_input_tokens"))
        cached, out = count(usage.get("cache_read_input_tokens")), count(usage.get("output_tokens"))
        out = max(out, sum(len(str(piece)) for piece in pieces) // 4)
        before = self._requests.get(name, (0, 0, 0))
        now = (max(fresh, before[0]), max(cached, before[1]), before[2] + out)
        self._requests[name] = now
        if len(self._requests) > REQUESTS_KEPT:
            self._requests.popitem(last=False)
        grown = [after - earlier for after, earlier in zip(now, before, strict=True)]
        self._note(
            tokens_in=self.report.tokens_in + grown[0],
            tokens_cached=self.report.tokens_cached + grown[1],
            tokens_out=self.report.tokens_out + grown[2],
        )

    def _result(self, event: dict[str, Any]) -> None:
        usage, models = mapping(event.get("usage")), mapping(event.get("modelUsage"))
        bases = [mapping(each).get("costBasis") for each in models.values()]
        text = words(event.get("result"), TEXT_MAX)
        self._note(
            text=text or self.report.text,
            tokens_in=count(usage.get("input_tokens")) + count(usage.get("cache_creation_input_tokens")),
            tokens_cached=count(usage.get("cache_read_input_tokens")),
            tokens_out=count(usage.get("output_tokens")),
            cost=dollars(event.get("total_cost_usd")),
            cost_known="unknown" not in bases,
            is_ended=True,
        )
        if event.get("is_error") or event.get("api_error_status"):
            kind = self.report.error if self.report.error in set(NAMES.values()) else None
            self._trouble(event.get("terminal_reason"), event.get("api_error_status"), text, kind)
        elif denied := [mapping(each) for each in sequence(event.get("permission_denials"))]:
            self._denied(words(denied[0].get("tool_name")), "")
        elif self.report.error != ErrorClass.PERMISSION:
            self._note(error=None, message="", retry_at=None)

    def _trouble(self, name: Any, status: Any, text: str, before: ErrorClass | None = None) -> None:
        """Note an error and its class.

        The text decides first, since a quota comes as 400 or 429; then the name of the error, then the
        status.
        """
        code = status if isinstance(status, int) and not isinstance(status, bool) else None
        named = NAMES.get(words(name))
        said = error_of(text, code)
        error = said if said in {ErrorClass.PROMPT, ErrorClass.QUOTA} else named or said or before
        self._note(
            error=error or ErrorClass.CRASH,
            message=words(text, MESSAGE_MAX) or f"status {code}",
            retry_at=retry_at(text, datetime.now(UTC)),
        )

    def _denied(self, tool: str, message: str) -> None:
        text = message or f"{tool or 'A tool'} was denied."
        self._note(error=ErrorClass.PERMISSION, message=text)
