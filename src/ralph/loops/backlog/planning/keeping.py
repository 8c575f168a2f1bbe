"""Keeps what an agent proposes in its run's directory, and the project as it was."""

import json
import os
import shutil
from contextlib import suppress

from ralph.errors import ConfigError
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import write_atomically, writing_state
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.work import Checkpoint
from ralph.guard.judge import Where, judge
from ralph.kernel.state import RunState
from ralph.kernel.value import value
from ralph.loops.backlog.planning.answer import read
from ralph.loops.backlog.planning.proposal import Proposal, as_json, from_json
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.loops.backlog.store.watch import TaskWatch, moment

FILE = "proposed.json"  # in the run's directory


def proposed(file: TaskFile, said: str) -> Proposal:
    """The tasks of an answer, beside those that are there now. What the guard keeps from agents is
    no check that the host runs for them."""
    here = file.workspace
    home = os.path.expanduser("~")
    where = Where(cwd=here, home=home, project=here, temps=("/tmp", "/var/tmp"))  # noqa: S108
    return read(said, file.read().backlog, lambda command: judge(command, where).reason)


def proposal_of(run_dir: str) -> Proposal:
    """What was proposed in a run."""
    path = os.path.join(run_dir, FILE)
    try:
        with open_regular(path) as kept:
            return from_json(json.load(kept))
    except FileNotFoundError:
        name = os.path.basename(run_dir)
        raise ConfigError(
            f"run {name} has proposed no tasks", 'Plan them: ralph tasks plan "GOAL"'
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = 'Plan anew: ralph tasks plan "GOAL"'
        raise ConfigError(f"cannot read what was proposed: {path}: {error}", remedy) from error


@value
class InSandbox:
    """Settles a run whose sandbox throws away what its turns change."""

    file: TaskFile
    run_dir: str

    def keep(self, state: RunState) -> str:
        assert state.turn is not None, "it was accepted"
        proposal = proposed(self.file, state.turn.text)
        with writing_state(self.run_dir):
            write_atomically(os.path.join(self.run_dir, FILE), json.dumps(as_json(proposal)), 0o600)
        return proposal.words

    def begin(self, state: RunState) -> None: ...

    def restore(self, state: RunState) -> tuple[str, ...]:
        return ()

    def end(self) -> None: ...


@value
class InPlace(InSandbox):
    """Settles a run whose turns are undone by git, and its task list by what it was before."""

    work: WorkTree
    watch: TaskWatch
    project: str  # its place in the state directory

    @property
    def _memo(self) -> str:
        return os.path.join(self.run_dir, "list.before")

    def begin(self, state: RunState) -> None:
        """Remember the list as it is before this turn; the one before a turn that was cut off is
        remembered already."""
        if state.cut_off and self._before(state.iteration) is not None:
            return
        above = os.path.dirname(self.file.path)
        there = sum(map(os.path.lexists, (above, self.file.path)))
        head = f"{state.iteration} {moment(self.project)} {there}\n".encode()
        temporary = f"{self._memo}.tmp"
        with writing_state(self.run_dir):
            with open(temporary, "wb") as file:
                file.write(head + self.file.data())
            os.replace(temporary, self._memo)

    def restore(self, state: RunState) -> tuple[str, ...]:
        to, told = Checkpoint.of(state.checkpoint), []
        kept = self.work.restore(to, f"plan-{state.iteration}") if to else ""
        if kept:
            told.append(f"What the agent changed is put back, and kept in {kept}")
        before = self._before(state.iteration)
        if before is not None:
            since, there, data = before
            self.watch.stand(since, data)
            if self.watch.put_back():
                told.append("The task list is put back: a plan adds nothing by itself")
                self._remove_list(there)
        return (*told, *self.work.notes())

    def end(self) -> None:
        self.work.end()

    def _before(self, iteration: int) -> tuple[int, int, bytes] | None:
        """Since when people's changes count, what was there (nothing, the directory, the list too),
        and what the list held; None if that was not remembered for this iteration."""
        with suppress(FileNotFoundError), open_regular(self._memo) as kept:
            head, data = kept.readline(), kept.read()
            number, since, there = map(int, head.split())
            return (since, there, data) if number == iteration else None
        return None

    def _remove_list(self, there: int) -> None:
        """Remove what was not there, and holds nothing of a person's now."""
        above = os.path.dirname(self.file.path)
        if there == 2 or os.path.getsize(self.file.path):
            return
        os.unlink(self.file.path)
        if not there and os.listdir(above) == [".gitignore"]:
            shutil.rmtree(above)
