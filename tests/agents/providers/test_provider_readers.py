"""The readers: what four commands print, in health and in trouble, becomes one report."""

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from agents.providers.gemini import BY_EXIT
from agents.providers.registry import PROVIDERS
from agents.providers.reports import LINE_MAX, TEXT_MAX, ErrorClass, Report
from agents.providers.troubles import error_of, retry_at
from tests.cases import for_each

CLIS = ("claude", "codex", "gemini", "opencode")
RECORDED = Path(__file__).parents[2] / "data" / "agents"
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def read(name: str, *events: Any, size: int = 0) -> Report:
    """The report on these events; a text or bytes stand for themselves. In pieces of so many bytes."""
    parts = [event if isinstance(event, bytes) else _line(event) for event in events]
    raw = b"".join(parts) + b"\n"
    reader = PROVIDERS[name].reader()
    for start in range(0, len(raw), size or len(raw)):
        reader.feed(raw[start : start + (size or len(raw))])
    return reader.report


def _line(event: Any) -> bytes:
    text = event if isinstance(event, str) else json.dumps(event)
    return text.encode() + b"\n"


# --- As they were recorded ----------------------------------------------------------------------------------

SIGN_IN, QUOTA, RATE, NETWORK = ErrorClass.SIGN_IN, ErrorClass.QUOTA, ErrorClass.RATE, ErrorClass.NETWORK
PROMPT, MODEL, CRASH = ErrorClass.PROMPT, ErrorClass.MODEL, ErrorClass.CRASH
USUAL = {
    "work": None, "nothing": None, "sign-in": SIGN_IN, "quota": QUOTA, "rate-hour": RATE, "model": MODEL,
    "too-long": PROMPT, "server": RATE, "overloaded": RATE, "refused": NETWORK, "cut": NETWORK,
    "short": NETWORK, "never-ends": None, "hang": None, "bad-key": SIGN_IN,
}  # fmt: skip
UNUSUAL = {
    ("gemini", "rate-hour"): QUOTA,  # its words are those of a quota
    ("codex", "hang"): NETWORK,  # it ends by itself
}
CASES = sorted(path.relative_to(RECORDED).with_suffix("").as_posix() for path in RECORDED.glob("*/*.jsonl"))


def test_all_four_commands_were_recorded() -> None:
    assert {case.split("/")[0] for case in CASES} == set(CLIS)


@for_each("case", CASES)
def test_a_recorded_run_has_its_class(case: str) -> None:
    name, kind = case.split("/")
    report = recorded(case)
    assert report.error == UNUSUAL.get((name, kind), USUAL[kind])
    assert bool(report.message) == (report.error is not None)


@for_each("case", CASES)
@for_each("size", [1, 7, 4096])
def test_a_recorded_run_reads_the_same_in_pieces(case: str, size: int) -> None:
    assert stable(recorded(case, size)) == stable(recorded(case))


def recorded(case: str, size: int = 0) -> Report:
    return read(case.split("/")[0], (RECORDED / f"{case}.jsonl").read_bytes(), size=size)


def stable(report: Report) -> Any:
    """The report without the moments that were reckoned from now."""
    return [getattr(report, name) for name in Report.__slots__ if name != "retry_at"]


@for_each("name", CLIS)
def test_work_is_counted_whole(name: str) -> None:
    report = recorded(f"{name}/work")
    assert (report.tokens_in, report.tokens_cached, report.tokens_out) == (3600, 900, 150)
    assert report.is_ended
    assert report.session_id
    assert report.text.endswith("That is done.")


# --- Each command -------------------------------------------------------------------------------------------


def claude_result(**more: Any) -> dict[str, Any]:
    plain = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "modelUsage": {}}
    return plain | {"usage": {"input_tokens": 10, "cache_read_input_tokens": 3, "output_tokens": 5}} | more


