"""The hooks that a run brings along for its agent; only claude takes any on its command line."""

import json
import sys
from typing import TYPE_CHECKING, Any

from ralph.hosts.hook_commands import SOURCE, quickly, with_packages
from ralph.hosts.protocol import KEPT
from ralph.runner.plan import Plan

if TYPE_CHECKING:
    from ralph.agents.turn_files import Filing
    from ralph.git.checkpoint.trees import GitTrees

_SETTINGS = "--settings"
_EVENTS = {
    "pre-tool": "PreToolUse",
    "stop": "Stop",
    "post-tool": "PostToolUse",
    "session-start": "SessionStart",
}
_MATCHERS = {"pre-tool": "Bash", "post-tool": ".*"}
_MACHINES = ("sbx", "docker")


def can_hook(plan: Plan[Any]) -> bool:
    """True for an agent that takes hooks from us: not if it has settings of its own."""
    from ralph.agents.kinds import split_flags, value_in

    flags = (*plan.command[1:], *split_flags(plan.settings.agent.flags))
    return plan.kind == "claude" and not value_in(flags, (_SETTINGS,))


def _guard_environment(plan: Plan[Any], run_dir: str) -> dict[str, str]:
    if not _is_open(plan):
        return {}
    if not plan.settings.guard.enabled:
        return {"RALPH_GUARD": "0"}
    from ralph.git.checkpoint.start_ref import is_kept, start_ref

    kept = keeps_start(plan) and is_kept(run_dir)
    return {"RALPH_GUARD": "1", **({KEPT: start_ref(run_dir)} if kept else {})}


def keeps_start(plan: Plan[Any]) -> bool:
    """True if uncommitted work is kept when the run begins, so that the guard need not be strict
    about local history."""
    from ralph.git.uncommitted import is_repository

    standard = plan.settings.guard.level == "standard"
    guarded = _is_guarded(plan) and can_hook(plan)
    return standard and guarded and is_repository(plan.workspace)


def keep_what_there_is(plan: Plan[Any], run_dir: str, trees: "GitTrees | None") -> list[str]:
    """Keep uncommitted work before the first turn, where the guard lets history be rewritten; a
    note about it."""
    if not keeps_start(plan):
        return []
    from ralph.git.checkpoint.expiry import sweep
    from ralph.git.checkpoint.run_trees import trees_of_run
    from ralph.git.checkpoint.start_ref import is_kept, keep_start, start_ref

    trees = trees or trees_of_run(plan.workspace, plan.environ, run_dir)
    if trees is not None and not is_kept(run_dir):
        sweep(trees.repository, run_dir)
        trees.begin()
        keep_start(trees)
        if trees.repository.resolve(start_ref(run_dir)):
            return [f"Your uncommitted work and stashes are kept: git show {start_ref(run_dir)}"]
    return []


def guard_words(plan: Plan[Any]) -> str:
    """The first line about the guard, where nothing contains the agent."""
    if not plan.settings.guard.enabled:
        flag = plan.loaded.origins.get("guard.enabled", "").startswith("--")
        return f"Guard: off ({'--no-guard' if flag else 'guard.enabled'})."
    if can_hook(plan):
        strict = " (strict)" if plan.settings.guard.level == "strict" else ""
        return f"Guard: on for shell commands{strict}."
    if plan.kind == "claude":
        return f"Guard: off, since the agent has {_SETTINGS} of its own."
    return "Guard: off for this agent, unless a hook of your own asks it."


def hook_flags(plan: Plan[Any]) -> tuple[str, ...]:
    """Flags that make the agent ask the guard where nothing contains it, and for stories the
    checks before it stops (R §5)."""
    hooks = _hooks(plan)
    if not hooks:
        return ()
    events = {_EVENTS[name]: _entry(name, command) for name, command in hooks.items()}
    return (_SETTINGS, json.dumps({"hooks": events}))


def hook_notes(plan: Plan[Any]) -> list[str]:
    """A note where the agent would have hooks, and nothing could run them."""
    if not plan.loop.hooks or not can_hook(plan) or not _is_elsewhere(plan):
        return []
    where = plan.sandbox.backend if plan.sandbox else ""
    return [f"No hooks in {where}, a machine without this Ralph: turns are judged when they end"]


def hook_environment(plan: Plan[Any], run_dir: str) -> dict[str, str]:
    """Variables that tell hooks, also installed ones, whether the guard is on and which hooks the
    run brings itself: each runs once."""
    hooks = _hooks(plan)
    brought = {"RALPH_HOOKS": ",".join(hooks), **_window(plan)} if hooks else {}
    return {**_guard_environment(plan, run_dir), **brought}


def _window(plan: Plan[Any]) -> dict[str, str]:
    """The context window that the model's name states, unless somebody has said another."""
    from ralph.runner.context_window import VARIABLE
    from ralph.runner.money import asked_model

    model = asked_model(plan.settings, plan.module, plan.command) or ""
    known = VARIABLE in plan.environment.values or "[1m]" not in model.lower()
    return {} if known else {VARIABLE: "1000000"}


def told_window(plan: Plan[Any], filing: "Filing") -> "Filing":
    """Files of turns by which hooks of ours hear of the context window, if nobody has said it."""
    from ralph.runner.context_window import VARIABLE, WindowFiling

    wanted = "post-tool" in _hooks(plan) and VARIABLE not in plan.environment.values
    return WindowFiling(filing) if wanted else filing


def hook_places() -> list[str]:
    """Directories that must be visible for hooks to run."""
    return [SOURCE, sys.prefix, sys.base_prefix]


def _hooks(plan: Plan[Any]) -> dict[str, str]:
    """By name, the command of each."""
    if not can_hook(plan) or _is_elsewhere(plan):
        return {}
    guard = {"pre-tool": with_packages("pre-tool")} if _is_guarded(plan) else {}
    return guard | {name: quickly(name) for name in plan.loop.hooks}


def _is_guarded(plan: Plan[Any]) -> bool:
    return plan.settings.guard.enabled and _is_open(plan)


def _is_elsewhere(plan: Plan[Any]) -> bool:
    """True if the agent works on a machine of its own, where our paths lead nowhere."""
    return plan.sandbox is not None and plan.sandbox.backend in _MACHINES


def _is_open(plan: Plan[Any]) -> bool:
    """True if nothing contains the agent. A supervised task has its own ways (S)."""
    contained = plan.sandbox is not None and plan.sandbox.can.contain
    return plan.loop.guarded and not contained


def _entry(name: str, command: str) -> list[dict[str, object]]:
    entry: dict[str, object] = {"hooks": [{"type": "command", "command": command}]}
    return [{"matcher": _MATCHERS[name], **entry} if name in _MATCHERS else entry]
