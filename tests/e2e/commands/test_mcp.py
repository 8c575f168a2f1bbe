"""`ralph mcp` as a process: how it begins and ends, what it prints where, and what outlives it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest
from run_support import RALPH, Done, await_gone, is_alive, journals, prepare, program, ralph

from ralph.mcp.protocol import LEGACY
from ralph.testing.scripted_agent.install import calls

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
HELLO |= {"params": {"protocolVersion": LEGACY[0], "capabilities": {}}}
LISTED = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
UNTIL_TOLD = "until [ -e go ]; do sleep 0.02; done"
# Whatever of these is imported for the first answers makes each client wait for it.
HEAVY = (
    *("click", "ralph.cli.main", "ralph.journal", "ralph.ui.status", "ralph.runner", "rich"),
    *(
        "ralph.settings",
        "ralph.loops",
        "ralph.web",
        "asyncio",
        "subprocess",
        "socket",
        "threading",
    ),
)


class Served:
    """A real `ralph mcp`, and its pipes."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [*RALPH, "mcp", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ask(self, message: dict[str, object]) -> dict[str, object]:
        """The answer to a message."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        answer: dict[str, object] = json.loads(self.process.stdout.readline())
        return answer

    def call(self, tool: str, **arguments: object) -> dict[str, object]:
        params = {"name": tool, "arguments": arguments}
        answer = self.ask({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params})
        result = answer["result"]
        assert isinstance(result, dict)
        data: dict[str, object] = result["structuredContent"]
        return data

    def end(self) -> Done:
        out, err = self.process.communicate(timeout=30)
        return Done(self.process.returncode, out.decode(), err.decode())


@pytest.fixture
def served(workspace: Path) -> Iterator[Served]:
    served = Served()
    served.ask(HELLO)
    yield served
    served.process.kill()
    served.process.communicate()


def piped(text: str, *words: str) -> Done:
    """What `ralph mcp` answers to what is piped into it."""
    done = subprocess.run(
        [*RALPH, "mcp", *words], input=text.encode(), capture_output=True, check=False
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_it_ends_with_its_client(workspace: Path) -> None:
    done = piped(f"{json.dumps(HELLO)}\n\nnonsense\n{json.dumps(LISTED)}")
    assert (done.code, done.err) == (0, "")
    begun, wrong, listed = done.objects
    assert begun["result"]["serverInfo"]["name"] == "ralph"
    assert wrong["error"]["code"] == -32700
    assert len(listed["result"]["tools"]) == 13  # the last line needs no end
    assert piped("").code == 0


def test_what_is_under_way_is_answered_when_the_client_leaves(workspace: Path) -> None:
    prepare(workspace, {"response": "DONE"})
    params = {"name": "start", "arguments": {"prompt": "Do it"}}
    start = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    done = piped(f"{json.dumps(HELLO)}\n{json.dumps(start)}\n")
    assert done.code == 0
    assert len(done.objects) in (1, 2)  # it is not waited for long
    deadline = time.monotonic() + 30
    while not journals():  # whatever became of the client
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_130(served: Served, number: signal.Signals) -> None:
    served.process.send_signal(number)
    done = served.end()
    assert (done.code, done.err) == (130, "")


def test_a_client_that_does_not_read_ends_it(served: Served) -> None:
    assert served.process.stdout is not None
    assert served.process.stdin is not None
    served.process.stdout.close()
    for _ in range(2):
        try:
            served.process.stdin.write(json.dumps(LISTED).encode() + b"\n")
            served.process.stdin.flush()
        except BrokenPipeError:
            break
    assert served.process.wait(timeout=30) == 0


@pytest.mark.parametrize("words", [("--root", "none"), ("--root", "file"), ("--root=none",)])
def test_a_root_that_is_no_directory_is_refused(workspace: Path, words: tuple[str, ...]) -> None:
    (workspace / "file").touch()
    done = piped(json.dumps(HELLO), *words)
    assert (done.code, done.out) == (2, "")
    assert "there is no directory" in done.err
    assert "--root DIR" in done.err


def test_a_directory_that_is_gone_is_no_bug(workspace: Path) -> None:
    gone = workspace / "gone"
    gone.mkdir()
    words = f"cd {gone} && rmdir {gone} && exec {sys.executable} -m ralph mcp"
    done = subprocess.run(["sh", "-c", words], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"current directory cannot be used" in done.stderr


def test_a_person_is_told_what_it_is(workspace: Path) -> None:
    child = pexpect.spawn(sys.executable, ["-m", "ralph", "mcp"], timeout=30, encoding="utf-8")
    child.expect("This speaks MCP with a program")
    child.expect("Ctrl\\+C ends it, and no run")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert "claude mcp add ralph -- ralph mcp" in ralph("mcp", "--help").out


def test_a_run_outlives_a_server_that_is_killed(workspace: Path, served: Served) -> None:
    """Also one that is killed with its group, as the official clients do it."""
    patient = {"text": "I wait.", "tools": [{"name": "Bash", "run": UNTIL_TOLD}]}
    agent = prepare(workspace, {**patient, "response": "DONE"})
    begun = served.call("start", prompt="Do it")
    served.process.kill()
    served.process.communicate()
    pid = begun["pid"]
    assert isinstance(pid, int)
    assert os.getpgid(pid) != os.getpgid(0)
    assert is_alive(pid)
    (workspace / "go").touch()
    again = Served()
    again.ask(HELLO)
    assert again.call("wait", run=begun["run"], seconds=60)["state"] == "completed"
    assert again.process.poll() is None
    again.process.kill()
    again.process.communicate()
    await_gone(pid, *(call["pid"] for call in calls(agent)))


def test_an_agent_starts_no_run_whatever_it_clears(workspace: Path) -> None:
    """It is known by its descent; it may look."""
    params = {"name": "start", "arguments": {"prompt": "Mine"}}
    start = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    look = {**start, "id": 3, "params": {"name": "status", "arguments": {}}}
    lines = "\n".join(json.dumps(each) for each in (HELLO, start, look))
    (workspace / "lines").write_text(f"{lines}\n")
    kept = " ".join(f'{name}="${name}"' for name in ("HOME", "PATH", "RALPH_STATE_DIR"))
    script = f"env -i {kept} {sys.executable} -m ralph mcp < lines > answers 2>&1"
    agent = program(workspace.parent / "agent", f'{script}\necho "<response>DONE</response>"')
    prepare(workspace, {}, agent={"command": agent})
    assert ralph("run", "-p", "x").code == 0
    _, refused, looked = map(json.loads, (workspace / "answers").read_text().splitlines())
    assert refused["result"]["isError"]
    assert "an agent may not start a run" in refused["result"]["content"][0]["text"]
    (entry,) = looked["result"]["structuredContent"]["runs"]
    assert entry["state"] == "running"


def test_the_first_answers_need_few_modules(workspace: Path) -> None:
    lines = "\n".join(json.dumps(each) for each in (HELLO, LISTED))
    script = (
        "import sys; sys.argv = ['ralph', 'mcp']\n"
        "from ralph.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print(sorted(m for m in sys.modules if m.startswith({HEAVY!r})), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=lines.encode(), capture_output=True, check=True
    )
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr.decode().strip() == "[]"
