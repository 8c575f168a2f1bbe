"""An evaluation on disk: what it is, and each result as soon as there is one."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from ralph.errors import ConfigError, StateError
from ralph.evaluation.suite import Suite
from ralph.evaluation.trials import Result, TaskCheck, as_json, from_json
from ralph.files.jsonl import append, json_object
from ralph.files.safe_open import read_or_nothing
from ralph.files.state_dir import ensure_state_root, write_atomically, writing_state
from ralph.journal.lock import Lock
from ralph.journal.run_id import new_run_id
from ralph.kernel.value import value
from ralph.sandbox.layer_store import remove

FOLDER = "evals"  # in the state directory
_ABOUT, _RESULTS, _LOCK = "eval.json", "results.jsonl", "eval.lock"


@value
class Evaluation:
    """One execution of a suite, however often it was interrupted."""

    directory: str
    began: float
    digest: str  # of its suite
    options: Mapping[str, Any]  # with which it was begun: agents, tasks, repeats, fleet

    @property
    def id(self) -> str:
        return os.path.basename(self.directory)

    def place(self, *names: str) -> str:
        return os.path.join(self.directory, *names)

    def keep(self, result: Result) -> None:
        """Write down the result of a trial."""
        self._append({"type": "trial", **as_json(result)})

    def keep_check(self, check: TaskCheck) -> None:
        """Write down what was found about a task."""
        told: dict[str, Any] = {name: getattr(check, name) for name in TaskCheck.__match_args__}
        self._append({"type": "task", **told})

    def _append(self, record: dict[str, Any]) -> None:
        with writing_state(self.directory):
            append(self.place(_RESULTS), record)

    def results(self) -> dict[int, Result]:
        """The newest result of each trial, by its number. A torn line is none, nor is one that
        somebody has edited."""
        found = {}
        for record in self._records("trial"):
            with suppress(KeyError, TypeError):
                result = from_json(record)
                found[result.trial.number] = result
        return found

    def checks(self) -> dict[str, TaskCheck]:
        """What was found about each task."""
        return {
            record["task"]: TaskCheck(record["task"], record["passes_at_start"], record["problem"])
            for record in self._records("task")
        }

    def _records(self, kind: str) -> Iterator[dict[str, Any]]:
        for line in read_or_nothing(self.place(_RESULTS)).split(b"\n"):
            record = json_object(line)
            if record is not None and record.get("type") == kind:
                yield record

    def forget_unbegun(self) -> None:
        """Remove it, if nothing was found yet."""
        if not os.path.exists(self.place(_RESULTS)):
            remove(self.directory)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let nobody else work on it meanwhile."""
        lock = Lock(self.place(_LOCK))
        lock.acquire(self.id, time.time())
        try:
            yield
        finally:
            lock.release()


def begun(root: str, suite: Suite, options: Mapping[str, Any]) -> Evaluation:
    """A new evaluation of a suite."""
    ensure_state_root(root)
    now = time.time()
    directory = os.path.join(root, FOLDER, new_run_id(now))
    about = {"version": 1, "suite": suite.path, "digest": suite.digest, "options": {**options}}
    with writing_state(root):
        os.makedirs(directory, mode=0o700)
        write_atomically(
            os.path.join(directory, _ABOUT), json.dumps({**about, "began": now}), 0o600
        )
    return Evaluation(directory, now, suite.digest, options)


def last_of(root: str, suite: str) -> Evaluation | None:
    """The newest evaluation of the suite at that path, whatever it was then."""
    folder = os.path.join(root, FOLDER)
    try:
        names = sorted(os.listdir(folder), reverse=True)
    except OSError:
        return None
    for name in names:
        directory = os.path.join(folder, name)
        about = json_object(read_or_nothing(os.path.join(directory, _ABOUT))) or {}
        digest, options = about.get("digest"), about.get("options")
        if about.get("suite") == suite and isinstance(digest, str) and isinstance(options, dict):
            return Evaluation(directory, float(about.get("began") or 0.0), digest, options)
    return None


def resumed(root: str, suite: str, named: str) -> Evaluation:
    """The newest evaluation of the suite at that path, to go on with it."""
    found = last_of(root, suite)
    if found is None:
        raise ConfigError(f"no evaluation of {named} was begun", f"Begin one: ralph eval {named}")
    return found


def refuse_another(evaluation: Evaluation, suite: Suite, named: str) -> None:
    """StateError if the suite is not the one that the evaluation has results of."""
    if evaluation.digest != suite.digest:
        raise StateError(
            f"{named} is not what it was when evaluation {evaluation.id} began, so the results"
            " would not be of one suite",
            f"Put it back, or begin anew: ralph eval {named}",
        )