CLAUDE = [
    (401, "", "Invalid API key · Fix external API key", SIGN_IN),
    (403, "", "Forbidden", SIGN_IN),
    (429, "", "API Error: Request rejected (429)", RATE),
    (429, "", "You've hit your limit · resets 3pm (UTC)", QUOTA),
    (500, "", "API Error: 500", RATE),
    (529, "", "API Error: 529 Overloaded", RATE),
    (400, "prompt_too_long", "Something", PROMPT),
    (400, "", "prompt is too long: 250000 tokens > 200000 maximum", PROMPT),
    (400, "billing_error", "Credit balance is too low", QUOTA),
    (400, "", "Something else that was wrong", CRASH),
    (404, "", "There's an issue with on the selected model", MODEL),
    (None, "api_error", "Not logged in · Please run /login", SIGN_IN),
    (None, "api_error", "Connection refused (ECONNREFUSED)", NETWORK),
    (None, "", "", CRASH),
]


@for_each(("status", "reason", "text", "error"), CLAUDE)
def test_claude_says_success_and_means_an_error(
    status: int | None, reason: str, text: str, error: ErrorClass
) -> None:
    event = claude_result(is_error=True, api_error_status=status, terminal_reason=reason, result=text)
    assert read("claude", event).error == error


def test_claude_counts_what_came_from_a_cache_apart() -> None:
    report = read("claude", claude_result(total_cost_usd=0.00918))
    assert (report.tokens_in, report.tokens_cached, report.tokens_out) == (10, 3, 5)
    assert report.cost == Decimal("0.009180")
    assert report.cost_known


def test_claude_guesses_the_price_of_a_model_that_it_does_not_know() -> None:
    usage = {"some-model": {"costUSD": 1.0, "costBasis": "unknown"}}
    assert not read("claude", claude_result(total_cost_usd=1.0, modelUsage=usage)).cost_known


def test_claude_shows_a_retry_while_it_streams_and_an_answer_clears_it() -> None:
    retry = {"type": "system", "subtype": "api_retry", "error_status": 429, "error": "rate_limit"}
    answer = {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "Hello"}]}}
    assert read("claude", retry).error == RATE
    assert not read("claude", retry).is_ended
    assert read("claude", retry, answer).error is None


def test_claude_streams_an_estimate_and_the_result_takes_its_place() -> None:
    message = {"id": "m", "content": [{"type": "text", "text": "x" * 400}], "usage": {"input_tokens": 1000}}
    begun = read("claude", {"type": "assistant", "message": message})
    again = read("claude", *[{"type": "assistant", "message": message}] * 3)
    assert begun.tokens_in == again.tokens_in == 1000
    assert begun.tokens_out > 90
    assert read("claude", {"type": "assistant", "message": message}, claude_result()).tokens_in == 10


def test_claude_was_denied_a_tool_and_went_on() -> None:
    denied = {"type": "system", "subtype": "permission_denied", "tool_name": "Bash", "message": "No."}
    report = read("claude", denied, claude_result(permission_denials=[{"tool_name": "Bash"}]))
    assert report.error == ErrorClass.PERMISSION
    assert "Bash" in report.message


def test_claude_refuses_to_be_root_on_standard_error_alone() -> None:
    line = "--dangerously-skip-permissions cannot be used with root/sudo privileges"
    report = read("claude", line)
    assert report.message == line
    assert not report.is_ended


CODEX = [
    ("unexpected status 401 Unauthorized: Incorrect API key provided, url: http://h/v1", SIGN_IN),
    ("exceeded retry limit, last status: 429 Too Many Requests", RATE),
    ("Quota exceeded. Check your plan and billing details.", QUOTA),
    ("You've hit your usage limit. Try again in 2 hours 3 minutes.", QUOTA),
    ("We're currently experiencing high demand, which may cause temporary errors.", RATE),
    ("unexpected status 529 <unknown status code>: Overloaded, url: http://h", RATE),
    ("Codex ran out of room in the model's context window. Start a new thread.", PROMPT),
    ("The model `gpt-9` does not exist or you do not have access to it.", MODEL),
    ("unexpected status 404 Not Found: nothing here", MODEL),
    ('{"error":{"code":"insufficient_quota","message":"no"}}', QUOTA),
    ("stream disconnected before completion: error sending request", NETWORK),
    ("stream disconnected before completion: stream closed before response.completed", NETWORK),
    ("stream disconnected before completion: idle timeout waiting for SSE", NETWORK),
    ("Missing environment variable: `STUB_KEY`.", SIGN_IN),
    ("Something quite new", CRASH),
    ("", CRASH),
]


