"""A scripted agent: a real executable that speaks a CLI's stream and plays the turns of a script.

`install_agent`, in `install`, writes one; `script` says what a turn may do.
One call is one turn. Exit 97: the prompt was not what the script demands; 98: no turn is left.
Standard library only: it runs as `python -I -S`, in any directory, with any environment.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from ralph.testing.scripted_agent.commandline import Arguments
from ralph.testing.scripted_agent.dialects.speech import Lines, ScriptedCall, voice_for
from ralph.testing.scripted_agent.script import (
    AgentScript,
    ScriptedTool,
    ScriptedTurn,
    Spawned,
    read_input,
)

FOREVER = 10**8


def main() -> NoReturn:
    """The program: `SCRIPT ARGUMENT…` on the command line."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = run(AgentScript(sys.argv[1]), sys.argv[2:])
    except BrokenPipeError:
        code = 1
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def run(script: AgentScript, argv: list[str]) -> int:
    """One call of the agent; its exit code."""
    arguments = Arguments(script.kind, argv)
    help_text = script.book.get("help", arguments.grammar.help)
    if arguments.probe is not None:
        script.note_probe(argv)
        version = script.book.get("version", arguments.grammar.version)
        text = help_text if arguments.probe == "help" else version
        write(1, f"{text.rstrip()}\n".encode())
        return 0
    if script.kind == "acp":  # what it is told comes as messages
        from ralph.testing.scripted_agent.dialects.acp import handshake

        heard, told = handshake(script.book.get("version"))
        if heard is None:
            return 0
        prompt, argv = heard, [*argv, *told]
    else:
        prompt = read_input() if arguments.prompt is None else arguments.prompt
    turn = script.take_turn(argv, prompt)
    objection = arguments.objection(help_text)
    if objection is not None:
        return complain(objection, arguments.grammar.usage_error)
    if turn is None:
        return complain("scripted agent: the script is over", 98)
    for pattern in turn.get("prompt_must", []):
        import re

        if not re.search(pattern, prompt, re.DOTALL):
            words = f"the prompt does not match {pattern!r}; it is:\n{prompt}"
            return complain(f"scripted agent: {words}", 97)
    return Performance(turn, arguments, prompt).play()


def complain(message: str, code: int) -> int:
    write(2, f"{message}\n".encode("utf-8", "surrogateescape"))
    return code


