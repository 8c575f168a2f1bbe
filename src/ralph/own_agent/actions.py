"""The five actions (B §Actions): read, write, bash, git and eval, as a model may call them."""

import json
import shlex
from collections.abc import Callable, Mapping

from ralph.kernel.value import value
from ralph.own_agent import commands, files
from ralph.own_agent.commands import Ran, interpreter
from ralph.own_agent.files import Denied
from ralph.own_agent.talk import Answer, Call, Json, Tool
from ralph.processes.child import Starter

_SECONDS, _LONGEST = 120.0, 3600.0  # of a command: unless the model says otherwise, and at most
_END = "RALPH_EVAL"  # of code, as the guard reads it
_SHOWN = 100  # characters of a name that a model made up
Guard = Callable[[str], str | None]  # the reason why a command is refused, or None


@value
class Hands:
    """Carries out what a model wants, in a workspace."""

    workspace: str
    environ: Mapping[str, str]  # of commands
    start: Starter
    guard: Guard

    def act(self, call: Call) -> Answer:
        """Carry out a call; whatever is wrong with it is an answer."""
        action = _ACTIONS.get(call.name)
        if action is None:
            words = f"there is no action {call.name[:_SHOWN]!r}: there are {', '.join(_ACTIONS)}"
            return Answer(call, words, is_error=True)
        if call.input is None:
            return Answer(call, "the arguments are broken JSON: call again", is_error=True)
        try:
            found = action(self, call.input)
        except Refusal as refusal:
            return Answer(call, str(refusal), is_error=True, is_refused=True)
        except Denied as denied:
            return Answer(call, str(denied), is_error=True)
        if isinstance(found, str):
            return Answer(call, found)
        return Answer(call, found.words(), found.code != 0 or found.is_late, found.code)

    def read(self, given: Json) -> str:
        path = _text(given, "path", "file_path")
        return files.read(self.workspace, path, files.line_range(given.get("lines")))

    def write(self, given: Json) -> str:
        path = _text(given, "path", "file_path")
        if "content" in given:
            return files.write(self.workspace, path, _text(given, "content"))
        old, new = _text(given, "old", "old_string"), _text(given, "new", "new_string")
        everywhere = given.get("all") is True
        return files.replace(self.workspace, path, old, new, everywhere=everywhere)

    def bash(self, given: Json) -> Ran:
        command = _text(given, "command", "cmd")
        self._ask_guard(command)
        argv = (commands.shell(self.environ), "-c", command)
        return self._run(argv, _seconds(given.get("timeout")))

    def git(self, given: Json) -> Ran:
        words = given.get("args")
        if isinstance(words, str):
            try:
                words = shlex.split(words)
            except ValueError as error:
                raise Denied(f"args: {error}") from None
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise Denied('args must be a list of words, such as ["diff", "--stat"]')
        words = words[1:] if words[:1] == ["git"] else words
        argv = ("git", *words)
        self._ask_guard(shlex.join(argv))
        return self._run(argv, _SECONDS)

    def eval(self, given: Json) -> Ran:
        code = _text(given, "code")
        argv = interpreter(given.get("language") or "python", self.workspace, self.environ)
        end = _END
        while end in code:
            end += "_"
        self._ask_guard(f"python3 - <<'{end}'\n{code}\n{end}\n")
        return self._run(argv, _seconds(given.get("timeout")), code.encode("utf-8", "replace"))

    def _run(self, argv: tuple[str, ...], seconds: float, stdin: bytes | None = None) -> Ran:
        return commands.run(
            self.start, argv, self.workspace, self.environ, seconds=seconds, stdin=stdin
        )

    def _ask_guard(self, command: str) -> None:
        if reason := self.guard(command):
            raise Refusal(reason)


class Refusal(Denied):
    """A command that the guard does not let pass."""


_ACTIONS: Mapping[str, Callable[[Hands, Json], str | Ran]] = {
    "read": Hands.read,
    "write": Hands.write,
    "bash": Hands.bash,
    "git": Hands.git,
    "eval": Hands.eval,
}


def _text(given: Json, *names: str) -> str:
    """An argument that must be a text, by the first of its names that is there."""
    for name in names:
        if isinstance(found := given.get(name), str):
            return found.encode("utf-8", "replace").decode()  # half a character can go nowhere
    raise Denied(f"{names[0]} is missing: it must be a text")


def _seconds(given: object) -> float:
    if given is None:
        return _SECONDS
    if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
        raise Denied(f"timeout: {json.dumps(given)} is no number of seconds")
    return float(min(given, _LONGEST))


def _schema(required: str, **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": required.split()}


def _said(about: str, **more: object) -> Json:
    return {"type": "string", "description": about, **more}


_PATH = _said("Path in the workspace, relative to it.")
TOOLS = (
    Tool(
        "read",
        "Read a file, or list a directory.",
        _schema("path", path=_PATH, lines=_said('Only these lines, such as "10-60".')),
    ),
    Tool(
        "write",
        "Write a file: with `content` all of it; with `old` and `new` replace a text that stands "
        "in it exactly once.",
        _schema(
            "path",
            path=_PATH,
            content=_said("The whole new content."),
            old=_said("The text to replace, exactly as it stands in the file."),
            new=_said("The text in its place."),
            all={"type": "boolean", "description": "Replace it everywhere."},
        ),
    ),
    Tool(
        "bash",
        "Run a bash command in the workspace. There is no terminal and no input. When it ends, "
        "everything that it started in the background is ended too. Long output is cut in its "
        "middle.",
        _schema(
            "command",
            command=_said("The command."),
            timeout={"type": "number", "description": "Seconds until it is ended. [120]"},
        ),
    ),
    Tool(
        "git",
        "Run git in the workspace.",
        _schema(
            "args",
            args={
                "type": "array",
                "items": {"type": "string"},
                "description": 'Its arguments, such as ["diff", "--stat"].',
            },
        ),
    ),
    Tool(
        "eval",
        "Run code in a fresh interpreter, in the workspace. It sees nothing of earlier calls.",
        _schema(
            "code",
            code=_said("The code; what it prints is the outcome."),
            language=_said("[python]", enum=["python", "typescript"]),
        ),
    ),
)


def guard_of(workspace: str, environ: Mapping[str, str]) -> Guard:
    """Asks the guard as an agent's hook does (ADR 25)."""
    from ralph.hooks.pre_tool import refusal

    asked = {**environ, "RALPH_GUARD": "1"}

    def ask(command: str) -> str | None:
        call = {"tool_name": "Bash", "cwd": workspace, "tool_input": {"command": command}}
        try:
            return refusal(json.dumps(call).encode(), asked, workspace)
        except Exception as error:  # noqa: BLE001  what the guard cannot judge is not let pass
            return f"guard: refused, because the guard itself failed: {error!r}"

    return ask
