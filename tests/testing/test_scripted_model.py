"""The scripted model answers each protocol as the real services do, from one script."""

import gzip
import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from ralph.testing.scripted_model.server import ScriptedModel

TURN: dict[str, Any] = {
    "thinking": "hm",
    "text": "Hello, this is a text longer than one piece.",
    "tools": [{"name": "Bash", "input": {"command": "ls"}}],
    "usage": {"input": 7, "output": 3},
}
PATHS = {
    "anthropic": "/v1/messages",
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
}
TOOLS = [{"name": "Bash"}]


def post(url: str, body: dict[str, Any], **headers: str) -> bytes:
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        data = answer.read()
    assert isinstance(data, bytes)
    return data


def ask(model: ScriptedModel, protocol: str, body: dict[str, Any] | None = None) -> bytes:
    return post(model.url + PATHS[protocol], {"tools": TOOLS, "stream": True, **(body or {})})


def events(data: bytes) -> list[Any]:
    """The values of server-sent events; the last of a chat is the word [DONE]."""
    found = [line[6:] for line in data.decode().split("\n") if line.startswith("data: ")]
    return [text if text == "[DONE]" else json.loads(text) for text in found]


def test_anthropic_messages_stream() -> None:
    with ScriptedModel([TURN]) as model:
        found = events(ask(model, "anthropic", {"model": "claude-x"}))
    assert found[0]["message"]["model"] == "claude-x"
    assert found[0]["message"]["usage"]["input_tokens"] == 7
    deltas = [event["delta"] for event in found if event["type"] == "content_block_delta"]
    text = "".join(delta.get("text", "") for delta in deltas)
    arguments = "".join(delta.get("partial_json", "") for delta in deltas)
    assert text == TURN["text"]
    assert json.loads(arguments) == {"command": "ls"}
    assert found[-2]["delta"]["stop_reason"] == "tool_use"
    assert found[-1]["type"] == "message_stop"


def test_openai_responses_stream() -> None:
    with ScriptedModel([TURN]) as model:
        found = events(ask(model, "responses"))
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    deltas = [e["delta"] for e in found if e["type"] == "response.output_text.delta"]
    assert "".join(deltas) == TURN["text"]
    response = found[-1]["response"]
    kinds = [item["type"] for item in response["output"]]
    assert kinds == ["reasoning", "message", "function_call"]
    assert response["usage"]["total_tokens"] == 10


def test_openai_responses_freeform_tool() -> None:
    turn = {"tools": [{"name": "apply_patch", "input": "*** Begin Patch"}]}
    with ScriptedModel([turn]) as model:
        (item,) = events(ask(model, "responses"))[-1]["response"]["output"]
    assert (item["type"], item["input"]) == ("custom_tool_call", "*** Begin Patch")


def test_openai_chat_stream() -> None:
    with ScriptedModel([TURN]) as model:
        found = events(ask(model, "chat"))
    assert found[-1] == "[DONE]"
    assert found[-2]["usage"]["prompt_tokens"] == 7
    deltas = [event["choices"][0]["delta"] for event in found[:-2]]
    assert "".join(delta.get("content", "") for delta in deltas) == TURN["text"]
    assert found[-3]["choices"][0]["finish_reason"] == "tool_calls"


def test_gemini_stream() -> None:
    with ScriptedModel([TURN]) as model:
        found = events(ask(model, "gemini"))
    parts = [event["candidates"][0]["content"]["parts"][0] for event in found]
    assert parts[0] == {"text": "hm", "thought": True}
    assert parts[2] == {"functionCall": {"name": "Bash", "args": {"command": "ls"}}}
    assert found[-1]["candidates"][0]["finishReason"] == "STOP"
    assert len({event["responseId"] for event in found}) == 1


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/messages", "content"),
        ("/v1/responses", "output"),
        ("/v1/chat/completions", "choices"),
        ("/v1beta/models/m:generateContent", "candidates"),
    ],
)
def test_an_answer_can_come_whole(path: str, field: str) -> None:
    with ScriptedModel([TURN]) as model:
        answer = post(model.url + path, {"tools": TOOLS})
    found = json.loads(answer)[field]
    assert TURN["text"] in json.dumps(found)
    assert "Bash" in json.dumps(found)


@pytest.mark.parametrize("protocol", list(PATHS))
def test_an_error_is_an_http_error(protocol: str) -> None:
    error = {"status": 429, "message": "slow down", "headers": {"retry-after": "7"}}
    with ScriptedModel([{"error": error}]) as model:
        with pytest.raises(urllib.error.HTTPError) as caught:
            ask(model, protocol)
        with caught.value as answer:
            assert answer.code == 429
            assert answer.headers["retry-after"] == "7"
            assert json.loads(answer.read())["error"]["message"] == "slow down"


@pytest.mark.parametrize("protocol", ["anthropic", "responses", "chat"])
def test_a_stream_can_break_off_in_the_middle(protocol: str) -> None:
    script = [{**TURN, "cut": True}, {**TURN, "stream_error": {"message": "boom"}}, TURN]
    with ScriptedModel(script) as model:
        cut, failed, whole = (events(ask(model, protocol)) for _ in range(3))
    assert 0 < len(cut) < len(whole)
    assert "boom" in json.dumps(failed[-1])


def test_side_calls_and_lanes_leave_the_main_script_alone() -> None:
    """Only a call that offers tools takes a turn; a lane has turns of its own."""
    lane = {"match": "You are a helper", "turns": [{"text": "lane"}]}
    script = {"turns": [{"text": "one", "times": 2}, {"text": "${NAME}"}], "lanes": [lane]}
    helper = {"role": "user", "content": [{"text": "You are a helper"}]}
    bodies: list[dict[str, Any]] = [{"tools": []}, {}, {"messages": [helper]}, {}, {}, {}]
    with ScriptedModel({**script, "after": "stop"}, {"NAME": "filled"}) as model:
        texts = [
            json.loads(ask(model, "anthropic", {**body, "stream": False}))["content"][0]["text"]
            for body in bodies
        ]
        lanes = [call["lane"] for call in model.main_calls()]
    assert texts == ["ok", "one", "lane", "one", "filled", "(script over)"]
    assert lanes == ["main", "lane0", "main", "main", "main"]


def test_requests_are_remembered_without_credentials(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with ScriptedModel([TURN], log=str(log)) as model:
        post(f"{model.url}/v1/messages", {"a": 1}, **{"x-api-key": "hush"})
        body = gzip.compress(b'{"b": 2}')
        packed = {"Content-Encoding": "gzip"}
        request = urllib.request.Request(f"{model.url}/v1/messages", body, packed)
        urllib.request.urlopen(request).close()
        first, second = model.calls()
    assert first["headers"]["x-api-key"] == "(left out)"
    assert (first["body"], second["body"]) == ({"a": 1}, {"b": 2})
    assert [json.loads(line)["n"] for line in log.read_text().splitlines()] == [0, 1]


def test_it_runs_as_a_program(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "${WHO}"}]))
    command = [sys.executable, "-m", "ralph.testing.scripted_model.server", "--script", str(script)]
    with subprocess.Popen(
        [*command, "--var", "WHO=me"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        said = json.loads(post(f"{url}/v1/messages", {"tools": TOOLS}))
        post(f"{url}/__script", {"turns": [{"text": "new"}]})
        changed = json.loads(post(f"{url}/v1/messages", {"tools": TOOLS}))
        with urllib.request.urlopen(f"{url}/__state") as answer:
            assert len(json.load(answer)["calls"]) == 2
        process.terminate()
    assert said["content"][0]["text"] == "me"
    assert changed["content"][0]["text"] == "new"
