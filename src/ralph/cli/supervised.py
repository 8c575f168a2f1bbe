"""A supervised task: planned from flags, kept for `ralph resume`, and wired to its folder (S)."""

import os
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from ralph.adapters.agent import CliAgent
from ralph.adapters.attempts import Attempts, Origin, attempt_env
from ralph.adapters.children import job_pids
from ralph.adapters.company import BusReader, ChildTerms, TaskCompany
from ralph.adapters.files import PromptFile, PromptInput, PromptText
from ralph.adapters.journal import FileJournal
from ralph.adapters.process import Starter
from ralph.adapters.protect import Protector
from ralph.adapters.runs import directories
from ralph.adapters.task_folder import Marker, TaskFolder, folder_at, folder_of
from ralph.adapters.task_signals import Seen, TaskSignals, seen_in
from ralph.adapters.world import Workspace
from ralph.cli.planning import AGENT_FLAGS, Invocation, Plan, flag_overrides, planned
from ralph.cli.wiring import AgentReaders, SignalSource, build_agent, patience_of
from ralph.core.state import NEW, RunState
from ralph.core.task import Backlog, Task
from ralph.core.value import replace, value
from ralph.core.world import Signals
from ralph.errors import ConfigError, StateError
from ralph.ports import Policy
from ralph.profiles.supervise import supervise
from ralph.settings.load import load
from ralph.ui import Reader

_EXAMPLE = "For example: ralph supervise --task-dir tasks/login -p 'Build the login page'"


@value
class Supervision:
    """How a task is supervised."""

    folder: TaskFolder
    max_restarts: int
    restart_delay: float
    wait_timeout: float
    poll_interval: float
    parent: str = ""  # the run in which it was started
    seen: Seen = Seen()

    @property
    def over(self) -> bool:
        """S §Loop Algorithm: DONE is looked at before anything is run."""
        return os.path.exists(self.folder.done)

    def kept(self) -> dict[str, Any]:
        """As JSON, for a run that goes on after a crash."""
        wait = self.seen.wait
        return {
            "folder": [self.folder.path, self.folder.project, self.folder.task],
            "max_restarts": self.max_restarts,
            "restart_delay": self.restart_delay,
            "wait_timeout": self.wait_timeout,
            "poll_interval": self.poll_interval,
            "parent": self.parent,
            "seen": [[wait.inode, wait.mtime_ns] if wait else None, self.seen.bus],
        }


def restored(kept: Mapping[str, Any]) -> Supervision:
    """What `kept` gave. ValueError, KeyError or TypeError where it did not."""
    wait, bus = kept["seen"]
    seen = Seen(Marker(*wait) if wait else None, int(bus))
    return _supervision(TaskFolder(*kept["folder"]), kept, seen, str(kept["parent"]))


def _supervision(
    folder: TaskFolder, given: Mapping[str, Any], seen: Seen, parent: str
) -> Supervision:
    return Supervision(
        folder,
        max_restarts=int(given["max_restarts"]),
        restart_delay=float(given["restart_delay"]),
        wait_timeout=float(given["wait_timeout"]),
        poll_interval=float(given["poll_interval"]),
        parent=parent,
        seen=seen,
    )


# ------------------------------------------------------------------ planning


def plan_supervised(invocation: Invocation) -> Plan:
    """Check everything that can be checked before a run begins; nothing is made."""
    flags = invocation.flags
    folder = _folder(flags)
    overrides = flag_overrides(flags, AGENT_FLAGS)
    if flags["command"]:
        overrides |= _given_command(flags)
    loaded = load(invocation.workspace, overrides)
    parent = invocation.environ.get("RALPH_RUN", "")
    supervision = _supervision(folder, flags, seen_in(folder), parent)
    backlog = _backlog(invocation, folder)
    if supervision.over and backlog().problem:
        backlog = no_prompt
    remedy = f"Give a prompt with -p TEXT or -f FILE, or write {folder.task_file}."
    plan = planned(invocation, loaded, backlog, remedy, over=supervision.over)
    return replace(plan, supervision=supervision)


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


def _backlog(invocation: Invocation, folder: TaskFolder) -> Callable[[], Backlog]:
    flags = invocation.flags
    text, file = flags["prompt"], flags["prompt_file"]
    if text is not None and file is not None:
        raise ConfigError("--prompt and --prompt-file exclude each other", _EXAMPLE)
    if text is not None:
        return PromptText(text)
    if file == "-":
        return PromptInput(invocation.stdin)
    if file is not None:
        return PromptFile(file)
    if flags["command"] and not os.path.exists(folder.task_file):
        return no_prompt
    return PromptFile(folder.task_file)


