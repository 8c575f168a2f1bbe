"""Permission flags for an agent: a sandbox that contains it is permission enough (ADR 15)."""

from typing import Any

from ralph.agents import claude
from ralph.agents.kinds import split_flags
from ralph.runner.plan import Plan


def permission_flags(plan: Plan[Any]) -> tuple[str, ...]:
    """Flags that let an unattended agent use every tool in a sandbox that contains it; none where
    the settings have it ask. Only claude needs any."""
    contained = plan.sandbox is not None and plan.sandbox.can.contain
    agent = plan.settings.agent
    if (
        not contained
        or not plan.loop.unattended
        or agent.permissions == "ask"
        or plan.kind != "claude"
    ):
        return ()
    return claude.unasked((*plan.command[1:], *split_flags(agent.flags)))


def permission_notes(plan: Plan[Any]) -> list[str]:
    """A note about those flags."""
    flags = next(filter(None, map(permission_flags, plan.agents)), ())
    words = "the sandbox is the permission (agent.permissions: ask turns that off)"
    return [f"claude gets {' '.join(flags)}: {words}"] if flags else []