def write(descriptor: int, data: bytes) -> None:
    """Write all of it at once, unbuffered: nothing is left to flush when a reader goes away."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class Performance:
    """One turn, played."""

    def __init__(self, turn: ScriptedTurn, arguments: Arguments, prompt: str) -> None:
        self.turn = turn
        self.prompt = prompt
        self.voice = voice_for(arguments, turn)
        self.output_file = arguments.output_file
        self.framed = turn.get("frame", True)
        self.barred = arguments.bars_tools(os.environ)
        self.call: ScriptedCall | None = None  # the tool call under way

    def play(self) -> int:
        """Do everything the turn says; the exit code."""
        for name, code in self.voice.leaves.items():
            signal.signal(signal.Signals[f"SIG{name}"], leaving(code))
        for name in self.turn.get("ignore", []):
            # A handler, not SIG_IGN: what the agent starts must not inherit it.
            signal.signal(signal.Signals[f"SIG{name}"], lambda *_: None)
        try:
            self.prepare()
            self.speak()
            code = self.conclude()
        except KeyboardInterrupt:
            self.print(self.voice.interrupted(self.call))
            return self.voice.interrupted_exit
        hang = self.turn.get("hang", 0)
        time.sleep(hang if hang != "before" else 0)
        return code

    def prepare(self) -> None:
        """Do what comes before the first word."""
        for path, content in self.turn.get("files", {}).items():
            write_file(path, content)
        for command in self.turn.get("spawn", []):
            spawn(command)
        if "stderr" in self.turn:
            complain(self.turn["stderr"].removesuffix("\n"), 0)
        if self.turn.get("hang") == "before":
            time.sleep(FOREVER)

    def speak(self) -> None:
        """Everything up to the last text, in the order of `ScriptedTurn`."""
        turn, voice = self.turn, self.voice
        if self.framed:
            self.print(voice.opening(self.prompt))
        if turn.get("echo_prompt"):
            self.print(voice.echo(self.prompt))
        self.print_raw()
        if info := turn.get("rate_limit_event"):
            allowed = {"status": "allowed", "rateLimitType": "five_hour"}
            self.print(voice.limits(info if isinstance(info, dict) else allowed))
        if "thinking" in turn:
            self.print(voice.thinks(turn["thinking"]))
        *early, last = self.texts() or [""]
        for text in early:
            self.print(voice.says(text))
        for tool in turn.get("tools", []):
            self.use(tool)
        self.print_asides()
        if last:
            self.print(voice.says(last))

    def texts(self) -> list[str]:
        """The blocks of text, the response tag at the end of the last."""
        text = self.turn.get("text", [])
        texts = [text] if isinstance(text, str) else list(text)
        if "response" in self.turn:
            tag = f"<response>{self.turn['response']}</response>"
            texts = [*texts[:-1], "\n".join([*texts[-1:], tag])]
        return texts

    def print_raw(self) -> None:
        raw = self.turn.get("raw", "")
        if isinstance(raw, str):
            write(1, raw.encode())
        else:
            import binascii

            write(1, binascii.a2b_base64(raw["base64"]))
        count, size = self.turn.get("lines_of", (0, 0))
        for _ in range(count):
            write(1, b"x" * (size - 1) + b"\n")

    def print_asides(self) -> None:
        if "todo" in self.turn:
            self.print(self.voice.plans(self.turn["todo"]))
        if "subagent_text" in self.turn:
            self.print(self.voice.delegates(self.turn["subagent_text"]))
        if "hook_text" in self.turn:
            self.print(self.voice.hears(self.turn["hook_text"]))

    def use(self, tool: ScriptedTool) -> None:
        self.call = ScriptedCall(tool)
        self.print(self.voice.calls(self.call))
        if self.barred or not self.voice.may(self.call):
            self.call.ended("Error: No such tool available", 1)
        elif "run" in tool and not tool.get("denied"):
            self.call.ended(*run_command(tool["run"]))
        self.print(self.voice.answers(self.call))
        self.call = None

    def conclude(self) -> int:
        """The result, good or bad; the exit code."""
        if "error" in self.turn:
            failure = self.turn["error"]
            if not self.print(self.voice.fails(failure)):
                complain(failure.get("message", f"API error {failure.get('status', 500)}"), 1)
            return self.turn.get("exit", self.voice.failing_exit(failure))
        if self.framed and not self.turn.get("no_result"):
            self.print(self.voice.result())
        if self.output_file:
            write_file(self.output_file, self.voice.last)
        return self.turn.get("exit", 0)

    def print(self, lines: Lines) -> int:
        """Print lines; how many there were."""
        compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        count = 0
        for count, line in enumerate(lines, 1):  # noqa: B007  there may be none
            text = line if isinstance(line, str) else compact(line)
            write(1, f"{text}\n".encode("utf-8", "surrogateescape"))
        return count


def leaving(code: int | None) -> Callable[..., object] | signal.Handlers:
    """The handler of a signal: leave with this exit code, or die of it."""
    return signal.SIG_DFL if code is None else lambda *_: os._exit(code)


def write_file(path: str, content: str) -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)


def run_command(command: str) -> tuple[str, int]:
    """Run a tool's command; its output and exit code. It has a session of its own, as Claude Code's
    have: it outlives SIGTERM and SIGKILL of the agent, and only SIGINT takes it along."""
    import subprocess

    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate()
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return output.decode("utf-8", "replace"), process.returncode


def spawn(command: str | Spawned) -> None:
    """Leave a command running; it keeps standard output open, as daemons do."""
    import subprocess

    wanted: Spawned = {"run": command} if isinstance(command, str) else command
    subprocess.Popen(
        ["/bin/sh", "-c", wanted["run"]],
        stdin=subprocess.DEVNULL,
        start_new_session=wanted.get("setsid", False),
    )
