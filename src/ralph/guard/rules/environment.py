"""Variables of the environment that steer the history, the guard or what is run."""

import re

from ralph.guard.follow.state import State
from ralph.guard.rules.git import forces, runs
from ralph.guard.rules.rule import Refused
from ralph.guard.shell.text import names, plain

STEERING = names("RALPH_GUARD RALPH_RUN RALPH_START")
_HISTORY = names("HISTFILE HISTSIZE HISTFILESIZE HISTCONTROL HISTIGNORE")
_COMMANDS = names(
    "EDITOR VISUAL PAGER GIT_PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR BROWSER GIT_SSH_COMMAND GIT_SSH"
    " GIT_ASKPASS SSH_ASKPASS GIT_EXTERNAL_DIFF MANPAGER LESSOPEN"
)
_HOOK_SWITCHES = names("HUSKY HUSKY_SKIP_HOOKS LEFTHOOK PRE_COMMIT_ALLOW_NO_CONFIG")
_ADDRESSES = names("HOST BIND BIND_ADDR BIND_ADDRESS ADDRESS LISTEN SERVER_HOST FLASK_RUN_HOST")
# Whatever they name is run.
_ALWAYS = names(
    "LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV ENV PROMPT_COMMAND PYTHONSTARTUP PERL5DB"
    " GIT_EXEC_PATH GIT_TEMPLATE_DIR MAKEFILES"
)
_AGENT = r"-(?:javaagent|agentpath|agentlib)\b"
# Options that load a file; a package that is installed may be loaded, and so may a plain option.
_OPTIONS = {
    "NODE_OPTIONS": r"(?:^|\s)(?:-r|--require|--import|--(?:experimental-)?loader)[\s=]*"
    r"['\"]?(?:[./~]|data:|file:|https?:)",
    "PERL5OPT": r"[;({/]|(?:^|\s)-(?:[eEI]|d(?!:)|[mM]lib\b)",
    "RUBYOPT": r"(?:^|\s)-(?:r\s*['\"]?[./~]|[eI])",
    "JAVA_TOOL_OPTIONS": _AGENT,
    "_JAVA_OPTIONS": _AGENT,
    "JDK_JAVA_OPTIONS": _AGENT,
    "MAVEN_OPTS": _AGENT,
    "GRADLE_OPTS": _AGENT,
    "GOFLAGS": r"-(?:toolexec|exec)\b",
    "MAKEFLAGS": r"--eval|-f|SHELL=",
}


def judge_assignment(name: str, text: str, state: State) -> None:
    """Refuse variables that steer the history, the guard or what is run."""
    if name in _HISTORY:
        raise Refused("shell-history", f"{name} turns the shell's history off")
    if name in STEERING:
        raise Refused("guard", f"{name} steers the guard")
    judge_loading(name, text)
    _judge_for_git(name, text, state)
    if name.startswith("PS") and name[2:].isdecimal() and ("$(" in text or "`" in text):
        raise Refused("evasion", f"{name} runs a command whenever it is shown")
    if name in _HOOK_SWITCHES:
        raise Refused("git-history", f"{name} skips the checks of the repository's hooks")
    if state.where.strict and name in _ADDRESSES and text.startswith(("0.0.0.0", "::")):  # noqa: S104
        raise Refused("exposure", f"{name}={text} serves every network; use 127.0.0.1")
    if name in _COMMANDS and text:
        if not plain(text):
            raise Refused("evasion", f"nobody can tell which command {name} names")
        state.copy().text(text)


def judge_loading(name: str, text: str) -> None:
    """Refuse a variable that makes other programs run what it names."""
    loads = name in _ALWAYS and bool(text) and not (name == "ENV" and text.isalnum())
    if loads or (name in _OPTIONS and re.search(_OPTIONS[name], text)):
        raise Refused("evasion", f"{name} makes other programs run what it names")


def _judge_for_git(name: str, text: str, state: State) -> None:
    """Refuse variables by which git takes settings that would be refused after `-c`."""
    for key, value in _git_settings(name, text, state):
        if runs(key, value) or key.lower().startswith("alias."):
            raise Refused("evasion", f"git would run a command: {key}")
        if key.lower() == "core.hookspath":
            raise Refused("git-history", "it replaces the repository's hooks")
        if forces(key, value):
            raise Refused("force-push", f"{key} makes a push a forced one")


def _git_settings(name: str, text: str, state: State) -> list[tuple[str, str]]:
    """`GIT_CONFIG_KEY_0` and `GIT_CONFIG_VALUE_0`, in any order, and `GIT_CONFIG_PARAMETERS`."""
    number = name.rpartition("_")[2]
    if name.startswith("GIT_CONFIG_KEY_"):
        return [(text, state.value(f"GIT_CONFIG_VALUE_{number}") or "")]
    if name.startswith("GIT_CONFIG_VALUE_"):
        return [(state.value(f"GIT_CONFIG_KEY_{number}") or "", text)]
    if name != "GIT_CONFIG_PARAMETERS":
        return []
    pairs = [piece.partition("=") for piece in text.replace("'='", "=").strip("'").split("' '")]
    return [(key, value) for key, _, value in pairs]
