"""`ralph prd run` as a loop."""

from ralph.kernel.ports import Policy
from ralph.loops.stories.plan import again, first, read, story_defaults
from ralph.loops.stories.policy import reviewed
from ralph.loops.stories.wiring import wire
from ralph.runner.plan import Loop, limits_of, wary_patience
from ralph.settings.load import Loaded


def policy(loaded: Loaded) -> Policy:
    """The policy by the settings alone."""
    settings = story_defaults(loaded).settings
    return reviewed(limits=limits_of(settings), patience=wary_patience(loaded))


LOOP = Loop(read, again, wire, policy, first, hooks=("stop", "post-tool", "session-start"))