@for_each(("message", "error"), CODEX)
def test_codex_has_nothing_but_words(message: str, error: ErrorClass) -> None:
    report = read("codex", {"type": "turn.failed", "error": {"message": message}})
    assert report.error == error
    assert report.is_ended
    assert report.message


def test_codex_counts_from_the_beginning_of_its_thread() -> None:
    turns = [
        {
            "type": "turn.completed",
            "usage": {"input_tokens": n, "cached_input_tokens": 300, "output_tokens": n},
        }
        for n in (3000, 4500)
    ]
    report = read("codex", *turns)
    assert (report.tokens_in, report.tokens_cached, report.tokens_out) == (4200, 300, 4500)
    assert report.cost is None


def test_codex_warns_with_an_item_that_is_no_error() -> None:
    warning = {"type": "item.completed", "item": {"type": "error", "message": "Unknown model, 401"}}
    assert read("codex", warning, {"type": "turn.completed", "usage": {}}).error is None


def test_codex_waits_for_ever_where_nobody_listens() -> None:
    waits = {"type": "error", "message": "Reconnecting... waiting for network"}
    assert not read("codex", waits).is_hopeless
    report = read("codex", *[waits] * 3)
    assert report.is_hopeless
    assert report.error == NETWORK
    said = {"type": "item.completed", "item": {"type": "agent_message", "text": "Here again"}}
    assert read("codex", *[waits] * 3, said).error is None


def gemini_error(message: str) -> dict[str, Any]:
    return {
        "type": "result",
        "status": "error",
        "error": {"type": "unknown", "message": message},
        "stats": {},
    }


GEMINI = [
    ('[API Error: {"error":{"code":401,"message":"no"}}]', 145, SIGN_IN),
    ("[API Error: The model is overloaded.]", 247, RATE),
    ("[API Error: Rate]", 173, RATE),
    ("[API Error: You have exhausted your daily quota on this model.]", 173, QUOTA),
    ("[API Error: it broke]", 244, RATE),
    ("[API Error: it is full]", 17, RATE),
    (
        '[API Error: {"error":{"code":400,"message":"The input token count (9) exceeds the maximum"}}]',
        144,
        PROMPT,
    ),
    ("[API Error: models/x is not found for API version v1beta.]", 1, MODEL),
    ("[API Error: exception TypeError: fetch failed sending request]", 1, NETWORK),
    ("[API Error: a new one]", 144, CRASH),
    ("[API Error: a new one]", 1, CRASH),
]


@for_each(("message", "code", "error"), GEMINI)
def test_gemini_hides_the_status_in_its_exit_code(message: str, code: int, error: ErrorClass) -> None:
    assert PROVIDERS["gemini"].classify(read("gemini", gemini_error(message)), code) == error


def test_gemini_has_no_sign_in_and_says_so_by_its_code_alone() -> None:
    assert PROVIDERS["gemini"].classify(Report(), 41) == SIGN_IN


@for_each("code", [0, None, -15])
def test_gemini_that_was_ended_from_outside_has_no_error_of_its_own(code: int | None) -> None:
    assert PROVIDERS["gemini"].classify(Report(), code) is None


def test_no_status_hides_behind_the_plain_codes() -> None:
    assert not {0, 1, 2, 41, 42, 53, 130, 137, 143} & set(BY_EXIT)


def test_gemini_counts_its_thoughts_as_output() -> None:
    stats = {"total_tokens": 1550, "input_tokens": 1500, "output_tokens": 40, "cached": 300}
    report = read("gemini", {"type": "result", "status": "success", "stats": stats})
    assert (report.tokens_in, report.tokens_cached, report.tokens_out) == (1200, 300, 50)


def test_gemini_names_a_used_up_quota_on_standard_error() -> None:
    report = read(
        "gemini", {"type": "init", "session_id": "s"}, "TerminalQuotaError: wait 1h", gemini_error("429")
    )
    assert report.error == QUOTA


def opencode_error(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "error", "sessionID": "s", "error": {"name": name, "data": data}}


