"""The agent of a run: its permission flags, hooks, environment and files. Only claude takes hooks
on its command line, and states its context window, which the hooks of the next turns hear of. Our
own agent, and our client of ACP, ask the guard by themselves."""

import json
import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ralph.agents.acp import ACP
from ralph.agents.cli_agent import CliAgent, Setup, take_file
from ralph.agents.clis import unasked
from ralph.agents.kinds import split_flags, value_in, without
from ralph.agents.probe import Probe
from ralph.agents.turn_files import Filing, NumberedFiles, TurnFiles
from ralph.hosts.hosts import HOSTS, quickly, with_packages
from ralph.hosts.protocol import KEPT
from ralph.journal.runs import read_tail
from ralph.kernel.turn import Order, Role
from ralph.kernel.value import replace
from ralph.processes.child import Starter, start
from ralph.runner.plan import Plan
from ralph.runner.wired import AgentReaders

if TYPE_CHECKING:
    from ralph.git.checkpoint.trees import GitTrees

WINDOW_VARIABLE = "CLAUDE_CONTEXT_WINDOW"
_TAIL = 1 << 18  # bytes of a stream in which its result stands
_RESULT = re.compile(rb'^\{"type": ?"result".*$', re.MULTILINE)
_SETTINGS = "--settings"
MACHINES = ("sbx", "docker")  # sandboxes where our paths lead nowhere


def build_agent(
    plan: Plan[Any],
    run_dir: str,
    readers: AgentReaders = AgentReaders(),
    *,
    env: Mapping[str, str] = {},
    filing: Filing | None = None,
    start: Starter = start,
    take_file: Callable[[str], str] = take_file,
    may_probe: bool = True,
) -> CliAgent:
    agent, flags = plan.settings.agent, split_flags(plan.settings.agent.flags)
    if agent.model:  # some CLIs refuse two
        flags = without(flags, plan.cli.model_flags)
    help_text: Callable[[], str | None] = lambda: None  # noqa: E731
    if agent.probe and plan.cli.probe:
        cache = os.path.join(plan.state_root, "probes.json")
        environ = plan.environment.values
        help_text = Probe(plan.command, plan.cli.probe, environ, cache, may_ask=may_probe)
    filing = filing or NumberedFiles(run_dir)
    if "post-tool" in _hooks(plan) and WINDOW_VARIABLE not in plan.environment.values:
        filing = WindowFiling(filing)  # hooks of ours hear of the window, which nobody has said
    setup = Setup(
        cli=plan.cli,
        command=plan.command,
        flags=(*flags, *permission_flags(plan), *_hook_flags(plan)),
        model=agent.model,
        stream=plan.settings.stream_agent_output,
        prompt_via=agent.prompt_via,
        help_text=help_text,
        prices=plan.prices,
        workspace=plan.workspace,
        env={**plan.environment.values, "RALPH_RUN": os.path.basename(run_dir), **env},
        filing=filing,
        start=start,
        take_file=take_file,
        name=plan.agent,
        asked=plan.model,
    )
    return CliAgent(setup, readers.on_events, readers.on_launch, readers.record)


def _can_hook(plan: Plan[Any]) -> bool:
    """True for an agent that takes hooks from us: not if it has settings of its own."""
    flags = (*plan.command[1:], *split_flags(plan.settings.agent.flags))
    return plan.kind == "claude" and not value_in(flags, (_SETTINGS,))


def _asks(plan: Plan[Any]) -> bool:
    """True for an agent that asks the guard, by a hook of ours or by itself."""
    return plan.runs_ralph or _can_hook(plan)


def _keeps_start(plan: Plan[Any]) -> bool:
    """True if uncommitted work is kept at the start, so that the guard need not be strict."""
    from ralph.git.repository import is_repository

    standard = plan.settings.guard.level == "standard"
    guarded = _is_guarded(plan) and _asks(plan)
    return standard and guarded and is_repository(plan.workspace)


def keep_uncommitted(plan: Plan[Any], run_dir: str, trees: "GitTrees | None") -> list[str]:
    """Keep uncommitted work where the guard lets history be rewritten; a note about it."""
    if not _keeps_start(plan):
        return []
    from ralph.git.checkpoint.start_ref import is_kept, keep_project, start_ref

    if not is_kept(run_dir) and keep_project(plan.workspace, plan.environ, run_dir, trees):
        return [f"Your uncommitted work and stashes are kept: git show {start_ref(run_dir)}"]
    return []


def permission_flags(plan: Plan[Any]) -> tuple[str, ...]:
    """Flags that let an unattended agent use every tool in a sandbox that contains it, which is
    permission enough (ADR 15); none where the settings have it ask. Only claude needs any."""
    agent = plan.settings.agent
    unattended = plan.loop.unattended and agent.permissions != "ask"
    if plan.is_contained and unattended and plan.kind == "claude":
        return unasked((*plan.command[1:], *split_flags(agent.flags)))
    return ()


