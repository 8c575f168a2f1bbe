"""`ralph run`: its command read into a plan, and wired to the workspace (H)."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import structs

from ralph.errors import ConfigError
from ralph.files.state_dir import PromptFile, prompt_input, prompt_text, ralph_dir_problem
from ralph.git.scm import ScmCommand, is_git
from ralph.kernel.contracts import ResponseTag
from ralph.kernel.ports import Policy, TodaysRules
from ralph.kernel.tasks.task import Backlog
from ralph.kernel.value import replace, value
from ralph.loops.prompt.policy import Wording, harness, is_commit
from ralph.runner.agent_setup import guard_words
from ralph.runner.invocation import AGENT_FLAGS, PLACE_FLAGS, Invocation, flag_overrides
from ralph.runner.plan import IN_PLACE, InForce, Loop, Past, Plan
from ralph.runner.planning import (
    PlanTerms,
    limits_of,
    patience_of,
    planned,
    sandboxed,
    with_fallbacks,
)
from ralph.runner.showing.forecasts import first_words
from ralph.runner.wired import RunContext, Wired
from ralph.runner.workplace import Workplace, trees_of
from ralph.settings.load import Loaded, load
from ralph.settings.schema import ScmSettings, Settings
from ralph.text.words import listed, quoted

if TYPE_CHECKING:
    from ralph.runner.publishing.settle import Publication

_FLAGS = {
    **AGENT_FLAGS,
    **PLACE_FLAGS,
    "--max-iterations": "maximumIterations",
    "--completion-response": "completionResponse",
    "--tell-completion": "tellCompletion",
    "--until-green": "untilGreen",
    "--max-time": "maxTime",
    "--max-cost": "maxCost",
}


@value
class Prompt:
    """The prompt that the agent gets in every turn."""

    backlog: Callable[[], Backlog]

    def kept(self) -> dict[str, Any]:
        """The text, or the file that is read before each turn."""
        if isinstance(self.backlog, PromptFile):
            return {"file": self.backlog.path}
        return {"text": self.backlog().tasks[0].text}


def read(invocation: Invocation) -> Plan[Prompt]:
    """Check everything that can be checked before a run begins."""
    text, file = invocation.flags["prompt"], invocation.flags["prompt_file"]
    if (text is None) == (file is None):
        raise ConfigError(
            "give exactly one of --prompt and --prompt-file",
            'For example: ralph run -p "Make the tests pass" or ralph run -f PROMPT.md',
        )
    prompt: Callable[[], Backlog] = prompt_text(text) if text is not None else PromptFile(file)
    if file == "-":
        prompt = prompt_input(invocation.stdin)
    overrides = flag_overrides(invocation.flags, _FLAGS)
    loaded = load(invocation.workspace, overrides, lambda: _found_here(invocation))
    return _plan(invocation, loaded, prompt, "Give a prompt with -p TEXT or -f FILE.")


def _found_here(invocation: Invocation) -> dict[str, Any]:
    """The settings that are assumed where there are none."""
    from ralph.runner.assumed import assumptions

    return assumptions(invocation.workspace, invocation.environ)


def again(
    invocation: Invocation, loaded: Loaded, kept: Mapping[str, Any], past: Past
) -> Plan[Prompt]:
    """The same prompt; a file is read anew."""
    prompt = PromptFile(kept["file"]) if "file" in kept else prompt_text(kept["text"])
    return _plan(invocation, loaded, prompt, "Put it back, then: ralph resume")


def _plan(
    invocation: Invocation, loaded: Loaded, prompt: Callable[[], Backlog], remedy: str
) -> Plan[Prompt]:
    loaded, terms = _committing(loaded), PlanTerms(remedy)
    plan = planned("prompt", Prompt(prompt), invocation, loaded, prompt, terms=terms)
    plan = with_fallbacks(plan, invocation, terms)
    if plan.settings.until_green and not plan.settings.guardrails:
        raise ConfigError(
            "--until-green needs a guardrail: a command that passes when the work is done",
            'Add one with ralph init, or to .ralph/settings.json: "guardrails": '
            '[{"command": "make test"}]',
        )
    wording = wording_of(plan.settings)
    marker = "" if wording.checks else wording.contract.marker
    briefing = replace(plan.briefing, marker=marker, untold=not wording.tell_completion)
    return sandboxed(replace(plan, briefing=briefing))


def _committing(loaded: Loaded) -> Loaded:
    """The settings with a commit, if its work is for a pull request, and without another push."""
    settings = loaded.settings
    scm = settings.scm or ScmSettings()
    pushes = [task for task in scm.tasks if task.split()[:1] == ["push"]]
    if settings.pr.mode is None:
        if settings.ci.enabled and not (pushes and is_git(scm.command)):
            raise ConfigError(
                "CI can only answer to commits that are pushed, and nothing pushes them",
                'Add --pr per-run, or "push" to scm.tasks in .ralph/settings.json.',
            )
        return loaded
    if not is_git(scm.command):
        message = f"--pr is for git, and scm.command is {scm.command}"
        raise ConfigError(message, "Leave out --pr, or set scm.command to git.")
    if pushes:
        raise ConfigError(
            f"--pr pushes to a branch of its own, and scm.tasks has {pushes[0]!r} too",
            "Remove it from scm.tasks, or leave out --pr.",
        )
    if not any(map(is_commit, scm.tasks)):
        scm = structs.replace(scm, tasks=(*scm.tasks, "commit"))
    return structs.replace(loaded, settings=structs.replace(settings, scm=scm))


def ready(plan: Plan[Prompt], run: RunContext) -> Plan[Prompt]:
    """The plan without guessed guardrails that fail before the agent has done anything."""
    if not plan.untried:
        return plan
    from ralph.runner.assumed import tried

    return tried(plan, run)


def policy(loaded: Loaded) -> Policy:
    """The policy by the settings alone."""
    settings = loaded.settings
    return harness(limits_of(settings), patience_of(settings), wording_of(settings))


def rejudges(terms: InForce) -> TodaysRules:
    """The rules that judge a run again."""
    settings = terms.loaded.settings
    return TodaysRules(harness(terms.limits, patience_of(settings), wording_of(settings)))


def wording_of(settings: Settings) -> Wording:
    """The wording of prompts, by the settings."""
    count_to = settings.maximum_iterations if settings.include_iteration_count_in_prompt else None
    checks = tuple(rail.command for rail in settings.guardrails) if settings.until_green else ()
    contract = ResponseTag(settings.completion_response)
    return Wording(contract, settings.tell_completion, count_to, checks)


def wire(plan: Plan[Prompt], run: RunContext) -> Wired:
    settings, scm = plan.settings, plan.settings.scm
    commits = scm is not None and bool(scm.tasks)
    place = Workplace(plan, run, trees_of(plan, run) if settings.guardrails or commits else None)
    patience = patience_of(settings)
    policy = harness(
        plan.limits,
        patience,
        wording_of(settings),
        (*(place.secrets() if commits else ()), *place.guardrails()),
        _scm(place) if commits else None,
        law=place.law(),
        publish=_publish(place),
    )
    where = plan.sandbox.words() if plan.sandbox else f"{IN_PLACE} {guard_words(plan)}"
    notes = [where, *_checks_words(plan), *place.prepare()]
    if place.trees is not None and scm is not None and any(map(is_commit, scm.tasks)):
        yours = place.trees.yours()
        left_out = f"Not committed yet, and left out of this run's commits: {listed(yours, 5)}"
        notes += [left_out] if yours else []
    notes += first_words(plan, run.name, run.before)
    return Wired(place.sandboxed(policy), place.agent(), place.world(patience), notes=tuple(notes))


def _checks_words(plan: Plan[Prompt]) -> list[str]:
    if not plan.settings.guardrails:
        return [
            "No guardrail is configured: only the agent's word will count. To add one: ralph init"
        ]
    if problem := ralph_dir_problem(plan.workspace):
        return [f"{problem}. The guardrails' logs go beside the journal instead."]
    return []


def _scm(place: Workplace) -> ScmCommand:
    plan, run, settings = place.plan, place.run, place.plan.settings
    assert settings.scm is not None
    return ScmCommand(
        settings.scm.command,
        settings.scm.tasks,
        plan.workspace,
        plan.environ,
        run.attention,
        settings.stop_grace,
        settings.max_time,
        run.start,
        place.trees,
    )


def _publish(place: Workplace) -> "Publication | None":
    """How the work is published, if it is."""
    if place.plan.destination is None:
        return None
    from ralph.runner.publishing.pull_words import Subject
    from ralph.runner.publishing.setup import publication

    text = place.plan.backlog().tasks[0].text
    title = next((line.strip("# ") for line in text.splitlines() if line.strip()), "Work by ralph")
    return publication(
        place.plan, place.run, lambda _: Subject(title, text), law=place.law(always=True)
    )


def about(kept: Mapping[str, Any]) -> str:
    """The prompt's first line, or its file."""
    return f"the prompt in {kept['file']}" if "file" in kept else quoted(kept["text"])


LOOP = Loop(
    read,
    again,
    wire,
    policy,
    lambda plan: policy(plan.loaded),
    about=about,
    unattended=False,
    ready=ready,
    rejudges=rejudges,
)
