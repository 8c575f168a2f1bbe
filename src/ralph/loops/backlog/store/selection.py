"""The backlog of a run: what the task file says, for the tasks it is for."""

import os
import shlex

from ralph.files.safe_open import read_or_nothing
from ralph.kernel.tasks.completion import Completion, parse
from ralph.kernel.tasks.task import Backlog, Task, chosen
from ralph.kernel.value import replace, value
from ralph.loops.backlog.gates.scripts import Runners
from ralph.loops.backlog.learning import relevant
from ralph.loops.backlog.prompt import Material
from ralph.loops.backlog.store.records import Records
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.settings.load import Loaded
from ralph.text.words import listed

_DOCUMENTS = ("AGENTS.md", "implementation-plan.md")  # B §The Loop: "Read Index"
_MOST = 65_536  # bytes of a document
_SHOWN = 20  # tasks of a circle


def test_command_of(loaded: Loaded) -> str:
    """The test command, if somebody has said which: the default is npm's, which may not be here."""
    return str((loaded.merged.get("loop") or {}).get("testCommand") or "")


@value
class TaskBacklog:
    """Reads the file anew whenever it is asked, which costs nothing while nobody changes it."""

    file: TaskFile
    task: str | None = None  # only this one
    tags: tuple[str, ...] = ()  # only those with one of these
    runners: Runners | None = None  # who could run their checks; None if nobody asks
    test_command: str = ""  # to which an id is given; "" where nobody has said which

    def __call__(self) -> Backlog:
        """The tasks as they stand now, with a word on each that nothing here could prove. A circle
        of them is a problem, for none could begin."""
        listing = self.file.read()
        backlog = chosen(listing.backlog, self.task, self.tags)
        if self.runners is not None:
            scripts = {t.script for t in backlog.tasks if t.script and t.open}
            problems = {s: why for s in scripts if (why := self.runners.problem(s))}
            tasks = (replace(t, uncheckable=problems.get(t.script, "")) for t in backlog.tasks)
            backlog = replace(backlog, tasks=tuple(tasks)) if problems else backlog
        if not listing.cycle:
            return backlog
        circle = listed((*listing.cycle, listing.cycle[0]), _SHOWN, " -> ")
        remedy = "break it: ralph tasks edit ID --unblock OTHER"
        return replace(backlog, problem=f"tasks wait for each other: {circle}; {remedy}")

    def rule_of(self, task: str) -> Completion:
        return parse((self.file.record(task) or {}).get("completion"), task)

    def tests_of(self, task: str) -> str:
        """The command that runs the tests named after a task, if it says nothing else completes it;
        "" for none."""
        if not self.test_command or (self.file.record(task) or {}).get("completion") is not None:
            return ""
        return f"{self.test_command} {shlex.quote(task)}"

    def scripts(self) -> tuple[str, ...]:
        """The scripts that validate open tasks."""
        return tuple(dict.fromkeys(t.script for t in self().tasks if t.open and t.script))

    def material(self, records: Records, task: Task) -> Material:
        """The project's documents as they are now, and what was learned."""
        documents = []
        for name in _DOCUMENTS:
            found = read_or_nothing(os.path.join(self.file.workspace, name), _MOST)
            text = found.decode("utf-8", "replace").replace("\0", "\ufffd")
            documents += [(name, text)] if text else []
        lessons = relevant(records.lessons(), records.progress_of(task.id), task)
        return Material(tuple(documents), lessons, self.tests_of(task.id))