def no_prompt() -> Backlog:
    """A command that needs to be told nothing."""
    return Backlog((Task("prompt", "", ""),))


def make_folder(plan: Plan) -> None:
    """The task's folder, and TASK.md where there is none: what stands in it is never changed."""
    assert plan.supervision is not None
    folder, text = plan.supervision.folder, plan.backlog().tasks[0].text
    try:
        os.makedirs(folder.path, exist_ok=True)
        if text and not os.path.lexists(folder.task_file):
            with open(folder.task_file, "x", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
    except OSError as error:
        raise StateError(
            f"cannot write the task's folder {folder.path}: {error.strerror}",
            "Make it writable, or choose another with --task-dir.",
        ) from error


# ------------------------------------------------------------------ wiring


class SuperviseWiring:
    """A supervised run and its task's folder."""

    def __init__(self, plan: Plan, run_dir: str, state: RunState) -> None:
        assert plan.supervision is not None
        self._plan = plan
        self._run_dir = run_dir
        self._supervision = plan.supervision
        self._folder = plan.supervision.folder
        self._run = os.path.basename(run_dir)
        agent = os.path.basename(plan.command[0])
        self._origin = Origin(self._run, plan.supervision.parent, agent)
        self._attempts = Attempts(self._folder, self._origin, state)
        self._resumed = state is not NEW
        self._marks = TaskSignals(self._folder, plan.supervision.seen)
        self._bus = BusReader(self._folder, self._run, self._supervision.max_restarts, state)

    def readers(self, journal: FileJournal) -> tuple[Reader, ...]:
        """Who reads along beside the display."""
        return (self._attempts, self._bus)

    def signals(self) -> Signals:
        """What stands in the task's folder."""
        return self._marks()

    def jobs(self, keeper: int) -> tuple[int, ...]:
        """Child runs outlive the agent that started them; an attempt is no child run."""
        from ralph.adapters.keeper_process import descendants

        mine = [name for name in directories(self._folder.runs) if name.startswith(f"{self._run}-")]
        return job_pids(self._folder, lambda: descendants(keeper), mine, keeper=keeper)

    def prepare(self) -> list[str]:
        """A task's folder is as it is."""
        return []

    def notes(self) -> list[str]:
        """What people want to know before the first attempt."""
        notes = [f"Task: {self._folder.project}/{self._folder.task} in {self._folder.path}"]
        if self._plan.settings.sandbox is not None:
            notes.append("A supervised task works in place: the setting `sandbox` is not for it.")
        if self._supervision.seen.wait is not None:
            notes.append(
                f"{self._folder.wait} stood there before this run and is ignored; to stop, "
                "touch it again."
            )
        return notes

    def policy(
        self, attention: SignalSource, start: Starter, tell: Callable[[str], None]
    ) -> Policy:
        """The supervise profile as the flags want it."""
        plan, wanted, settings = self._plan, self._supervision, self._plan.settings
        return supervise(
            wanted.max_restarts,
            wanted.restart_delay,
            wanted.wait_timeout,
            patience=patience_of(settings),
            limits=plan.limits,
            company=TaskCompany(
                self._folder,
                self._run,
                ChildTerms(
                    wanted.poll_interval, settings.end_grace, lambda: getattr(start, "pid", 0)
                ),
                tell=tell,
                resumed=self._resumed,
            ),
        )

    def agent(self, readers: AgentReaders, start: Starter) -> CliAgent:
        """The agent, each attempt of which has a directory of its own."""
        env = attempt_env(self._folder, self._origin)
        return build_agent(
            self._plan, self._run_dir, readers, env=env, filing=self._attempts, start=start
        )

    def close(self) -> None:
        """There is nothing to let go of."""

    def world(self, attention: SignalSource) -> Workspace:
        """What the engine surveys: nothing is protected, for there are no gates."""
        nothing = Protector(self._plan.workspace, (), os.path.join(self._run_dir, "protected"))
        return Workspace(attention, self._backlog, nothing)

    def _backlog(self) -> Backlog:
        """What is to be done, by the task's own name."""
        backlog = self._plan.backlog()
        named = (replace(task, id=self._folder.task) for task in backlog.tasks)
        return replace(backlog, tasks=tuple(named))
