"""The settings as they are for the other agents of a run."""

import msgspec

from ralph.agents.kinds import Command
from ralph.settings.load import Loaded
from ralph.settings.schema import AgentSettings, FallbackSettings


def of_fallback(loaded: Loaded, fallback: FallbackSettings, command: Command) -> Loaded:
    """The settings for one that goes on where `command` cannot. What it does not say of itself is
    as for that one if its command is the same, else as if nobody had said it."""
    agent, own = loaded.settings.agent, msgspec.structs.asdict(fallback)
    if fallback.command == command:
        own |= {"flags": fallback.flags or agent.flags, "kind": fallback.kind or agent.kind}
    else:
        own |= {"prompt_via": None}
    return _with(loaded, msgspec.structs.replace(agent, **own))


def of_model(loaded: Loaded, model: str) -> Loaded:
    """The settings for the same agent with another model."""
    return _with(loaded, msgspec.structs.replace(loaded.settings.agent, model=model))


def _with(loaded: Loaded, agent: AgentSettings) -> Loaded:
    settings = msgspec.structs.replace(loaded.settings, agent=agent)
    return msgspec.structs.replace(loaded, settings=settings)
