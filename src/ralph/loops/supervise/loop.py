"""A supervised task: planned from flags, kept for `ralph resume`, and wired to its folder (S)."""

import os
import shlex
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ralph.errors import ConfigError, StateError, failing
from ralph.files.state_dir import PromptFile, project_dir, prompt_input, prompt_text
from ralph.journal.runs import directories
from ralph.kernel.ports import Policy, TodaysRules, Workspace
from ralph.kernel.state import NEW
from ralph.kernel.tasks.task import Backlog, Task
from ralph.kernel.value import replace, value
from ralph.loops.supervise.announcements import BusReader, TaskChildRuns
from ralph.loops.supervise.attempts import Attempts
from ralph.loops.supervise.child_runs import job_pids
from ralph.loops.supervise.folder import TaskFolder, folder_at, folder_of
from ralph.loops.supervise.marks import SeenMarks, TaskSignals, seen_in
from ralph.loops.supervise.policy import supervise
from ralph.runner.agent_setup import build_agent, hook_environment
from ralph.runner.invocation import AGENT_FLAGS, Invocation, flag_overrides
from ralph.runner.kept import RAISED
from ralph.runner.plan import InForce, Loop, Past, Plan
from ralph.runner.planning import PlanTerms, patience_of, planned
from ralph.runner.wired import RunContext, Wired
from ralph.settings.load import Loaded, load

_EXAMPLE = "For example: ralph supervise --task-dir tasks/login -p 'Build the login page'"
_TERMS = ("max_restarts", "restart_delay", "wait_timeout", "poll_interval")


@value
class Supervision:
    prompt: Callable[[], Backlog]
    folder: TaskFolder
    parent: str  # the run in which it was started
    seen: SeenMarks
    max_restarts: int
    restart_delay: float
    wait_timeout: float
    poll_interval: float

    @property
    def over(self) -> bool:
        """S §Loop Algorithm: DONE is looked at before anything is run."""
        return os.path.exists(self.folder.done)

    def kept(self) -> dict[str, Any]:
        """As JSON, for a run that goes on after a crash."""
        return {
            **{name: getattr(self, name) for name in _TERMS},
            "folder": [self.folder.path, self.folder.project, self.folder.task],
            "parent": self.parent,
            "seen": [self.seen.wait, self.seen.bus],
            "file": self.prompt.path if isinstance(self.prompt, PromptFile) else None,
            "text": None if isinstance(self.prompt, PromptFile) else self.prompt().tasks[0].text,
        }


def read(invocation: Invocation) -> Plan[Supervision]:
    """Check everything that can be checked before a run begins; nothing is made."""
    flags = invocation.flags
    folder = _folder(flags)
    overrides = flag_overrides(flags, AGENT_FLAGS)
    if flags["command"]:
        overrides |= _given_command(flags)
    loaded = load(invocation.workspace, overrides)
    parent, prompt = invocation.environ.get("RALPH_RUN", ""), _prompt(invocation, folder)
    terms = {name: flags[name] for name in _TERMS}
    work = Supervision(prompt, folder, parent, seen_in(folder), **terms)
    if work.over and prompt().problem:
        work = replace(work, prompt=no_prompt)
    remedy = f"Give a prompt with -p TEXT or -f FILE, or write {folder.task_file}."
    return _plan(invocation, loaded, work, PlanTerms(remedy, over=work.over))


def again(
    invocation: Invocation, loaded: Loaded, kept: Mapping[str, Any], past: Past
) -> Plan[Supervision]:
    """The plan as it was kept, in the same folder. Marks that ended the run ask for nothing now."""
    folder, (wait, bus) = TaskFolder(*kept["folder"]), kept["seen"]
    seen = SeenMarks(tuple(wait) if wait else None, bus)
    if past.state.has_ended:
        seen = seen_in(folder)
    file, text = kept["file"], kept["text"]
    prompt = PromptFile(file) if file is not None else prompt_text(text) if text else no_prompt
    terms = {name: kept[name] for name in _TERMS}
    if loaded.origins.get("maximumIterations") == RAISED:
        terms["max_restarts"] = loaded.settings.maximum_iterations
    work = Supervision(prompt, folder, kept["parent"], seen, **terms)
    when = PlanTerms("Put it back, then: ralph resume", heals=work.over, over=work.over)
    return _plan(invocation, loaded, work, when)


def _plan(
    invocation: Invocation, loaded: Loaded, work: Supervision, terms: PlanTerms
) -> Plan[Supervision]:
    # Its limit of attempts is its own (ADR 19), whatever the settings say of other loops.
    settings = msgspec.structs.replace(loaded.settings, maximum_iterations=work.max_restarts)
    loaded = msgspec.structs.replace(loaded, settings=settings)
    plan = planned("supervise", work, invocation, loaded, work.prompt, terms=terms)
    path = work.folder.path
    return replace(
        plan,
        briefing=replace(plan.briefing, attempts=True),
        scope=path,
        project=project_dir(plan.state_root, path),
    )