OPENCODE = [
    ("APIError", {"message": "Unauthorized", "statusCode": 401}, SIGN_IN),
    ("APIError", {"message": "Slow down", "statusCode": 429}, RATE),
    ("APIError", {"message": "insufficient_quota", "statusCode": 429}, QUOTA),
    ("APIError", {"message": "Bad", "statusCode": 400, "responseBody": "credit balance too low"}, QUOTA),
    ("APIError", {"message": "Broken", "statusCode": 500}, RATE),
    ("APIError", {"message": "Not here", "statusCode": 404}, MODEL),
    ("APIError", {"message": "Bad", "statusCode": 400}, CRASH),
    ("ContextOverflowError", {"message": "Too much"}, PROMPT),
    ("ProviderAuthError", {"message": "who?"}, SIGN_IN),
    ("ProviderModelNotFoundError", {}, MODEL),
    ("APIError", {"message": "Cannot connect to API: nobody"}, NETWORK),
    ("UnknownError", {}, CRASH),
]


@for_each(("name", "data", "error"), OPENCODE)
def test_opencode_names_its_errors(name: str, data: dict[str, Any], error: ErrorClass) -> None:
    assert read("opencode", opencode_error(name, **data)).error == error


def test_opencode_says_when_to_come_back_in_a_header() -> None:
    report = read(
        "opencode", opencode_error("APIError", statusCode=429, responseHeaders={"retry-after": "3600"})
    )
    assert report.retry_at is not None
    assert abs(report.retry_at - datetime.now(UTC) - timedelta(hours=1)) < timedelta(minutes=5)


def step(reason: str = "tool-calls", cost: Any = 0.5) -> dict[str, Any]:
    tokens = {"input": 1200, "output": 40, "reasoning": 10, "cache": {"read": 300, "write": 7}}
    return {
        "type": "step_finish",
        "sessionID": "s",
        "part": {"reason": reason, "tokens": tokens, "cost": cost},
    }


def test_opencode_steps_are_summed() -> None:
    report = read("opencode", step(), step("stop"))
    assert (report.tokens_in, report.tokens_cached, report.tokens_out) == (2414, 600, 100)
    assert report.cost == Decimal("1.000000")
    assert report.is_ended


def test_opencode_without_a_price_has_no_cost() -> None:
    assert read("opencode", step(cost=0)).cost is None


def test_opencode_asks_for_ever_after_answers_that_broke_off() -> None:
    assert not read("opencode", *[step("unknown")] * 9).is_hopeless
    report = read("opencode", *[step("unknown")] * 10)
    assert report.is_hopeless
    assert report.error == NETWORK
    assert read("opencode", *[step("unknown")] * 10, step("stop")).error is None
    begun = {"type": "step_start", "sessionID": "s"}
    assert read("opencode", begun, step("tool-calls"), begun).error is None
    assert (cut := read("opencode", begun, begun)).error == ErrorClass.NETWORK, "the first has no end"
    assert "broke off" in cut.message
    assert not cut.is_hopeless
    assert read("opencode", *[begun] * 11).is_hopeless
    assert read("opencode", begun, begun, step("stop")).error is None


@for_each(
    ("said", "error", "hopeless"),
    [
        ("AI_APICallError: Rate limit reached for requests.", RATE, False),
        ("AI_APICallError: You exceeded your current quota, please", QUOTA, True),
        ("AI_APICallError: Cannot connect to API: Unable to connect.", NETWORK, False),
    ],
)
def test_opencode_retries_in_its_log_alone(said: str, error: ErrorClass, hopeless: bool) -> None:
    log = f'timestamp=2026 level=ERROR run=1 message="stream error" error.error="{said}"'
    report = read("opencode", {"type": "step_start", "sessionID": "s"}, log)
    assert (report.error, report.is_hopeless) == (error, hopeless)


# --- Anything at all ----------------------------------------------------------------------------------------

