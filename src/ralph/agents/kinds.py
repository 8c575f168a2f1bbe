"""Agents: how each CLI is called. A variant is a module in a dict; `text` is any other command.

An agent module has
    launch(request) -> Launch      the argument vector, and how the prompt gets there
    PROBE                          arguments that print its help; () where none is needed
    MODEL_FLAGS                    its own flags that name a model
    REPORTS                        what its stream says of money: "cost", "tokens" or nothing
    PERMISSION_HINT                what to add when the stream reports denied permissions
    LOGIN_HINT                     what to type when it is not logged in
    TELLS                          what its stream tells beside text: see `Tells`
    TESTED                         whether its real output is held against ours; else only its
                                   documentation was
    BARS_TOOLS                     whether it can be told to let its agent change nothing
    choices(help_text)             which flags depend on what the binary's help says
"""

import importlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from itertools import pairwise
from typing import Protocol, cast

from ralph.errors import ConfigError
from ralph.kernel.value import value

ARGUMENT_LIMIT = 128 * 1024 - 1  # Linux passes no single argument of 128 KiB or more
FOUND_BY_ITSELF = ("claude", "codex", "amp", "gemini", "opencode")  # in this order, unless named
KINDS = (*FOUND_BY_ITSELF, "copilot", "cursor-agent", "goose", "text")
_MODULES = {name: f"ralph.agents.{name.replace('-', '_')}" for name in KINDS}


class Tells(StrEnum):
    """Things that a stream may tell beside the agent's words."""

    TOOLS = "tools"  # tool calls, and which of them failed
    TODO = "todo"  # the agent's own task list
    DENIED = "denied"  # tools whose permission was denied
    STATUS = "status"  # the HTTP status of a failure


@value
class Request:
    """Everything a launch depends on."""

    command: tuple[str, ...]
    prompt: str
    flags: tuple[str, ...] = ()
    model: str | None = None
    stream: bool = True  # the dialect's own stream; else plain text
    dollars: float | None = None
    prompt_via: str | None = None
    prompt_file: str = ""  # where the prompt was written, if it goes by file
    answer_file: str = ""  # where a CLI may write its last message
    help_text: Callable[[], str | None] = lambda: None
    tools: bool = True  # else the agent is to change nothing, as far as the CLI can be told
    variable: Callable[[str], str | None] = lambda _: None  # of the agent's environment

    def model_by(self, flag: str) -> tuple[str, ...]:
        """The flag and the model; nothing where no model is asked for."""
        return () if self.model is None else (flag, self.model)


@value
class Launch:
    """The call of the agent, and the dialect that it will speak."""

    argv: tuple[str, ...]
    dialect: str
    stdin: bytes | None = None
    answer_file: str | None = None  # where the last message will be, instead of on stdout
    env: Mapping[str, str] = field(default_factory=dict)  # beside the agent's usual environment

    def shown(self, prompt: str) -> tuple[tuple[str, ...], str]:
        """The arguments without the prompt, and how the prompt gets there, in words."""
        if self.argv[-1] == prompt:
            return self.argv[:-1], "as the last argument"
        return self.argv, "in a file" if self.stdin is None else "on standard input"


@value
class Choice:
    """A flag that the launch takes because of what the probe found; "" where it takes none."""

    flag: str
    why: str


class AgentModule(Protocol):
    """The interface of a module of this package."""

    PROBE: tuple[str, ...]
    MODEL_FLAGS: tuple[str, ...]
    REPORTS: str
    PERMISSION_HINT: str
    LOGIN_HINT: str
    TELLS: frozenset[Tells]
    TESTED: bool
    BARS_TOOLS: bool

    def launch(self, request: Request) -> Launch:
        """The call for one turn."""

    def choices(self, help_text: str | None) -> tuple[Choice, ...]:
        """What the launch chooses by the binary's help, with the reasons; None is not probed."""


def kind_of(command: str, override: str | None = None) -> str:
    """The basename in lower case, unless settings say otherwise; unknown ones speak text."""
    kind = override or os.path.basename(command).lower()
    if override and override not in _MODULES:
        raise ConfigError(
            f"agent.kind: unknown kind {override!r}", f"Known kinds: {', '.join(_MODULES)}."
        )
    return kind if kind in _MODULES else "text"


def module_of(kind: str) -> AgentModule:
    """The module for a kind."""
    return cast("AgentModule", importlib.import_module(_MODULES[kind]))


