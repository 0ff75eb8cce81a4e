"""The model stub by itself: each wire format, the script's next step, and every fault."""

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.cases import for_each
from tests.end_to_end.installation import wait_for
from tests.real_agents.scripts import LAST_WORDS, SCRIPTS, nothing, work
from tests.real_agents.stub import FAULTS, STREAM_FAULTS, ModelStub, closed_address
from tests.real_agents.wires import WIRES, Wire, wire_named

PROMPT = "# Task ledger-7: Add a total\n\nRound 1. You are the coder."
NAMES = [wire.name for wire in WIRES]
PATHS = {
    "anthropic": "/v1/messages?beta=true",
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
    "gemini": "/v1beta/models/some-model:streamGenerateContent?alt=sse",
}


def asking(name: str, *results: str, prompt: str = PROMPT, tools: bool = True, stream: bool = True) -> Any:
    """A request as the command of this format sends it after so many results."""
    tool = wire_named(name).tool
    if name == "anthropic":
        messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": prompt}]}]
        for result in results:
            part = {"type": "tool_result", "tool_use_id": "toolu_1", "content": result}
            messages.append({"role": "user", "content": [part]})
        return {
            "model": "some-model", "messages": messages, "tools": [{"name": tool}] * tools, "stream": stream,
        }  # fmt: skip
    if name == "responses":
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}
        given = [{"type": "function_call_output", "call_id": "call_1", "output": one} for one in results]
        named = [{"type": "function", "name": tool}] * tools
        return {"model": "some-model", "input": [said, *given], "tools": named, "stream": stream}
    if name == "chat":
        chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": prompt}]
        chat += [{"role": "tool", "tool_call_id": "call_1", "content": one} for one in results]
        named = [{"type": "function", "function": {"name": tool}}] * tools
        return {"model": "some-model", "messages": chat, "tools": named, "stream": stream}
    contents = [{"role": "user", "parts": [{"text": prompt}]}]
    for result in results:
        response = {"id": "call_1", "name": tool, "response": {"output": result}}
        contents.append({"role": "user", "parts": [{"functionResponse": response}]})  # type: ignore[dict-item]
    return {"contents": contents, "tools": [{"functionDeclarations": [{"name": tool}]}] * tools}