HOSTILE: list[Any] = [
    b"", b"\n\n\n", b"\xff\xfe\x00\n", b"{", b'{"type":', b"[1,2]\n", b"null\n", b'"text"\n', b"{}\n",
    b'{"type":' + b"[" * 5000 + b"\n", b"\x00" * 100 + b"\n", b'{"a":' + b"9" * 5000 + b"}\n",
    {"type": "result"}, {"type": "result", "usage": "many", "total_cost_usd": "1", "modelUsage": []},
    {"type": "result", "usage": {"input_tokens": -5, "output_tokens": 1e999}, "total_cost_usd": -1},
    {"type": "result", "stats": [], "status": 3}, {"type": "assistant", "message": "hello"},
    {"type": "assistant", "message": {"content": [1, None, {"type": "text", "text": 4}], "usage": 7}},
    {"type": "turn.completed", "usage": {"input_tokens": True, "output_tokens": 10**400}},
    {"type": "turn.failed", "error": "no"}, {"type": "item.completed", "item": None},
    {"type": "error"}, {"type": "error", "error": {"data": {"responseHeaders": {"retry-after": "9" * 12}}}},
    {"type": "step_finish", "part": {"tokens": {"cache": 3}, "cost": {}}}, {"type": ["a"]},
    {"type": "message", "role": "assistant", "content": "x" * 100_000, "delta": True},
    {"type": "init", "session_id": "s" * 10_000, "model": {"a": 1}},
    {"type": "init", "session_id": "\ud83d", "model": "m\0\udfff"}, {"type": "result", "result": "\ud83d"},
    {"type": "thread.started", "thread_id": "\ud83d"}, {"type": "error", "message": "\ud83d"},
    {"sessionID": "\ud83d", "type": "text", "part": {"text": "\ud83d"}},
]  # fmt: skip


@for_each("name", CLIS)
@for_each("number", range(len(HOSTILE)))
def test_no_line_breaks_a_reader(name: str, number: int) -> None:
    report = read(name, HOSTILE[number])
    assert min(report.tokens_in, report.tokens_cached, report.tokens_out) >= 0
    assert len(report.text) <= TEXT_MAX
    assert len(report.session_id) <= 200
    assert report.cost is None or report.cost >= 0
    told = report.text + report.session_id + report.model + report.message
    assert "\0" not in told.encode().decode()  # no half of a character is in it either


@for_each("name", CLIS)
@for_each("seed", range(10))
def test_broken_bytes_before_an_end_lose_only_their_line(name: str, seed: int) -> None:
    chance = random.Random(seed)
    noise = bytes(chance.randrange(256) for _ in range(2000)).replace(b"\n", b" ") + b"\n"
    ends: dict[str, Any] = {
        "claude": claude_result(),
        "codex": {"type": "turn.completed", "usage": {"output_tokens": 5}},
        "gemini": {"type": "result", "status": "success", "stats": {"output_tokens": 5}},
        "opencode": step("stop"),
    }
    assert read(name, noise, ends[name], size=chance.randrange(1, 300)).is_ended