def _given_command(flags: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    """`-- COMMAND...` is run as it is: the agent of the settings has nothing to do with it."""
    if flags["agent"] is not None or flags["model"] is not None:
        raise ConfigError("--agent and --model exclude -- COMMAND", "Give one of them.")
    given = {"command": shlex.join(flags["command"]), "kind": "text", "flags": []}
    own = dict.fromkeys(("model", "promptVia"))  # null: whatever the files say
    return {"agent": ({**given, **own}, "-- COMMAND")}


def _folder(flags: Mapping[str, Any]) -> TaskFolder:
    by_ids = [flags[name] for name in ("root", "project", "task")]
    if flags["task_dir"] is None:
        if None in by_ids:
            raise ConfigError("give --task-dir, or --root, --project and --task", _EXAMPLE)
        folder = folder_of(*by_ids)
    elif any(given is not None for given in by_ids):
        raise ConfigError("--task-dir excludes --root, --project and --task", _EXAMPLE)
    elif not flags["task_dir"]:
        raise ConfigError("--task-dir is empty", _EXAMPLE)
    else:
        folder = folder_at(flags["task_dir"])
    if os.path.exists(folder.path) and not os.path.isdir(folder.path):
        raise ConfigError(f"{folder.path} is not a directory", _EXAMPLE)
    return folder


def _prompt(invocation: Invocation, folder: TaskFolder) -> Callable[[], Backlog]:
    flags = invocation.flags
    text, file = flags["prompt"], flags["prompt_file"]
    if text is not None and file is not None:
        raise ConfigError("--prompt and --prompt-file exclude each other", _EXAMPLE)
    if text is not None:
        return prompt_text(text)
    if file == "-":
        return prompt_input(invocation.stdin)
    if file is not None:
        return PromptFile(file)
    if flags["command"] and not os.path.exists(folder.task_file):
        return no_prompt
    return PromptFile(folder.task_file)


def no_prompt() -> Backlog:
    """A command that needs to be told nothing."""
    return Backlog((Task("prompt", "", ""),))


def make_folder(plan: Plan[Supervision]) -> None:
    """The task's folder, and TASK.md where there is none: what stands in it is never changed."""
    folder, text = plan.work.folder, plan.backlog().tasks[0].text
    remedy = "Make it writable, or choose another with --task-dir."
    with failing(f"cannot write the task's folder {folder.path}", remedy, StateError):
        os.makedirs(folder.path, exist_ok=True)
        if text and not os.path.lexists(folder.task_file):
            with open(folder.task_file, "x", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)


def wire(plan: Plan[Supervision], run: RunContext) -> Wired:
    work, folder, settings = plan.work, plan.work.folder, plan.settings
    agent = os.path.basename(plan.command[0])
    attempts = Attempts(folder, run.name, work.parent, agent, run.before)
    child_runs = TaskChildRuns(
        folder,
        run.name,
        work.poll_interval,
        settings.end_grace,
        keeper=lambda: getattr(run.start, "pid", 0),
        tell=run.tell,
        resumed=run.before is not NEW and not run.before.has_ended,
    )
    policy = supervise(
        work.max_restarts,
        work.restart_delay,
        work.wait_timeout,
        patience=patience_of(settings),
        limits=plan.limits,
        child_runs=child_runs,
    )

    notes = [f"Task: {folder.project}/{folder.task} in {folder.path}"]
    if settings.sandbox is not None:
        notes.append("A supervised task works in place: the setting `sandbox` is not for it.")
    if settings.agent.fallbacks:
        notes.append("A supervised task has one agent: `agent.fallbacks` is not for it.")
    if work.seen.wait is not None:
        notes.append(
            f"{folder.wait} stood there before this run and is ignored; to stop, touch it again."
        )

    def backlog() -> Backlog:
        """The prompt, by the task's own name."""
        found = plan.backlog()
        return replace(found, tasks=tuple(replace(task, id=folder.task) for task in found.tasks))

    env = hook_environment(plan, run.directory)
    return Wired(
        policy,
        build_agent(plan, run.directory, run.readers, env=env, filing=attempts, start=run.start),
        Workspace(run.attention, backlog),
        readers=(attempts, BusReader(folder, run.name, work.max_restarts, run.before)),
        notes=tuple(notes),
    )


def jobs(plan: Plan[Supervision], run: str, keeper: int) -> tuple[int, ...]:
    """Child runs outlive the agent that started them; an attempt is no child run."""
    from ralph.processes.keeper_main import descendants

    folder = plan.work.folder
    mine = [name for name in directories(folder.runs) if name.startswith(f"{run}-")]
    return job_pids(folder, lambda: descendants(keeper), mine, keeper=keeper)


def first(plan: Plan[Supervision]) -> Policy:
    """The policy by the plan alone, without child runs."""
    return supervise(plan.work.max_restarts, limits=plan.limits)


def rejudges(terms: InForce) -> TodaysRules:
    """The rules that judge a run again. A limit that was raised since is told by its facts."""
    kept, most = terms.kept, terms.limits.iterations
    policy = supervise(
        kept["max_restarts"] if most is None else most,
        kept["restart_delay"],
        kept["wait_timeout"],
        patience=patience_of(terms.loaded.settings),
        limits=terms.limits,
    )
    return TodaysRules(policy)


LOOP = Loop(
    read,
    again,
    wire,
    policy=lambda _: supervise(),
    first=first,
    none_first=("no attempt can be made", ""),
    about=lambda kept: f"the task in {kept['folder'][0]}",
    unattended=False,
    guarded=False,
    begin=make_folder,
    claims=True,
    marks=lambda plan: TaskSignals(plan.work.folder, plan.work.seen),
    jobs=jobs,
    rejudges=rejudges,
)
