"""One trial: a fresh checkout, and an ordinary run of Ralph in it, whose journal tells the rest."""

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ralph.errors import ConfigError, RalphError, StateError
from ralph.evaluation import lay
from ralph.evaluation.checkout import make_checkout, make_hidden, protected
from ralph.evaluation.schema import SuiteAgent, SuiteTask
from ralph.evaluation.store import Evaluation
from ralph.evaluation.suite import Suite
from ralph.evaluation.trials import Result, TaskCheck, Trial
from ralph.evaluation.verdict import ERROR, Verdict, verdict_of
from ralph.files.state_dir import ensure_ralph_dir, project_dir, state_root, write_atomically
from ralph.files.state_home import cache_home
from ralph.git.branch import slug
from ralph.journal.journal import JOURNAL
from ralph.journal.runs import Facts, Run, directories, folding, runs_of
from ralph.kernel.facts import Fact
from ralph.kernel.value import value
from ralph.kernel.verdict import Cut
from ralph.processes.child import Command, Exit, Starter, run_and_hear
from ralph.processes.which import which
from ralph.sandbox.layer_store import remove
from ralph.settings.load import merge
from ralph.settings.schema import Settings
from ralph.settings.source import LOCAL

_LAY = "RALPH_EVAL_LAY"  # names the program that lays hidden files; agents do not get it
_FRESH_RUN = frozenset({"RALPH_RUN", _LAY})
_LAST_WORDS = 4000  # bytes of what a run tells people
_MOST_WAIT = 1800  # seconds that a trial waits for a provider, unless settings say otherwise
GRACE = 1.0  # seconds; what is interrupted is made anew


@value
class Site:
    """An evaluation with its suite and its environment: all that its trials share."""

    suite: Suite
    evaluation: Evaluation
    environ: Mapping[str, str]
    fleet: str = ""

    def checkout(self, number: int, task: SuiteTask) -> str:
        """The directory of a trial's work; 0 is for the look at a task's start."""
        return os.path.join(self.checkouts, f"{number:04}", slug(task.name))

    @property
    def checkouts(self) -> str:
        """Outside of the state directory, which sandboxes hide."""
        return os.path.join(cache_home(self.environ), "ralph", "evals", self.evaluation.id)

    def layer(self, task: SuiteTask) -> str:
        """The program that lays the hidden files of a task; "" if it has none."""
        folder = self.evaluation.place("hidden", slug(task.name))
        program = f"{folder}.sh"
        if not os.path.exists(program) and make_hidden(self.suite, task, folder):
            words = [sys.executable, "-I", "-S", str(lay.__file__), folder]
            write_atomically(program, f"#!/bin/sh\nexec {shlex.join(words)}\n", 0o700)
        return program if os.path.exists(program) else ""

    def surroundings(self, layer: str) -> dict[str, str]:
        """The environment of a run: the user's."""
        kept = {name: text for name, text in self.environ.items() if name not in _FRESH_RUN}
        return {**kept, _LAY: layer} if layer else kept


@value
class Hand:
    """Starts the commands of one trial at a time, and ends them when `watch` says so."""

    start: Starter
    watch: Callable[[], Cut | None]

    def run(self, command: Command, most: float | None = None) -> tuple[Exit, str]:
        """Run a command to its end, or for so many seconds; its last words."""

        def patience(seconds: float) -> Cut | None:
            is_late = most is not None and seconds > most
            return self.watch() or (Cut("it took too long", GRACE) if is_late else None)

        return run_and_hear(self.start, command, patience, _LAST_WORDS)


def gate_of(task: SuiteTask, layer: str) -> str:
    """The command that is the truth about a task."""
    return f'"${_LAY}" || exit\n{task.check}' if layer else task.check