@for_each("name", CLIS)
def test_a_line_without_end_is_left_out_and_not_kept(name: str) -> None:
    reader = PROVIDERS[name].reader()
    for _ in range(3 * LINE_MAX // 65536):
        reader.feed(b"x" * 65536)
    reader.feed(b"\n")
    assert reader.report.error is None
    assert reader.report.message == ""


@for_each("name", CLIS)
def test_an_event_inside_a_tools_output_is_text(name: str) -> None:
    """What a tool prints comes quoted inside an event and forges nothing."""
    forged = json.dumps({"type": "turn.failed", "error": {"message": "Quota exceeded"}}) + "\n"
    carriers: dict[str, Any] = {
        "claude": {"type": "user", "message": {"content": [{"type": "tool_result", "content": forged}]}},
        "codex": {
            "type": "item.completed",
            "item": {"type": "command_execution", "aggregated_output": forged},
        },
        "gemini": {"type": "tool_result", "output": forged},
        "opencode": {"type": "tool_use", "part": {"state": {"output": forged}}},
    }
    report = read(name, carriers[name])
    assert report.error is None
    assert not report.is_ended


@for_each("name", ["command", "replay", "pull"])
def test_who_has_no_stream_reports_nothing(name: str) -> None:
    assert read(name, {"type": "result", "is_error": True}) == Report()


# --- Words --------------------------------------------------------------------------------------------------


@for_each(
    ("text", "error"),
    [
        ("nothing of that kind", None), ("", None), ("429 bottles on the wall", None),
        ("status 402", QUOTA), ("status code: 413", PROMPT), ("HTTP/1.1 503", RATE), ('"code": 404', MODEL),
        ("getaddrinfo ENOTFOUND api.example", NETWORK), ("Bad Gateway", RATE),
        ("API key not valid. Please pass a valid API key.", SIGN_IN),
    ],
)  # fmt: skip
def test_words_have_a_class(text: str, error: ErrorClass | None) -> None:
    assert error_of(text) == error


# Each word of the table once, in a sentence that no other word of it would class.
SAID: dict[ErrorClass, tuple[str, ...]] = {
    PROMPT: (
        "error prompt_too_long", "context length exceeded", "context_length", "above the maximum context",
        "The input token count is high", "a token count of 9 exceeds it", "too many input tokens",
        "ContextOverflow",
    ),
    QUOTA: (
        "See your billing page.", "You are out of credit", "insufficient credits", "insufficient funds",
        "insufficient account balance", "payment required", "usage limit", "spend limit", "spending limit",
        "5-hour limit reached, it resets later",
    ),
    SIGN_IN: (
        "unauthorized", "unauthorised", "You are not logged in.", "log in again", "login again",
        "please run /login", "Please login", "authentication failed", "invalid api key", "Incorrect API key",
        "missing access key", "no valid apikey", "api key expired", "api_key_not found", "api_key_invalid",
        "invalid x-api-key", "token expired", "The token has expired", "sign in again", "set an auth method",
        "ProviderAuthError", "permission_error",
    ),
    MODEL: (
        "model_not_found", "ModelNotFound", "unknown model", "no such model", "invalid model",
        "model x not found", "model x doesn't exist", "model x is not supported", "models/x is not found",
        "not_found_error: model: x",
    ),
    RATE: (
        "rate limit", "too many requests", "overloaded", "high demand", "resource exhausted",
        "RESOURCE_EXHAUSTED", "server error", "server_error", "service unavailable", "temporary errors",
        "temporarily unavailable", "bad gateway", "internal error",
    ),
    NETWORK: (
        "ECONNREFUSED", "ECONNRESET", "ENOTFOUND", "ETIMEDOUT", "EAI_AGAIN", "connection refused",
        "connection reset", "connection error", "connection closed", "cannot connect", "unable to connect",
        "fetch failed", "error sending request", "malformed response", "stream disconnected", "stream closed",
        "stream ended without", "connection to it was lost", "idle timeout", "waiting for network",
        "network error", "socket hang up", "socket closed", "dns error", "timed out",
    ),
}  # fmt: skip


@for_each(("error", "text"), [(error, text) for error, texts in SAID.items() for text in texts])
def test_every_word_of_the_table_has_its_class(error: ErrorClass, text: str) -> None:
    assert error_of(text) == error


hours: Callable[[float], datetime] = lambda number: NOW + timedelta(hours=number)  # noqa: E731


@for_each(
    ("text", "expected"),
    [
        ("Try again in 1 hour.", hours(1)),
        ("try again in 2 hours 3 minutes", hours(2.05)),
        ("Try again in 3 days 4 hours", hours(76)),
        ("Please try again in 6m0s", hours(0.1)),
        ("Suggested retry after 3600s.", hours(1)),
        ("Please retry in 36.0s.", hours(0.01)),
        ("retry-after: 3600", hours(1)),
        ("usage limit reached|" + str(int(hours(2).timestamp())), hours(2)),
        ("resets at 2026-11-22T15:00:00Z", hours(3)),
        ("resets 3pm (UTC)", hours(3)),
        ("You've hit your limit · resets 3:30pm (UTC)", hours(3.5)),
        ("resets 11am", hours(23)),
        ("resets Nov 24, 5pm (UTC)", hours(53)),
        ("Try again at Nov 25th, 2026 3:00 PM.", hours(75)),
        ("resets 3pm (Nowhere/Land)", None),
        ("resets 25:99", None),
        ("in 5 files", None),
        ("in 0 seconds", None),
        ("Try again in 4000 days", None),
        ("resets 2020-01-01T00:00:00Z", None),
        ("resets Feb 31, 5pm", None),
        ("try again in 9999999 days", None),
        ("resets 3pm (Europe)", None),
        ("try again in 9999999 days, or at 2026-11-22T15:00:00Z", hours(3)),
        ("", None),
    ],
)
def test_a_time_to_come_back_is_read(text: str, expected: datetime | None) -> None:
    assert retry_at(text, NOW) == expected