def ask(stub: ModelStub, path: str, body: Any, method: str = "POST") -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body. Raises what http.client raises where the answer broke off."""
    connection = http.client.HTTPConnection(urlsplit(stub.url).netloc, timeout=30)
    try:
        connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return response.status, headers, response.read()
    finally:
        connection.close()


@pytest.fixture
def stub() -> Iterator[ModelStub]:
    with ModelStub() as running:
        yield running


@pytest.mark.parametrize("name", NAMES)
def test_the_next_step_follows_from_how_many_results_came_after_the_prompt(
    name: str, stub: ModelStub
) -> None:
    answers = [ask(stub, PATHS[name], asking(name, *["ok"] * done))[2].decode() for done in range(3)]
    assert "git commit" in answers[0]
    assert "steroids tasks update ledger-7 --status review" in answers[1]
    assert LAST_WORDS in answers[2]


@pytest.mark.parametrize("name", NAMES)
def test_results_of_an_earlier_prompt_do_not_count(name: str, stub: ModelStub) -> None:
    before, after = asking(name, "ok", "ok"), asking(name, prompt=PROMPT.replace("-7", "-8"))
    key = next(key for key in ("messages", "input", "contents") if key in before)
    both = {**before, key: [*before[key], *after[key]]}
    answer = ask(stub, PATHS[name], both)[2].decode()
    assert "hello from ledger-8" in answer


@pytest.mark.parametrize("name", NAMES)
def test_a_request_without_tools_is_answered_with_words_and_is_no_turn(name: str, stub: ModelStub) -> None:
    status, _, answer = ask(stub, PATHS[name], asking(name, tools=False))
    assert status == 200
    assert b"A small task" in answer
    assert stub.turns() == []
    assert [one.wire for one in stub.seen] == [name]


@pytest.mark.parametrize("name", NAMES)
def test_without_streaming_the_same_answer_is_one_document(name: str, stub: ModelStub) -> None:
    path = PATHS[name].replace("streamG", "g").removesuffix("?alt=sse")
    status, headers, answer = ask(stub, path, asking(name, stream=False))
    assert status == 200
    assert headers["content-type"] == "application/json"
    assert "git commit" in json.dumps(json.loads(answer))


def test_a_router_that_wants_json_gets_json(stub: ModelStub) -> None:
    body = {**asking("gemini", tools=False), "generationConfig": {"responseMimeType": "application/json"}}
    answer = json.loads(ask(stub, "/v1beta/models/some-model:generateContent", body)[2])
    assert json.loads(answer["candidates"][0]["content"]["parts"][0]["text"])["model_choice"] == "flash"


def test_a_codex_model_without_a_shell_tool_is_given_code(stub: ModelStub) -> None:
    body = {**asking("responses", tools=False)}
    body["input"] = [{"type": "additional_tools", "tools": []}, *body["input"]]
    answer = ask(stub, PATHS["responses"], body)[2].decode()
    assert "custom_tool_call" in answer
    assert "tools.exec_command" in answer


PROBLEMS = [(wire.name, fault) for wire in WIRES for fault in FAULTS if fault in wire.problems("some-model")]


@for_each(("name", "fault"), PROBLEMS)
def test_a_fault_is_answered_as_the_vendor_answers_it(name: str, fault: str) -> None:
    with ModelStub(fault=fault) as stub:
        status, headers, answer = ask(stub, PATHS[name], asking(name))
    said = wire_named(name).problems("some-model")[fault]
    assert status == said.status >= 400
    assert json.loads(answer) == said.body
    if fault == "rate_hour":
        assert headers.get("retry-after") == "3600" or '"3600s"' in answer.decode()


def test_a_fault_that_a_format_does_not_know_is_refused_and_not_passed_over() -> None:
    with ModelStub(fault="bad_key") as stub:
        status, _, answer = ask(stub, PATHS["chat"], asking("chat"))
    assert status == 400
    assert b"chat knows no bad_key" in answer


@for_each("wire", WIRES, ids=NAMES)
def test_a_cut_stream_breaks_off_and_a_short_one_ends_properly_too_early(wire: Wire) -> None:
    with ModelStub(fault="cut") as stub, pytest.raises(http.client.IncompleteRead):
        ask(stub, PATHS[wire.name], asking(wire.name))
    with ModelStub(fault="short") as stub:
        status, _, short = ask(stub, PATHS[wire.name], asking(wire.name))
    with ModelStub() as stub:
        whole = ask(stub, PATHS[wire.name], asking(wire.name))[2]
    assert status == 200
    assert 0 < len(short) < len(whole)


@for_each("fault", ["hang", "mute"])
def test_a_hanging_answer_ends_with_the_stub(fault: str) -> None:
    with ModelStub(fault=fault) as stub:
        connection = http.client.HTTPConnection(urlsplit(stub.url).netloc, timeout=30)
        connection.request("POST", PATHS["chat"], json.dumps(asking("chat")))
        wait_for(stub.turns, "the request")
        if fault == "hang":
            assert connection.getresponse().read(6) == b"data: "
    connection.close()
    assert [one.tools for one in stub.turns()] == [("bash",)]


def test_an_unknown_fault_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="'flood' is none of"):
        ModelStub(fault="flood")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [("/v1/elsewhere", {}, 404), (PATHS["chat"], {"messages": 3}, 400), (PATHS["anthropic"], [], 400)],
)
def test_what_is_no_request_is_refused(path: str, body: Any, status: int, stub: ModelStub) -> None:
    assert ask(stub, path, body)[0] == status
    assert ask(stub, "/v1/models", None, method="GET")[0] == 404


def test_who_takes_the_stub_for_a_proxy_is_noted(stub: ModelStub) -> None:
    assert ask(stub, "example.org:443", None, method="CONNECT")[0] == 403
    assert [(one.method, one.status) for one in stub.seen] == [("CONNECT", 403)]


@for_each("name", sorted(SCRIPTS))
def test_a_script_without_a_task_does_no_harm(name: str) -> None:
    if name != "never_ends":
        assert SCRIPTS[name]("Write me a poem.") == []
    assert SCRIPTS[name](PROMPT) or name == "nothing"


def test_a_reviewer_approves_and_a_coder_hands_in() -> None:
    review = "# Review ledger-7: Add a total\n\nRound 2. You are the reviewer."
    assert work(review)[-1].startswith("steroids tasks approve ledger-7")
    assert len(work(PROMPT)) == 2
    assert nothing(PROMPT) == []


def test_reject_once_rejects_answers_and_approves() -> None:
    script = SCRIPTS["reject_once"]
    first = "# Review ledger-7: Add a total\n\nRound 1. You are the reviewer."
    assert "steroids tasks reject ledger-7" in script(first)[0]
    assert "| ISSUE-R1-001 | addressed |" in script(PROMPT + "\n### ISSUE-R1-001 (HIGH)")[-1]
    assert "steroids tasks approve" in script(first.replace("Round 1", "Round 2"))[-1]


def test_a_closed_address_answers_nobody() -> None:
    netloc = urlsplit(closed_address()).netloc
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection(netloc, timeout=5).connect()


def test_every_stream_fault_is_named() -> None:
    assert set(STREAM_FAULTS) <= set(FAULTS)