def permission_notes(plan: Plan[Any]) -> list[str]:
    """A note about those flags."""
    flags = next(filter(None, map(permission_flags, plan.agents)), ())
    words = "the sandbox is the permission (agent.permissions: ask turns that off)"
    return [f"claude gets {' '.join(flags)}: {words}"] if flags else []


def guard_words(plan: Plan[Any]) -> str:
    """The first line about the guard, where nothing contains the agent."""
    if not plan.settings.guard.enabled:
        flag = plan.loaded.origins.get("guard.enabled", "").startswith("--")
        return f"Guard: off ({'--no-guard' if flag else 'guard.enabled'})."
    if _asks(plan):
        strict = " (strict)" if plan.settings.guard.level == "strict" else ""
        others = dict.fromkeys(one.agent for one in plan.others if not _asks(one))
        but = f", but not of {', '.join(others)}" if others else ""
        what = "what the agent asks for" if plan.kind == ACP else "shell commands"
        return f"Guard: on for {what}{strict}{but}."
    if plan.kind == "claude":
        return f"Guard: off, since the agent has {_SETTINGS} of its own."
    return "Guard: off for this agent."


def _hook_flags(plan: Plan[Any]) -> tuple[str, ...]:
    """Flags that make the agent ask the guard where nothing contains it, and for stories the
    checks before it stops (R §5)."""
    hooks = _hooks(plan)
    if not hooks:
        return ()
    claude, events = HOSTS["claude"], {}
    for name, command in hooks.items():
        call = {"type": "command", "command": command}
        events[claude.events[name]] = [claude.group(name, call)]
    return (_SETTINGS, json.dumps({"hooks": events}))


def hook_notes(plan: Plan[Any]) -> list[str]:
    """A note where the agent would have hooks, and nothing could run them."""
    if not plan.loop.hooks or not _can_hook(plan) or not _is_elsewhere(plan):
        return []
    where = plan.sandbox.backend if plan.sandbox else ""
    return [f"No hooks in {where}, a machine without this Ralph: turns are judged when they end"]


def hook_environment(plan: Plan[Any], run_dir: str) -> dict[str, str]:
    """Variables that tell hooks, also installed ones, whether the guard is on and which hooks the
    run brings itself: each runs once. A program of ours asks the
    guard unless it is told not to."""
    guard = {}
    if _is_open(plan) or plan.runs_ralph:
        guard = {"RALPH_GUARD": "1" if _is_guarded(plan) else "0"}
    if _keeps_start(plan):
        from ralph.git.checkpoint.start_ref import is_kept, start_ref

        guard |= {KEPT: start_ref(run_dir)} if is_kept(run_dir) else {}
    hooks = _hooks(plan)
    brought = {"RALPH_HOOKS": ",".join(hooks)} if hooks else {}
    if hooks and WINDOW_VARIABLE not in plan.environment.values and "[1m]" in plan.model.lower():
        brought[WINDOW_VARIABLE] = "1000000"  # the context window that the model's name states
    return {**guard, **brought}


def _hooks(plan: Plan[Any]) -> dict[str, str]:
    """By name, the command of each."""
    if not _can_hook(plan) or _is_elsewhere(plan):
        return {}
    guard = {"pre-tool": with_packages("pre-tool")} if _is_guarded(plan) else {}
    return guard | {name: quickly(name) for name in plan.loop.hooks}


def _is_guarded(plan: Plan[Any]) -> bool:
    return plan.settings.guard.enabled and _is_open(plan)


def _is_elsewhere(plan: Plan[Any]) -> bool:
    """True if the agent works on a machine of its own, where our paths lead nowhere."""
    return plan.sandbox is not None and plan.sandbox.backend in MACHINES


def _is_open(plan: Plan[Any]) -> bool:
    """True if nothing contains the agent. A supervised task has its own ways (S)."""
    return plan.loop.guarded and not plan.is_contained


class WindowFiling:
    """Files of turns, whose agent is told the context window that the turn before has stated."""

    def __init__(self, filing: Filing) -> None:
        self._filing = filing
        self._last, self._window = "", 0

    def begin(self, order: Order) -> TurnFiles:
        files = self._filing.begin(order)
        self._window = stated(self._last) or self._window
        if order.role is not Role.MESSAGE:
            self._last = files.stream
        if not self._window:
            return files
        return replace(files, env={**files.env, WINDOW_VARIABLE: str(self._window)})

    def started(self, pid: int) -> None:
        self._filing.started(pid)


def stated(stream: str) -> int:
    """The window of the model that has read most in a saved stream; 0 where it says nothing."""
    results = _RESULT.findall(read_tail(stream, _TAIL)) if stream else []
    try:
        models = json.loads(results[-1])["modelUsage"].values()
        most = max(models, key=lambda used: used["inputTokens"] + used["cacheReadInputTokens"])
        window = most["contextWindow"]
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return 0
    return window if type(window) is int and window > 0 else 0