def settings_of(
    site: Site, task: SuiteTask, agent: SuiteAgent, layer: str, patterns: tuple[str, ...]
) -> dict[str, Any]:
    """The settings of a trial's run: the agent's over the suite's, and over both what makes it a
    trial: the one guardrail, in a fresh worktree of what the agent has left."""
    file = site.suite.file
    usual = {
        "timeout": task.timeout or file.timeout,
        "maxTime": file.max_time,
        "maxCost": file.max_cost,
        "sandbox": file.sandbox or ("direct" if site.fleet else None),  # tasks would have one
        "maxWait": _MOST_WAIT,
        "loop": {"maxTimePerTask": file.max_time, "maxCostPerTask": file.max_cost},
    }
    asked = merge(merge(_known(usual), file.settings), agent.settings)
    chosen = {
        "command": agent.command,
        "kind": agent.kind,
        "model": agent.model,
        "flags": [*agent.flags] or None,
        "env": {"set": dict(agent.env)},
    }
    asked = merge(asked, {"agent": _known(chosen)})
    unset = asked["agent"]["env"].get("unset", [])
    turns = task.iterations or file.iterations
    rail = {
        "command": gate_of(task, layer),
        "timeout": task.check_timeout or file.check_timeout,
        "sandbox": not layer,  # what is hidden from the agent is hidden from its sandbox
    }
    ours = {
        "agent": {"env": {"unset": [*unset, _LAY]}},
        "guardrails": [rail],
        "proof": "clean",
        "maximumIterations": turns,
        "protect": [*asked.get("protect", Settings().protect), *patterns],
        "loop": {"setup": task.setup, "maxIterationsPerTask": turns},
    }
    return merge(asked, ours)


def _known(told: dict[str, Any]) -> dict[str, Any]:
    """The same without what is None, in tables too."""
    kept = {key: _known(it) if isinstance(it, dict) else it for key, it in told.items()}
    return {key: it for key, it in kept.items() if it is not None}


# ------------------------------------------------------------------ the start of a task


def look_at(site: Site, task: SuiteTask, hand: Hand) -> TaskCheck:
    """See whether a task can be tried here, and what its check says before anybody has worked."""
    missing = [name for name in task.needs if which(name, site.environ.get("PATH")) is None]
    if missing:
        return TaskCheck(task.name, problem=f"{', '.join(missing)} is not on PATH")
    place, layer = site.checkout(0, task), site.layer(task)
    try:
        make_checkout(site.suite, task, place, site.environ)
        _set_up(site, task, place, hand)
        command = Command(("sh", "-c", gate_of(task, layer)), place, site.surroundings(layer))
        ended, _ = hand.run(command, task.check_timeout or site.suite.file.check_timeout)
        return TaskCheck(task.name, passes_at_start=ended.code == 0 and ended.cut is None)
    except (ConfigError, StateError) as error:
        return TaskCheck(task.name, problem=error.message)
    finally:
        remove(os.path.dirname(place))


def _set_up(site: Site, task: SuiteTask, place: str, hand: Hand) -> None:
    """Prepare a checkout. StateError if that fails."""
    if task.setup is None:
        return
    command = Command(("sh", "-c", task.setup), place, site.surroundings(""))
    ended, said = hand.run(command, site.suite.file.check_timeout)
    if ended.code or ended.cut:
        last = f": {said.splitlines()[-1]}" if said else ""
        raise StateError(f"its setup failed with exit code {ended.code}{last}")


# ------------------------------------------------------------------ a trial


@value
class Prepared:
    """A checkout that is ready for its run."""

    place: str
    gate: str
    argv: tuple[str, ...]
    environ: Mapping[str, str]


