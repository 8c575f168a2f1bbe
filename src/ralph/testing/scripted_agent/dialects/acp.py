"""An agent that speaks ACP, version 1, or 2 where its script says `"version": "acp 2"`.

It asks before each command that it runs. One call is one turn: the client's requests are answered
until the prompt comes, and the turn is its answer. Every text comes in two pieces.
"""

import json
import sys
from typing import Any

from ralph.testing.scripted_agent.dialects.speech import Lines, ScriptedCall, Voice, new_id
from ralph.testing.scripted_agent.script import ScriptedFailure

Json = dict[str, Any]
SESSION = "session-1"
MODELS = ("small", "large")
MODES = ("default", "read-only")
KINDS = {"write_file": "edit", "read_file": "read"}


class Talk:
    """What was heard of the client so far."""

    version = 1
    prompt_id: Any = None


def handshake(version: str | None) -> tuple[str | None, list[str]]:
    """Answer until the prompt comes: the prompt, None where none does, and what was chosen before
    it, as flags."""
    told: list[str] = []
    while request := hear():
        method, params = request.get("method"), request.get("params", {})
        if method == "session/prompt":
            Talk.prompt_id = request["id"]
            if Talk.version == 2:
                answer(request["id"], {})
                send(update(sessionUpdate="state_update", state="running"))
            return "".join(block["text"] for block in params["prompt"]), told
        if method == "initialize":
            Talk.version = 2 if version == "acp 2" else 1
            answer(request["id"], introduction())
        elif method == "session/new":
            options = [option("model", MODELS), option("mode", MODES)]
            answer(request["id"], {"sessionId": SESSION, "configOptions": options})
        elif method == "session/set_config_option":
            told += [f"--{params['configId']}", params["value"]]
            answer(request["id"], {"configOptions": []})
    return None, told


def introduction() -> Json:
    who = {"name": "scripted", "version": "1.0.0"}
    told: Json = {"protocolVersion": Talk.version, "authMethods": []}
    if Talk.version == 2:
        return {**told, "info": who, "capabilities": {"session": {}}}
    return {**told, "agentInfo": who, "agentCapabilities": {}}


def option(name: str, values: tuple[str, ...]) -> Json:
    choices = [{"value": value, "name": value.title()} for value in values]
    identity = "configId" if Talk.version == 2 else "id"
    kind = {"type": "select", "category": name, "name": name.title()}
    return {identity: name, **kind, "currentValue": values[0], "options": choices}


class Acp(Voice):
    """Updates of the session, and at the end the answer to the prompt, or its failure."""

    def thinks(self, text: str) -> Lines:
        yield chunk("agent_thought_chunk", text)

    def echo(self, prompt: str) -> Lines:
        yield chunk("user_message_chunk", prompt)

    def says(self, text: str) -> Lines:
        self.last = text
        message = new_id("msg_")
        for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
            yield chunk("agent_message_chunk", piece, messageId=message)

    def calls(self, call: ScriptedCall) -> Lines:
        yield update(
            sessionUpdate="tool_call" if Talk.version == 1 else "tool_call_update",
            status="pending",
            **described(call),
        )

    def may(self, call: ScriptedCall) -> bool:
        """Ask before a command is run."""
        if "run" not in call.tool:
            return True
        options = [{"optionId": kind, "name": kind, "kind": kind} for kind in OPTIONS]
        about: Json = {"toolCall": described(call)}
        if Talk.version == 2:
            about = {"title": call.name, "subject": {"type": "tool_call", **about}}
        asked = {"sessionId": SESSION, **about, "options": options}
        send({"id": call.id, "method": "session/request_permission", "params": asked})
        while (told := hear()).get("id") != call.id and told:
            pass
        return bool(told) and told["result"]["outcome"].get("optionId") == "allow_once"

    def answers(self, call: ScriptedCall) -> Lines:
        content = [{"type": "content", "content": {"type": "text", "text": call.output}}]
        status = "failed" if call.error else "completed"
        told = {"toolCallId": call.id, "status": status, "content": content}
        yield update(sessionUpdate="tool_call_update", **told)

    def plans(self, todo: list[tuple[str, str]]) -> Lines:
        entries = [{"content": text, "priority": "low", "status": done} for text, done in todo]
        if Talk.version == 2:
            plan = {"type": "items", "planId": "plan-1", "entries": entries}
            yield update(sessionUpdate="plan_update", plan=plan)
        else:
            yield update(sessionUpdate="plan", entries=entries)

    def delegates(self, text: str) -> Lines:
        call = ScriptedCall({"name": "task", "input": {"prompt": "Look"}, "output": text})
        yield from self.calls(call)
        yield from self.answers(call)

    def result(self) -> Lines:
        """A good end; one that exits with a failure does so before."""
        if self.turn.get("exit"):
            return
        yield from self.ended({"stopReason": "end_turn", "usage": self.counted()})

    def fails(self, failure: ScriptedFailure) -> Lines:
        status = failure.get("status", 500)
        code = -32000 if status == 401 else status
        error = {"code": code, "message": failure.get("message", "the service failed")}
        if Talk.version == 2:
            yield from self.ended({"stopReason": "error", "error": error})
        else:
            yield {"jsonrpc": "2.0", "id": Talk.prompt_id, "error": error}

    def failing_exit(self, failure: ScriptedFailure) -> int:
        """An agent lives on when a turn has failed; this one has only one."""
        return 0

    def ended(self, told: Json) -> Lines:
        if Talk.version == 2:
            yield update(sessionUpdate="state_update", state="idle", **told)
        else:
            yield {"jsonrpc": "2.0", "id": Talk.prompt_id, "result": told}

    def counted(self) -> Json:
        tokens = self.usage
        return {
            "totalTokens": sum(tokens.values()),
            "inputTokens": tokens["input"],
            "outputTokens": tokens["output"],
            "cachedReadTokens": tokens["cache_read"],
            "cachedWriteTokens": tokens["cache_write"],
        }


OPTIONS = ("allow_always", "allow_once", "reject_once")


def described(call: ScriptedCall) -> Json:
    kind = "execute" if "run" in call.tool else KINDS.get(call.name, "other")
    title = call.tool.get("run", call.name)
    told = {"toolCallId": call.id, "name": call.name, "title": title, "kind": kind}
    return {**told, "rawInput": call.input}


def chunk(kind: str, text: str, **more: str) -> Json:
    return update(sessionUpdate=kind, content={"type": "text", "text": text}, **more)


def update(**told: Any) -> Json:  # noqa: ANN401  any JSON value
    params = {"sessionId": SESSION, "update": told}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def hear() -> Json:
    """The client's next message; nothing where it is gone."""
    line = sys.stdin.buffer.readline() if sys.stdin else b""
    found: Json = json.loads(line) if line else {}
    return found


def answer(number: object, result: Json) -> None:
    send({"id": number, "result": result})


def send(message: Json) -> None:
    data = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False)
    sys.stdout.buffer.write(f"{data}\n".encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()
