"""Settings that a run assumes where a project has none: its own checks, and commits.

A check that fails before the agent has done anything says nothing about the agent's work. So each
is tried once before the first turn, and those that fail are named and left out.
"""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from ralph.git.repository import is_repository
from ralph.kernel.case import Case
from ralph.kernel.findings import Finding
from ralph.kernel.state import NEW
from ralph.kernel.value import replace
from ralph.kernel.verdict import Boundary
from ralph.processes.which import which
from ralph.runner.kept import keep_plan
from ralph.runner.plan import Plan
from ralph.runner.wired import RunContext
from ralph.runner.workplace import Workplace
from ralph.settings.detect.found import COMMITS, checks_of, guardrails
from ralph.settings.load import ASSUMED, changed

_AT_ONCE = 0.1  # seconds that a trial may still take after Ctrl+C
_PATIENCE = 600  # seconds for a check that nobody has set a time for
_TRIED = "what passes here"  # the origin of those that are used


def assumptions(workspace: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """The checks that can run here, and a commit where there is a repository."""
    rails = guardrails(checks_of(workspace, environ))
    found = {"guardrails": [{**rail, "timeout": _PATIENCE} for rail in rails]}
    if is_repository(workspace) and which("git", environ.get("PATH")):
        return {**found, "scm": COMMITS}
    return found if rails else {}


def tried(plan: Plan[Any], run: RunContext) -> Plan[Any]:
    """The plan with those of its guessed guardrails that pass; with every one where the agent is to
    work until they do (`untilGreen`). It is kept, so that a resumed run tries none again."""
    keeps_all = plan.loaded.merged.get("untilGreen")
    run.tell(f"No settings here. Assumed: {_words(plan, '' if keeps_all else ' (tried now)')}.")
    failing = [] if keeps_all else _failing(plan, run)
    if run.attention().cancels:
        return plan  # that may be why one failed; the resumed run tries them again
    told = [f"{found.gate} (exit code {found.code})" for found in failing]
    if told:
        run.tell(
            f"Fails already, so not used: {', '.join(told)}. To work until it passes: --until-green"
        )
    else:
        run.tell("To choose yourself: ralph init")
    named = {found.gate for found in failing}
    left = [rail for rail in plan.loaded.merged["guardrails"] if rail["command"] not in named]
    plan = replace(plan, loaded=changed(plan.loaded, "guardrails", left, _TRIED))
    keep_plan(plan, run.directory)
    return plan


def _words(plan: Plan[Any], about: str) -> str:
    """`checks make test, make lint (tried now); git commit when they pass`."""
    checks = ", ".join(rail.command for rail in plan.settings.guardrails)
    words = [f"checks {checks}{about}"] if checks else []
    if plan.loaded.origins.get("scm.command") == ASSUMED:
        words.append("git commit when they pass" if checks else "git commit after each iteration")
    return "; ".join(words)


def _failing(plan: Plan[Any], run: RunContext) -> list[Finding]:
    """The objections of the guessed guardrails to the project as it is. The first Ctrl+C cuts."""
    # What Python would leave behind would look like uncommitted work of the user.
    tidy = {**plan.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    hasty = changed(plan.loaded, "stopGrace", _AT_ONCE, ASSUMED)
    plan, run = replace(plan, loaded=hasty, environ=tidy), replace(run, cleanup=ExitStack())
    case, found = Case(Boundary.CLOSING, NEW, time.time()), list[Finding]()
    with run.cleanup:
        for gate in Workplace(plan, run, None).guardrails():
            if run.attention().cancels:
                break
            found += gate.check(case)
    return found
