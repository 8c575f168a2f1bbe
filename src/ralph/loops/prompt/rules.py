"""Rules of the prompt loop with `--until-green`: the guardrails alone say when the work is done."""

from ralph.kernel.case import Case
from ralph.kernel.value import value
from ralph.kernel.verdict import Accept, Answer, Reason, Stop

FIRST_LOOK = "Before the first turn"  # the step that tells whether everything is green by then
GREEN, RED = "every guardrail passes", "not every guardrail passes yet"


@value
class GreenAlready:
    """Every guardrail passed before the first turn: there is nothing to pay an agent for."""

    checks: tuple[str, ...]

    def __call__(self, case: Case) -> Answer | None:
        look = case.state.step(FIRST_LOOK)
        if look is None or look.detail != GREEN:
            return None
        passed = tuple(f"passed: {check}" for check in self.checks)
        return Stop(Reason.COMPLETED, f"{GREEN} already", passed)


def green(case: Case) -> Answer | None:
    """Every guardrail ran and passed, whatever the agent says."""
    if not case.checked or case.findings:
        return None
    return Accept(tuple(f"passed: {name}" for name in case.passed))
