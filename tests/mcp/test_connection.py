"""One client and the server's loop: strange input, calls that fail, and how it leaves."""

import os
import select
import socket
from pathlib import Path
from threading import Thread

import pytest

from kits.mcp_client import McpClient
from ralph.mcp import asking, reading, serve
from ralph.mcp.jsonrpc import LARGEST
from ralph.mcp.pending import ToolAnswer


def test_a_line_that_is_too_long_is_told_and_the_next_is_read(workspace: Path) -> None:
    with McpClient(str(workspace)) as client:
        for _ in range(2):
            client.write(
                b'{"jsonrpc": "2.0", "id": 9, "method": "' + b"x" * (LARGEST + 1) + b'"}\n'
            )
        client.write(b'{"id": "\xff\xfe\x00"}\n')
        assert client.answer(client.ask("ping", {}))["result"] == {}
        codes = [each["error"]["code"] for each in client.others]
        assert codes == [-32700] * 3
        assert "4 MB" in client.others[0]["error"]["message"]


def test_a_bug_of_a_tool_ends_neither_the_server_nor_others(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def oh(*_: object) -> ToolAnswer:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(asking, "questions", oh)
    with McpClient(str(workspace)) as client:
        error = client.answer(client.begin("questions"))["error"]
        assert error["code"] == -32603
        assert "bug in ralph" in error["message"]
        assert client.call("status")["runs"] == []
    assert "ZeroDivisionError" in client.said[0]


def test_what_a_tool_does_not_take_is_named_with_what_it_does(workspace: Path) -> None:
    with McpClient(str(workspace)) as client:
        words = client.refused("wait", seconds=61)
        assert "<= 60" in words
        assert "`wait` takes: run, seconds, ignore_questions." in words
        assert "unknown field `x`" in client.refused("questions", x=1)
        assert client.call("status", run=None)["runs"] == []  # null is as good as left out
        assert "no run was started" in client.refused("wait", seconds=None)
        assert "missing required field `text`" in client.refused("note", text=None)
        assert "holds a NUL" in client.refused("tasks_add", title="x", tags=["a", "b\0"])


def test_a_client_leaves_a_socket_whose_answers_it_has_not_read(workspace: Path) -> None:
    ours, theirs = socket.socketpair()
    client, codes = serve.Client(theirs.fileno(), theirs.fileno()), list[int]()

    def work() -> None:
        codes.append(serve.serve(str(workspace), client, os.environ, print))

    with theirs:
        thread = Thread(target=work)
        thread.start()
        ours.send(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        select.select([ours], (), ())
        ours.close()  # which resets the connection
        thread.join()
    assert codes == [0]


def test_a_client_that_leaves_is_told_what_can_be_told(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Never:
        """An answer that does not come."""

        hurried = False

        def look(self) -> None:
            return None

        def news(self) -> None:
            return None

        def hurry(self) -> None:
            self.hurried = True

        def cancel(self) -> None: ...

    never = Never()
    monkeypatch.setattr(reading, "log", lambda *_: never)
    monkeypatch.setattr(serve, "_GRACE", 0.2)
    monkeypatch.setattr(serve, "_MOST_PENDING", 2)
    client = McpClient(str(workspace))
    with client:
        client.begin("log")
        client.begin("log")
        assert "2 calls are not answered yet" in client.refused("status")
        client.leave()
        assert client.read() is None
    assert never.hurried
    assert client.code == 0


def test_a_text_that_nobody_could_read_is_cut(workspace: Path) -> None:
    words = serve._fit({"a": ["x" * 100_000], "b": "\udcff", "c": (1, None, True)})
    assert len(words["a"][0]) < 50_000
    assert words["b"] == "?"
    assert words["c"] == [1, None, True]
