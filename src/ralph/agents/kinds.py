"""Agents by their commands: the kinds that are known, how one is found, and its own arguments."""

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise

from ralph.agents.acp import ACCOUNTS, ACP, program_name, speaks_acp
from ralph.agents.own import BUILTIN, BY_KEY, own_words
from ralph.agents.providers import OWN
from ralph.errors import ConfigError
from ralph.processes.which import which

Command = str | tuple[str, ...]  # as people give it: a line, or its words
FOUND_BY_ITSELF = ("claude", "codex", "amp", "gemini", "opencode")  # in this order, unless named
PROGRAMS = (*FOUND_BY_ITSELF, "copilot", "cursor-agent", "goose", OWN)
KINDS = (*PROGRAMS, ACP, "text")
INSTALLED_BY = {
    "claude": "npm install -g @anthropic-ai/claude-code",
    "codex": "npm install -g @openai/codex",
    "amp": "npm install -g @sourcegraph/amp",
    "gemini": "npm install -g @google/gemini-cli",
    "opencode": "npm install -g opencode-ai",
}


def kind_of(command: Sequence[str], override: str | None = None) -> str:
    """The basename in lower case, unless settings say otherwise, or its words that it speaks ACP;
    unknown ones speak text."""
    kind = override or (ACP if speaks_acp(command) else os.path.basename(command[0]).lower())
    if override and override not in KINDS:
        raise ConfigError(
            f"agent.kind: unknown kind {override!r}", f"Known kinds: {', '.join(KINDS)}."
        )
    return kind if kind in KINDS else "text"


def account_of(kind: str, command: Sequence[str]) -> str:
    """The kind whose login, keys and hosts an agent uses: its own, unless it is driven by ACP. Then
    the name of its program tells; "text" where none does."""
    if kind != ACP:
        return kind
    names = [program_name(word) for word in command if not word.startswith("-")]
    known = (ACCOUNTS.get(name, name) for name in names if name != ACP)
    return next((name for name in known if name in KINDS), "text")


def find_command(command: Command | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command as an argument vector whose first item is an executable that exists, or our own
    agent. `npx claude` is two words; a path with a blank in it is one, and so is each of a list."""
    if found := installed(command, environ):
        return found
    if command is not None:
        raise unusable(command if isinstance(command, str) else command[0], environ)
    other = "Or name another: --agent COMMAND. To see a run without any: ralph demo"
    raise ConfigError(
        f"no agent found on PATH (looked for {', '.join(FOUND_BY_ITSELF)})",
        "\n".join(("Install one, then type this again:", *how_to_install(environ), other)),
    )


def installed(command: Command | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The same; () if it is not there, or without a command, if no known agent is, and no key for
    our own."""
    if isinstance(command, tuple):
        found = installed(command[0], environ)
        return (*found, *command[1:]) if found else ()
    if command is not None and (own := own_words(command, environ)):
        return own
    path = environ.get("PATH", os.defpath)
    for name in (command,) if command is not None else FOUND_BY_ITSELF:
        if which(name, path):
            return (name,)
    if command is None:
        return own_words(None, environ)
    import shlex

    try:
        words = tuple(shlex.split(command))
    except ValueError:
        words = ()
    return words if len(words) > 1 and which(words[0], path) else ()


def is_path_from(directory: str, command: str) -> bool:
    """True if the command is a path from there; one among its arguments does not make it one."""
    if os.sep not in command or os.path.isabs(command) or own_words(command, {}):
        return False
    is_program = os.sep in command.split(maxsplit=1)[0]  # else a blank may be in its name
    return is_program or os.path.exists(os.path.join(directory, command))


def how_to_install(environ: Mapping[str, str]) -> list[str]:
    """A line for each known agent: what to type to have it; and how to do without one."""
    width = max(map(len, INSTALLED_BY))
    lines = [f"  {kind:<{width}}  {words}" for kind, words in INSTALLED_BY.items()]
    if which("npm", environ.get("PATH", os.defpath)) is None:
        lines.append("npm comes with Node.js: https://nodejs.org")
    return [*lines, f"Or set a key for Ralph's own agent: {BY_KEY}"]


def misspelt(command: str, environ: Mapping[str, str]) -> str:
    """The known agent that a command which is not there may mean; "" if it is one, or like none."""
    if command in KINDS or installed(command, environ):
        return ""
    import difflib

    near = difflib.get_close_matches(command.lower(), (BUILTIN, *PROGRAMS), 1)
    return next(iter(near), "")


def named_command(command: Command | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command as far as it is known, where nobody is going to start it."""
    given = command if isinstance(command, tuple) else (command or "none",)
    return installed(command, environ) or given


def unusable(command: str, environ: Mapping[str, str] = {}) -> ConfigError:
    """The reason why the system does not run this command, and what to do about it."""
    if os.path.isdir(command):
        problem, remedy = "is a directory", "Name the program itself: --agent COMMAND"
    elif not os.path.exists(command):
        problem, remedy = "was not found", missing_words(command, environ)
    elif not os.access(command, os.X_OK):
        problem, remedy = "is not executable", f"Make it executable: chmod +x {command}"
    elif os.sep not in command:
        problem, remedy = "was not found on PATH", f"It is in this directory: --agent ./{command}"
    else:
        problem = "is no program that this machine can run"
        remedy = f"Check its first line: head -1 {command}"
    return ConfigError(f"agent command {command!r} {problem}", remedy)


def missing_words(command: str, environ: Mapping[str, str]) -> str:
    """What to type where a command is not there: another name, or how to install it."""
    if command in INSTALLED_BY:
        here = installed(None, environ)
        other = f". Or take the one that is here: --agent {here[0]}" if here else ""
        return f"Install it: {INSTALLED_BY[command]}{other}"
    program = command.partition(" ")[0]
    if program != command and program in KINDS:
        how = f": {INSTALLED_BY[program]}" if program in INSTALLED_BY else ", or check PATH."
        return f"Install {program}{how}"
    near = misspelt(command, environ)
    if not near:
        return "Check --agent or agent.command, and PATH."
    needs = "" if installed(near, environ) else INSTALLED_BY.get(near, "")
    install = f". It is not installed: {needs}" if needs else ""
    return f"Did you mean {near}? Then: --agent {near}{install}"


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
    """The value that an agent's own arguments give one of these flags, last: `-m X`, `--model=X`"""
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
