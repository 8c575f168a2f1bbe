"""Joins publishing to a run: what it needs is found before anything is paid, and then wired."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ralph.errors import ConfigError, ForgeError
from ralph.forge.found import forge_of
from ralph.forge.judging import Terms
from ralph.git.branch import current_branch, is_branch_name
from ralph.git.remote import ORIGIN, Remote
from ralph.git.scm import ScmCommand
from ralph.kernel.ports import Gates
from ralph.kernel.state import RunState
from ralph.kernel.value import replace
from ralph.runner.plan import Plan
from ralph.runner.publishing.outlet import Destination, ForgeOutlet, hears
from ralph.runner.publishing.pull_words import Subject
from ralph.runner.publishing.settle import Hearing, Publication
from ralph.runner.wired import RunContext
from ralph.settings.schema import Settings


def destination(settings: Settings, workspace: str, environ: Mapping[str, str]) -> Destination:
    """Where the work is to go. ConfigError or ForgeError where it could not arrive."""
    if settings.pr.draft and settings.pr.merge:
        raise ConfigError("a draft cannot be merged", "Leave out --draft, or --merge")
    remote = Remote.of(workspace, environ)
    forge = forge_of(environ, workspace)
    project = forge.project()
    base = settings.pr.base or project.default_branch
    if not is_branch_name(base, workspace, environ):
        raise ConfigError(f"--base: {base!r} is no name of a branch", "For example: --base main")
    try:
        there = remote.heads(base)
    except ForgeError as error:
        raise ConfigError(error.message, error.remedy) from error
    if base not in there:
        message = f"{ORIGIN} has no branch {base} that pull requests could be for"
        raise ConfigError(message, f"Push it: git push {ORIGIN} {base}. Or name another: --base")
    return Destination(forge, remote, base, project)


def publication(
    plan: Plan[Any],
    run: RunContext,
    about: Callable[[RunState], Subject],
    *,
    law: Gates = (),
    branch: Callable[[RunState], str] | None = None,
    below: str = "",
) -> Publication | None:
    """How the run publishes; None if it does not. `about` tells of the work, and `branch` names the
    branch for it where that is not the one that is checked out."""
    to, settings = plan.destination, plan.settings
    if to is None:
        return None
    here = plan.branch.name if plan.branch else current_branch(plan.workspace, plan.environ)
    scm = ScmCommand(
        "git",
        (),
        plan.workspace,
        plan.environ,
        run.attention,
        settings.stop_grace,
        settings.max_time,
        run.start,
    )
    outlet = ForgeOutlet(
        to, settings.pr, scm, branch or (lambda _: here), about, partial(_report, plan, run), below
    )
    ci = settings.ci
    terms = Terms(ci.required, ci.neutral, ci.skipped, ci.start)
    return Publication(
        outlet,
        law,
        Hearing(terms, ci.poll, ci.repairs) if hears(settings) else None,
        settings.max_wait,
        opens=settings.pr.mode is not None,
        merges=settings.pr.merge,
    )


def _report(plan: Plan[Any], run: RunContext) -> str:
    """The report of the run so far, as Markdown."""
    from ralph.journal.runs import Run, look_again
    from ralph.runner.showing.recaps import beside_of
    from ralph.ui.paper.markdown import markdown
    from ralph.ui.recap.gather import recap_of

    this = Run(run.name, plan.project)
    if plan.lead:
        lead = Run(plan.lead, plan.project)
        this = Run(run.name, lead.directory, lead=lead)
    recap = recap_of(look_again(this), time.time(), beside_of(this, plan.environ))
    # It is about to say what is left, which is nothing once this is merged.
    return markdown([replace(recap, outcome="", left=(), next=())])
