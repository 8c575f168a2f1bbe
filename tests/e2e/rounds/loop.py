"""`ralph rounds`: read into a plan, and wired to the workspace."""

from collections.abc import Mapping
from typing import Any

from ralph.files.state_dir import prompt_text
from ralph.kernel.ports import TodaysRules
from ralph.kernel.value import value
from ralph.runner.invocation import AGENT_FLAGS, Invocation, flag_overrides
from ralph.runner.plan import Loop, Past, Plan
from ralph.runner.planning import PlanTerms, patience_of, planned
from ralph.runner.wired import RunContext, Wired
from ralph.runner.workplace import Workplace
from ralph.settings.load import Loaded, load
from rounds.policy import rounds


@value
class Rounds:
    """How often, and what."""

    count: int
    prompt: str

    def kept(self) -> dict[str, Any]:
        return {"count": self.count, "prompt": self.prompt}


def read(invocation: Invocation) -> Plan[Rounds]:
    flags = invocation.flags
    loaded = load(invocation.workspace, flag_overrides(flags, AGENT_FLAGS))
    return _plan(invocation, loaded, Rounds(flags["count"], flags["prompt"]))


def again(
    invocation: Invocation, loaded: Loaded, kept: Mapping[str, Any], past: Past
) -> Plan[Rounds]:
    return _plan(invocation, loaded, Rounds(**kept))


def _plan(invocation: Invocation, loaded: Loaded, work: Rounds) -> Plan[Rounds]:
    terms = PlanTerms("Give a prompt with -p TEXT.")
    return planned("rounds", work, invocation, loaded, prompt_text(work.prompt), terms=terms)


def wire(plan: Plan[Rounds], run: RunContext) -> Wired:
    place = Workplace(plan, run, trees=None)
    world = place.world(patience_of(plan.settings))
    notes = (f"{plan.work.count} rounds",)
    return Wired(rounds(plan.work.count), place.agent(), world, notes=notes)


LOOP = Loop(
    read,
    again,
    wire,
    policy=lambda _: rounds(3),
    rejudges=lambda terms: TodaysRules(rounds(terms.kept["count"])),
)