def find_command(command: str | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command as an argument vector whose first item is an executable that exists. `npx claude`
    is two words; a path with a blank in it is one."""
    path = environ.get("PATH", os.defpath)
    for name in (command,) if command is not None else FOUND_BY_ITSELF:
        if shutil.which(name, path=path):
            return (name,)
    if command is None:
        raise ConfigError(
            f"no agent found on PATH (looked for {', '.join(FOUND_BY_ITSELF)})",
            "Install one, name another with --agent COMMAND, or try: ralph demo",
        )
    import shlex

    try:
        words = tuple(shlex.split(command))
    except ValueError:
        words = ()
    if len(words) > 1 and shutil.which(words[0], path=path):
        return words
    raise unusable(command)


def named_command(command: str | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command as far as it is known, where nobody is going to start it."""
    try:
        return find_command(command, environ)
    except ConfigError:
        return (command or "none",)


def unusable(command: str) -> ConfigError:
    """The reason why the system does not run this command, and what to do about it."""
    if os.path.isdir(command):
        problem, remedy = "is a directory", "Name the program itself: --agent COMMAND"
    elif not os.path.exists(command):
        problem, remedy = "was not found", "Check --agent or agent.command, and PATH."
    elif not os.access(command, os.X_OK):
        problem, remedy = "is not executable", f"Make it executable: chmod +x {command}"
    elif os.sep not in command:
        problem, remedy = "was not found on PATH", f"It is in this directory: --agent ./{command}"
    else:
        problem = "is no program that this machine can run"
        remedy = f"Check its first line: head -1 {command}"
    return ConfigError(f"agent command {command!r} {problem}", remedy)


def split_flags(flags: tuple[str, ...]) -> tuple[str, ...]:
    """H writes `"--model opus"` as one item; such an item becomes two arguments (ADR 14)."""
    import shlex

    arguments: list[str] = []
    for flag in flags:
        head = flag.partition("=")[0]
        if not flag.startswith("-") or not any(c.isspace() for c in head):
            arguments.append(flag)
            continue
        try:
            arguments.extend(shlex.split(flag))
        except ValueError as error:
            raise ConfigError(
                f"agent.flags: {flag}: {error}", "Write each word as an item of its own."
            ) from error
    return tuple(arguments)


def value_in(arguments: tuple[str, ...], flags: tuple[str, ...]) -> str | None:
    """The value that an agent's own arguments give one of these flags, last: `-m X`,
    `--model=X`."""
    found = None
    for argument, following in pairwise((*arguments, "")):
        name, _, stuck = argument.partition("=")
        if name in flags:
            found = stuck or following or found
    return found


def without(
    arguments: tuple[str, ...],
    flags: tuple[str, ...] = (),
    bare: tuple[str, ...] = (),
    lists: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """The arguments without these flags and their values: `flags` have one, those of `lists` all
    words up to the next flag, `bare` ones none."""
    kept = []
    is_value = is_listed = False
    for argument in arguments:
        name, stuck, _ = argument.partition("=")
        is_listed = is_listed and not argument.startswith("-")
        if is_value or is_listed:
            is_value = False
        elif name in lists:
            is_listed = not stuck
        elif name in flags:
            is_value = not stuck
        elif name not in bare:
            kept.append(argument)
    return tuple(kept)


def as_bytes(prompt: str) -> bytes:
    """The prompt for standard input; bytes that were never UTF-8 pass as they came."""
    return prompt.encode("utf-8", "surrogateescape")


def no_choices(help_text: str | None) -> tuple[Choice, ...]:
    """Nothing depends on the help of such an agent: its flags are the same in every version, or
    asking takes seconds."""
    return ()


def prompted(
    request: Request, argv: Sequence[str], dialect: str, *flag: str, longest: int = ARGUMENT_LIMIT
) -> Launch:
    """The call with the prompt last, behind the flag; or on standard input: as asked for, else
    where no argument would do."""
    stdin = request.prompt.startswith("-") or len(as_bytes(request.prompt)) > longest
    if request.prompt_via is not None:
        stdin = request.prompt_via == "stdin"
    if stdin:
        return Launch(tuple(argv), dialect, as_bytes(request.prompt))
    return Launch((*argv, *flag, request.prompt), dialect)


def must_fit(prompt: str, remedy: str) -> None:
    """Refuse a prompt that cannot be an argument, where it has to be one."""
    size = len(as_bytes(prompt))
    if size > ARGUMENT_LIMIT:
        message = f"the prompt has {size} bytes; one argument holds at most {ARGUMENT_LIMIT}"
        raise ConfigError(message, remedy)


def no_file(request: Request, kind: str) -> None:
    """Refuse `promptVia: file` for an agent that would take the path for the prompt."""
    if request.prompt_via == "file":
        raise ConfigError(
            f"agent.promptVia: {kind} does not read its prompt from a file",
            'Use "arg" or "stdin", or leave it out.',
        )


def no_model(request: Request, kind: str) -> None:
    """Refuse `--model` for an agent that has no such flag."""
    if request.model is not None:
        raise ConfigError(
            f"agent.model (--model): {kind} has no model flag that ralph knows",
            'Put the right flag into agent.flags, for example ["--some-model-flag", "NAME"].',
        )
