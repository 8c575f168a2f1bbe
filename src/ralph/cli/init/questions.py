"""The questions of `ralph init`, in H's order; what was found is proposed in brackets."""

from collections.abc import Mapping
from typing import Any

from ralph.agents.kinds import misspelt
from ralph.cli.asking import ask, yes
from ralph.doctor.proposals import Proposals
from ralph.errors import ConfigError
from ralph.kernel.verdict import Placement
from ralph.sandbox.names import BACKENDS
from ralph.settings.paths import Json

_MOST_DIGITS = 9
_NONE = "-"  # the answer that leaves out what is proposed


def answers_to(found: Proposals, environ: Mapping[str, str]) -> Json:
    """The settings that the person wants."""
    command = _agent(found, environ)
    asked = {"sandbox": _sandbox(found)} if found.sandbox and not found.is_empty else {}
    named = {"command": command} if command else {}
    return {
        **asked,
        "agent": {**named, "flags": _flags(found, command, asked.get("sandbox"))},
        "maximumIterations": ask("Maximum iterations [10]: ", _iterations),
        "completionResponse": ask("Completion response [DONE]: ", _word) or "DONE",
        "guardrails": _guardrails(found),
        "scm": _scm(found),
    }


def _agent(found: Proposals, environ: Mapping[str, str]) -> str:
    """The command; "" for whichever will be installed, where there is a project and no agent."""

    def understand(answer: str) -> str:
        try:
            near = misspelt(answer, environ)
        except ConfigError as error:  # builtin:MODEL
            raise ValueError(error.words) from None
        if near:
            raise ValueError(f"There is no {answer} here. Did you mean {near}?")
        return answer

    if not found.is_empty:
        proposed = found.command or "the first that is installed"
        answer = ask(f"Agent command [{proposed}]: ", understand)
        return "" if answer == _NONE else answer or found.command
    words = "Agent command (e.g., claude, codex, amp, or other LLM CLI): "
    return ask(words, lambda answer: understand(_needed(answer)))


def _sandbox(found: Proposals) -> str | None:
    def understand(answer: str) -> str | None:
        if answer and answer not in (_NONE, "auto", *BACKENDS):
            raise ValueError(f"This must be auto, {', '.join(BACKENDS)}, or {_NONE} for none.")
        return None if answer == _NONE else answer or "auto"

    return ask("Sandbox [auto]: ", understand)


def _flags(found: Proposals, command: str, sandbox: str | None) -> list[str]:
    proposed = list(found.flags(command, sandbox or "")) if command and not found.is_empty else []
    if not proposed:
        return ask("Agent flags (comma-separated, optional): ", _items)
    return ask(f"Agent flags [{','.join(proposed)}]: ", lambda answer: _or(answer, proposed))


def _or(answer: str, proposed: list[str]) -> list[str]:
    return [] if answer == _NONE else _items(answer) or proposed


def _guardrails(found: Proposals) -> list[dict[str, Any]]:
    """Those that were found, each accepted, changed or left out; and more by H's questions."""
    rails = []
    for check in found.checks:
        if not check.lacks:
            command = ask(f"Guardrail, {check.role} [{check.command}]: ", str) or check.command
            rails += [{"command": command, "failAction": "APPEND"}] if command != _NONE else []
    while command := ask("Add guardrail command (leave blank to finish): ", str):
        action = ask("  Fail action (APPEND|PREPEND|REPLACE): ", _fail_action)
        hint = ask("  Hint (optional, guidance for agent on failure): ", str)
        rail = {"command": command, "failAction": action}
        rails.append({**rail, "hint": hint} if hint else rail)
    return rails


def _scm(found: Proposals) -> dict[str, Any] | None:
    proposed = {"command": "git", "tasks": ["commit"]}

    def understand(answer: str) -> bool | None:
        """None accepts the proposal."""
        return None if not answer else answer != _NONE and yes(answer)

    question = "Configure SCM? (y/n) [git commit]: " if found.commits else "Configure SCM? (y/N): "
    wanted = ask(question, understand if found.commits else yes)
    if not wanted:
        return proposed if wanted is None else None
    return {
        "command": ask("  SCM command (e.g., git): ", _needed),
        "tasks": ask("  SCM tasks (comma-separated, e.g., commit,push): ", _needed_items),
    }


def _needed(answer: str) -> str:
    if not answer:
        raise ValueError("This cannot be blank.")
    return answer


def _word(answer: str) -> str:
    return "" if answer == _NONE else answer


def _items(answer: str) -> list[str]:
    return [item.strip() for item in answer.split(",") if item.strip()]


def _needed_items(answer: str) -> list[str]:
    items = _items(answer)
    if not items:
        raise ValueError("Name at least one.")
    return items


def _iterations(answer: str) -> int:
    if not answer:
        return 10
    if not (answer.isascii() and answer.isdigit() and len(answer) <= _MOST_DIGITS and int(answer)):
        raise ValueError("This must be a whole number, from 1 to 999999999.")
    return int(answer)


def _fail_action(answer: str) -> str:
    if answer.upper() not in Placement.__members__:
        raise ValueError("This must be APPEND, PREPEND or REPLACE.")
    return answer.upper()
