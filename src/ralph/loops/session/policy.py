"""P: the loop inside one session. Only the stopping boundary exists; nothing is started."""

from ralph.kernel.contracts import PromiseTag
from ralph.kernel.limits import Limits
from ralph.kernel.ports import Gate, Policy
from ralph.kernel.rules import Believed, RunLimit, cancelled
from ralph.kernel.tasks.select import first_open
from ralph.kernel.verdict import Boundary
from ralph.loops.session.rules import Disbelieved, Remind


def session(
    contract: PromiseTag = PromiseTag(),
    max_iterations: int = 50,
    min_tools: int = 1,
    gates: tuple[Gate, ...] = (),
    *,
    ultrawork: bool = False,
) -> Policy:
    """The policy of `/ralph-loop`; `max_iterations` 0 is no limit and must be asked for."""
    return Policy(
        name="session",
        select=first_open,
        compose=lambda case: case.task.text,
        opening=(),
        watching=(),
        stopping=(
            cancelled,
            Believed(contract, min_tools),
            RunLimit(Limits(iterations=max_iterations or None)),
            Disbelieved(contract, min_tools, ultrawork),
            Remind(contract, ultrawork),
        ),
        closing=(),
        gates={Boundary.STOPPING: gates},
        notes=lambda case: contract.near_misses(case.turn),
    )