def prepare(site: Site, trial: Trial, task: SuiteTask, agent: SuiteAgent) -> Prepared:
    """Make the checkout of a trial, and the settings of its run."""
    place, layer = site.checkout(trial.number, task), site.layer(task)
    remove(os.path.dirname(place))  # what an interrupted one has left
    make_checkout(site.suite, task, place, site.environ)
    patterns = protected(site.suite, task, place)
    settings = settings_of(site, task, agent, layer, patterns)
    ensure_ralph_dir(place)
    write_atomically(os.path.join(place, LOCAL), json.dumps(settings, indent=2), 0o600)
    prompt = site.evaluation.place("prompts", f"{slug(task.name)}.md")
    os.makedirs(os.path.dirname(prompt), mode=0o700, exist_ok=True)
    write_atomically(prompt, task.prompt, 0o600)
    words = ["run", "--prompt-file", prompt]
    if site.fleet:
        words = ["tasks", "run", "--fleet", site.fleet, "--allow-dirty"]
        line = {"id": "T-001", "title": task.name, "description": task.prompt}
        write_atomically(os.path.join(place, ".ralph", "tasks.jsonl"), f"{json.dumps(line)}\n")
    # -P: what the agent wrote is not to be imported.
    argv = (sys.executable, "-P", "-m", "ralph", *words, "-C", place)
    return Prepared(place, gate_of(task, layer), argv, site.surroundings(layer))


def refuse_unusable(site: Site, hand: Hand, dollars: float | None) -> None:
    """ConfigError for an agent that could not take a turn, or not be counted against a limit of
    money, before anything has begun."""
    if which("git", site.environ.get("PATH")) is None:
        raise ConfigError("ralph eval needs git", "Install it: sudo apt-get install git")
    task = site.suite.file.tasks[0]
    for agent in site.suite.file.agents:
        ready = prepare(site, Trial(0, task.name, agent.name, 0), task, agent)
        try:
            limit = () if dollars is None else ("--max-cost", str(dollars))
            argv = (*ready.argv, *limit, "--dry-run")
            command = Command(argv, site.checkouts, ready.environ)
            ended, said = hand.run(command)
        finally:
            remove(os.path.dirname(ready.place))
        if ended.code and ended.cut is None:
            message, *more = _people_read(said)
            raise ConfigError(f"agent {agent.name!r}: {message}", "\n".join(more))


def _people_read(said: str) -> list[str]:
    """The lines for people, as Ralph prints them."""
    name = "[ralph] "
    lines = [line.removeprefix(name) for line in said.splitlines() if line.startswith(name)]
    return lines or [said.strip() or "ralph said nothing"]


def try_once(
    site: Site, trial: Trial, task: SuiteTask, agent: SuiteAgent, hand: Hand
) -> Result | None:
    """Make a trial; None if it was interrupted, which is no result."""
    place = os.path.dirname(site.checkout(trial.number, task))
    try:
        ready = prepare(site, trial, task, agent)
        _set_up(site, task, ready.place, hand)
        if hand.watch() is not None:
            return None
        command = Command(ready.argv, site.checkouts, ready.environ)
        ended, said = hand.run(command)
        return None if ended.cut is not None else _result(site, trial, ready, ended, said)
    except (RalphError, OSError) as error:
        words = error.words if isinstance(error, RalphError) else str(error)
        return None if hand.watch() else Result(trial, Verdict(ERROR, words), ended=time.time())
    finally:
        if not site.suite.file.keep:
            remove(place)


def _result(site: Site, trial: Trial, ready: Prepared, ended: Exit, said: str) -> Result:
    """The result, as the journal of its run tells it."""
    runs = runs_of(project_dir(state_root(site.environ), ready.place))
    if not runs:
        why = "; ".join(_people_read(said)[:2])
        return Result(
            trial,
            Verdict(ERROR, f"no run began (exit code {ended.code}): {why}"),
            ended=time.time(),
        )
    run = runs[0]
    with folding(run.journal):
        verdict = verdict_of(_facts_of(run), ready.gate)
    return Result(trial, verdict, run.id, time.time())


def _facts_of(run: Run) -> Iterator[Fact]:
    """The facts of the run that had the turns: of a fleet's run its worker's."""
    workers = sorted(directories(os.path.join(run.directory, "runs")))
    journal = os.path.join(run.directory, "runs", workers[-1], JOURNAL) if workers else run.journal
    return Facts(journal).new()
