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
from ralph.kernel.world import OF_GIT, REFS
from ralph.loops.backlog.planning.answer import read
from ralph.loops.backlog.planning.proposal import Proposal, as_json, from_json
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.loops.backlog.store.watch import TaskWatch, moment
from ralph.text.words import listed

FILE = "proposed.json"  # in the run's directory


def proposed(file: TaskFile, said: str) -> Proposal:
    """The tasks of an answer, beside those that are there now. What the guard keeps from agents is
    no check that the host runs for them."""
    here = file.workspace
    home = os.path.expanduser("~")
    temps = ("/tmp", "/var/tmp")  # noqa: S108
    where = Where(cwd=here, home=home, project=here, temps=temps, strict=True)
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
class Before:
    """`.ralph` before a turn: since when people's changes count, what lay there, and the list."""

    since: int
    names: tuple[str, ...] | None  # None: there was no such directory
    data: bytes

    @classmethod
    def of(cls, kept: bytes, iteration: int) -> "Before | None":
        """Read what `text` wrote; None for another iteration."""
        head, _, data = kept.partition(b"\n")
        said = json.loads(head)
        names = said["names"]
        there = None if names is None else tuple(names)
        return cls(said["since"], there, data) if said["iteration"] == iteration else None

    def text(self, iteration: int) -> bytes:
        head = {"iteration": iteration, "since": self.since, "names": self.names}
        return json.dumps(head).encode() + b"\n" + self.data


@value
class InPlace(InSandbox):
    """Settles a run whose turns are undone: by git, and `.ralph` by what was there before."""

    work: WorkTree
    watch: TaskWatch
    project: str  # its place in the state directory

    def begin(self, state: RunState) -> None:
        """Remember `.ralph` as it is before this turn; how it was before a turn that was cut off is
        remembered already."""
        if state.cut_off and self._before(state.iteration) is not None:
            return
        here = os.path.dirname(self.file.path)
        names = tuple(os.listdir(here)) if os.path.isdir(here) else None
        before = Before(moment(self.project), names, self.file.data())
        temporary = f"{self._memo}.tmp"
        with writing_state(self.run_dir):
            with open(temporary, "wb") as file:
                file.write(before.text(state.iteration))
            os.replace(temporary, self._memo)

    def restore(self, state: RunState) -> tuple[str, ...]:
        to, told = Checkpoint.of(state.checkpoint), []
        kept = self.work.restore(to, f"plan-{state.iteration}") if to else ""
        if kept:
            told.append(f"What the agent changed is put back, and kept in {kept}")
        if moved := self._put_git_back(state):
            told.append(f"Put back: {listed(sorted(moved))}")
        before = self._before(state.iteration)
        if before is not None:
            self.watch.stand(before.since, before.data)
            if self.watch.put_all_back():
                told.append("The task list is put back: a plan adds nothing by itself")
            self._clear_away(before, f"aside-{state.iteration}")
        return (*told, *self.work.notes())

    def end(self) -> None:
        self.work.end()

    def _put_git_back(self, state: RunState) -> frozenset[str]:
        """Put back the branches and the settings of git; what had moved."""
        trees, stand = self.work.trees, state.snapshot.stand
        if not stand.tree:
            return frozenset()
        moved = trees.changed(stand, trees.look()) & OF_GIT
        if moved and self.work.repository.ask("worktree", "list").count(b"\n") > 1:
            moved -= {REFS}  # somebody may work in another work tree; what was lost is back
        if moved:
            trees.put_back(stand, moved, f"plan-{state.iteration}")
        return moved

    @property
    def _memo(self) -> str:
        return os.path.join(self.run_dir, "list.before")

    def _before(self, iteration: int) -> Before | None:
        """What was remembered for this iteration."""
        with suppress(FileNotFoundError), open_regular(self._memo) as kept:
            return Before.of(kept.read(), iteration)
        return None

    def _clear_away(self, before: Before, label: str) -> None:
        """Move what is new in `.ralph` to the run's directory, unless people have begun a list."""
        here = os.path.dirname(self.file.path)
        known = {*(before.names or ())}
        if not os.path.isdir(here):
            return
        if self.file.data():
            known |= {".gitignore", os.path.basename(self.file.path)}
        new = [name for name in os.listdir(here) if name not in known]
        aside = os.path.join(self.run_dir, label)
        for name in new:
            os.makedirs(aside, mode=0o700, exist_ok=True)
            shutil.move(os.path.join(here, name), os.path.join(aside, name))
        if before.names is None and not os.listdir(here):
            os.rmdir(here)
