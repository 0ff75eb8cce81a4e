"""The wire formats of four vendors: what a command asks, and how a model's answer or an error looks to it.

Standard library only. Each format reads a request into an `Asked`, and writes an answer as server-sent events
or as one JSON document. The numbers of every answer are the same, so that tests can say what a run must have
counted. The texts of errors follow the vendors' documentation; they were not captured from vendors.
"""

import json
from dataclasses import dataclass, field
from typing import Any

# What each answer is said to have cost: read, of these from a cache, written, of these only thought.
READ, CACHED, WRITTEN, THOUGHT = 1500, 300, 50, 10

Json = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """One request: what was said so far (who, text), and which tools there are."""

    model: str
    said: list[tuple[str, str]]
    tools: list[str] = field(default_factory=list)
    streams: bool = True
    wants_json: bool = False


@dataclass(frozen=True)
class Say:
    """The model's last words."""

    text: str


@dataclass(frozen=True)
class Shell:
    """The model wants this command run."""

    command: str
    number: int = 1


Answer = Say | Shell


@dataclass(frozen=True)
class Problem:
    """An error as the vendor answers it."""

    status: int
    body: Json
    headers: dict[str, str] = field(default_factory=dict)


def texts(content: Any) -> str:
    """The text in a content that is a string, or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "\n".join(str(part.get("text") or part.get("content") or "") for part in parts if part)


def sse(data: Json, event: str = "") -> bytes:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


class Anthropic:
    """POST /v1/messages."""

    name = "anthropic"
    tool = "Bash"

    def takes(self, path: str) -> bool:
        return path == "/v1/messages"

    def read(self, path: str, body: Json) -> Asked:
        said: list[tuple[str, str]] = []
        for message in body["messages"]:
            content = message["content"]
            for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if part["type"] == "text":
                    said.append((message["role"], part["text"]))
                elif part["type"] == "tool_result":
                    said.append(("tool", texts(part.get("content"))))
        tools = [tool["name"] for tool in body.get("tools", [])]
        return Asked(body["model"], said, tools, bool(body.get("stream")))

    def _usage(self, written: int) -> Json:
        return {
            "input_tokens": READ - CACHED, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": CACHED, "output_tokens": written,
        }  # fmt: skip

    def _block(self, answer: Answer) -> Json:
        if isinstance(answer, Say):
            return {"type": "text", "text": answer.text}
        arguments = {"command": answer.command, "description": "The next step"}
        return {"type": "tool_use", "id": f"toolu_{answer.number}", "name": self.tool, "input": arguments}

    def whole(self, asked: Asked, answer: Answer) -> Json:
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": asked.model,
            "content": [self._block(answer)], "stop_sequence": None, "usage": self._usage(WRITTEN),
            "stop_reason": "end_turn" if isinstance(answer, Say) else "tool_use",
        }  # fmt: skip

    def stream(self, asked: Asked, answer: Answer) -> list[bytes]:
        message = self.whole(asked, answer)
        block, reason = message["content"][0], message["stop_reason"]
        start = {**message, "content": [], "stop_reason": None, "usage": self._usage(1)}
        if isinstance(answer, Say):
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": answer.text}
        else:
            written = json.dumps(block["input"])
            empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": written}
        events: list[Json] = [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": {"output_tokens": WRITTEN},
            },
            {"type": "message_stop"},
        ]  # fmt: skip
        return [sse(event, event["type"]) for event in events]

    def problem(self, status: int, kind: str, message: str) -> Json:
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}

    def problems(self, model: str) -> dict[str, Problem]:
        def one(status: int, kind: str, message: str, **headers: str) -> Problem:
            return Problem(status, self.problem(status, kind, message), _dashed(headers))

        rate = "This request would exceed your organization's rate limit."
        return {
            "sign_in": one(401, "authentication_error", "invalid x-api-key"),
            "rate_hour": one(429, "rate_limit_error", rate, retry_after="3600"),
            "rate_soon": one(429, "rate_limit_error", rate, retry_after="1"),
            "quota": one(
                400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."
            ),
            "model": one(404, "not_found_error", f"model: {model}"),
            "too_long": one(
                400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"
            ),
            "server": one(500, "api_error", "Internal server error"),
            "overloaded": one(529, "overloaded_error", "Overloaded"),
        }


class Responses:
    """POST /v1/responses."""

    name = "responses"
    tool = "exec_command"

    def takes(self, path: str) -> bool:
        return path == "/v1/responses"

    def read(self, path: str, body: Json) -> Asked:
        said: list[tuple[str, str]] = []
        tools = [str(tool.get("name")) for tool in body.get("tools") or []]
        for item in body["input"]:
            kind = item.get("type", "message")
            if kind == "message":
                said.append((item["role"], texts(item["content"])))
            elif kind.endswith("_call_output"):
                said.append(("tool", texts(item["output"])))
            elif kind == "additional_tools":
                tools.append("exec")
        return Asked(body["model"], said, tools, bool(body.get("stream")))

    def _item(self, asked: Asked, answer: Answer) -> Json:
        if isinstance(answer, Say):
            part = {"type": "output_text", "text": answer.text, "annotations": []}
            return {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
        call = {"id": f"fc_{answer.number}", "call_id": f"call_{answer.number}"}
        wanted = json.dumps({"cmd": answer.command})
        if self.tool in asked.tools:
            return {"type": "function_call", **call, "name": self.tool, "arguments": wanted}
        code = f"const r = await tools.exec_command({wanted}); text(JSON.stringify(r));"
        return {"type": "custom_tool_call", **call, "name": "exec", "namespace": "functions", "input": code}

    def whole(self, asked: Asked, answer: Answer) -> Json:
        usage = {
            "input_tokens": READ, "input_tokens_details": {"cached_tokens": CACHED},
            "output_tokens": WRITTEN, "output_tokens_details": {"reasoning_tokens": THOUGHT},
            "total_tokens": READ + WRITTEN,
        }  # fmt: skip
        output = [self._item(asked, answer)]
        return {"id": "resp_1", "object": "response", "status": "completed", "output": output, "usage": usage}

    def stream(self, asked: Asked, answer: Answer) -> list[bytes]:
        whole = self.whole(asked, answer)
        item = whole["output"][0]
        started = {**whole, "status": "in_progress", "output": [], "usage": None}
        events: list[Json] = [
            {"type": "response.created", "response": started},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]
        if isinstance(answer, Say):
            delta = {
                "type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0,
                "content_index": 0, "delta": answer.text,
            }  # fmt: skip
            events.insert(2, delta)
        return [sse(event, event["type"]) for event in events]

    def problem(self, status: int, kind: str, message: str) -> Json:
        return {"error": {"message": message, "type": "invalid_request_error", "code": kind, "param": None}}

    def problems(self, model: str) -> dict[str, Problem]:
        def one(status: int, kind: str, message: str, **headers: str) -> Problem:
            return Problem(status, self.problem(status, kind, message), _dashed(headers))

        rate = "Rate limit reached for requests."
        spent = "You exceeded your current quota, please check your plan and billing details."
        return {
            "sign_in": one(401, "invalid_api_key", "Incorrect API key provided."),
            "rate_hour": one(429, "rate_limit_exceeded", rate, retry_after="3600"),
            "rate_soon": one(429, "rate_limit_exceeded", rate, retry_after="1"),
            "quota": one(429, "insufficient_quota", spent),
            "model": one(
                404, "model_not_found", f"The model `{model}` does not exist or you do not have access to it."
            ),
            "too_long": one(
                400, "context_length_exceeded", "Your input exceeds the context window of this model."
            ),
            "server": one(500, "server_error", "The server had an error while processing your request."),
            "overloaded": one(503, "server_error", "The engine is currently overloaded."),
        }


class Chat(Responses):
    """POST /v1/chat/completions."""

    name = "chat"
    tool = "bash"

    def takes(self, path: str) -> bool:
        return path == "/v1/chat/completions"

    def read(self, path: str, body: Json) -> Asked:
        said = [
            (message["role"], texts(message["content"]))
            for message in body["messages"]
            if message.get("content")
        ]
        tools = [tool["function"]["name"] for tool in body.get("tools", [])]
        return Asked(body["model"], said, tools, bool(body.get("stream")))

    def _usage(self) -> Json:
        return {
            "prompt_tokens": READ, "completion_tokens": WRITTEN, "total_tokens": READ + WRITTEN,
            "prompt_tokens_details": {"cached_tokens": CACHED},
            "completion_tokens_details": {"reasoning_tokens": THOUGHT},
        }  # fmt: skip

    def _message(self, answer: Answer) -> Json:
        if isinstance(answer, Say):
            return {"role": "assistant", "content": answer.text}
        arguments = json.dumps({"command": answer.command, "description": "The next step"})
        call = {
            "index": 0, "id": f"call_{answer.number}", "type": "function",
            "function": {"name": self.tool, "arguments": arguments},
        }  # fmt: skip
        return {"role": "assistant", "tool_calls": [call]}

    def whole(self, asked: Asked, answer: Answer) -> Json:
        reason = "stop" if isinstance(answer, Say) else "tool_calls"
        choice = {"index": 0, "message": self._message(answer), "finish_reason": reason}
        return {
            "id": "chat_1", "object": "chat.completion", "created": 1, "model": asked.model,
            "choices": [choice], "usage": self._usage(),
        }  # fmt: skip

    def stream(self, asked: Asked, answer: Answer) -> list[bytes]:
        whole = self.whole(asked, answer)
        reason = whole["choices"][0]["finish_reason"]

        def chunk(delta: Json, finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return sse({**head, "choices": [choice]})

        head = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": asked.model}
        return [
            chunk({"role": "assistant", "content": ""}),
            chunk({key: value for key, value in self._message(answer).items() if key != "role"}),
            chunk({}, reason),
            sse({**head, "choices": [], "usage": self._usage()}),
            b"data: [DONE]\n\n",
        ]


class Gemini:
    """POST /v1beta/models/MODEL:generateContent and :streamGenerateContent."""

    name = "gemini"
    tool = "run_shell_command"

    def takes(self, path: str) -> bool:
        return path.startswith("/v1beta/models/") and path.lower().endswith("generatecontent")

    def read(self, path: str, body: Json) -> Asked:
        said: list[tuple[str, str]] = []
        for content in body["contents"]:
            for part in content["parts"]:
                if "text" in part:
                    said.append((content.get("role", "user"), part["text"]))
                elif "functionResponse" in part:
                    said.append(("tool", json.dumps(part["functionResponse"].get("response"))))
        tools = [
            one["name"] for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []
        ]
        model, _, verb = path.removeprefix("/v1beta/models/").partition(":")
        wants_json = "json" in str(body.get("generationConfig", {}).get("responseMimeType", ""))
        return Asked(model, said, tools, verb.startswith("stream"), wants_json)

    def whole(self, asked: Asked, answer: Answer) -> Json:
        if isinstance(answer, Say):
            text = answer.text
            if asked.wants_json:
                text = json.dumps({"reasoning": "It is a small task.", "model_choice": "flash"})
            part: Json = {"text": text}
        else:
            arguments = {"command": answer.command, "description": "The next step"}
            part = {"functionCall": {"id": f"call_{answer.number}", "name": self.tool, "args": arguments}}
        usage = {
            "promptTokenCount": READ, "cachedContentTokenCount": CACHED, "thoughtsTokenCount": THOUGHT,
            "candidatesTokenCount": WRITTEN - THOUGHT, "totalTokenCount": READ + WRITTEN,
        }  # fmt: skip
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        return {
            "candidates": [candidate], "usageMetadata": usage, "modelVersion": asked.model,
            "responseId": "response-1",
        }  # fmt: skip

    def stream(self, asked: Asked, answer: Answer) -> list[bytes]:
        whole = self.whole(asked, answer)
        candidate = whole["candidates"][0]
        first = {**candidate, "content": {"role": "model", "parts": [{"text": ""}]}}
        if isinstance(answer, Say):
            first = {**candidate, "content": {"role": "model", "parts": [{"text": "So: "}]}}
        del first["finishReason"]
        begun = {key: value for key, value in whole.items() if key != "usageMetadata"}
        return [sse({**begun, "candidates": [first]}), sse(whole)]

    def problem(self, status: int, kind: str, message: str, *details: Json) -> Json:
        return {"error": {"code": status, "message": message, "status": kind, "details": list(details)}}

    def problems(self, model: str) -> dict[str, Problem]:
        def one(status: int, kind: str, message: str, *details: Json) -> Problem:
            return Problem(status, self.problem(status, kind, message, *details))

        rpc = "type.googleapis.com/google.rpc."
        spent = "You exceeded your current quota, please check your plan and billing details."
        per_day = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel", "quotaMetric": "requests"}
        return {
            "sign_in": one(401, "UNAUTHENTICATED", "Request had invalid authentication credentials."),
            "bad_key": one(
                400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.",
                {"@type": rpc + "ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"},
            ),
            "rate_hour": one(
                429, "RESOURCE_EXHAUSTED", spent, {"@type": rpc + "RetryInfo", "retryDelay": "3600s"}
            ),
            "rate_soon": one(
                429, "RESOURCE_EXHAUSTED", spent, {"@type": rpc + "RetryInfo", "retryDelay": "1s"}
            ),
            "quota": one(
                429, "RESOURCE_EXHAUSTED", spent, {"@type": rpc + "QuotaFailure", "violations": [per_day]}
            ),
            "model": one(404, "NOT_FOUND", f"models/{model} is not found for API version v1beta."),
            "too_long": one(
                400, "INVALID_ARGUMENT",
                "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
            ),
            "server": one(500, "INTERNAL", "An internal error has occurred."),
            "overloaded": one(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
        }  # fmt: skip


Wire = Anthropic | Responses | Chat | Gemini
WIRES: list[Wire] = [Anthropic(), Responses(), Chat(), Gemini()]


def wire_named(name: str) -> Wire:
    return next(wire for wire in WIRES if wire.name == name)


def _dashed(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
