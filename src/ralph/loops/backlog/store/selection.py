"""The backlog of a run: what the task file says, for the tasks it is for."""

import os

from ralph.files.safe_open import open_regular
from ralph.kernel.tasks.backlog import chosen
from ralph.kernel.tasks.completion import Completion, parse
from ralph.kernel.tasks.task import Backlog, Task
from ralph.kernel.value import replace, value
from ralph.loops.backlog.gates.script_runners import Runners
from ralph.loops.backlog.learning import lessons_of, relevant
from ralph.loops.backlog.prompt import Material
from ralph.loops.backlog.store.records import Records
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.text.words import listed

_PAPERS = ("AGENTS.md", "implementation-plan.md")  # B §The Loop: "Read Index"
_MOST = 65_536  # bytes of a paper
_SHOWN = 20  # tasks of a circle


@value
class TaskBacklog:
    """Reads the file anew whenever it is asked, which costs nothing while nobody changes it."""

    file: TaskFile
    task: str | None = None  # only this one
    tags: tuple[str, ...] = ()  # only those with one of these
    runners: Runners | None = None  # who could run their checks; None if nobody asks

    def __call__(self) -> Backlog:
        """The tasks as they stand now. A circle of them is a problem, for none could begin."""
        listing = self.file.read()
        backlog = self._looked_at(chosen(listing.backlog, self.task, self.tags))
        if not listing.cycle:
            return backlog
        circle = listed((*listing.cycle, listing.cycle[0]), _SHOWN, " -> ")
        remedy = "break it: ralph tasks edit ID --unblock OTHER"
        return replace(backlog, problem=f"tasks wait for each other: {circle}; {remedy}")

    def rule_of(self, task: str) -> Completion:
        """What completes the task."""
        return parse((self.file.record(task) or {}).get("completion"), task)

    def _looked_at(self, backlog: Backlog) -> Backlog:
        """The backlog, with a word on each task that nothing here could prove."""
        if self.runners is None:
            return backlog
        scripts = {t.script for t in backlog.tasks if t.script and t.open}
        problems = {s: why for s in scripts if (why := self.runners.problem(s))}
        if not problems:
            return backlog
        tasks = (
            replace(t, uncheckable=problems[t.script]) if t.script in problems else t
            for t in backlog.tasks
        )
        return replace(backlog, tasks=tuple(tasks))

    def scripts(self) -> tuple[str, ...]:
        """What validates open tasks."""
        return tuple(dict.fromkeys(t.script for t in self().tasks if t.open and t.script))

    def material(self, records: Records, task: Task) -> Material:
        """The project's papers as they are now, and what was learned."""
        papers = ((name, self._paper(name)) for name in _PAPERS)
        past = lessons_of(records.lessons())
        lessons = relevant(past, records.progress_of(task.id), task)
        return Material(tuple((name, text) for name, text in papers if text), lessons)

    def _paper(self, name: str) -> str:
        try:
            with open_regular(os.path.join(self.file.workspace, name)) as file:
                return file.read(_MOST).decode("utf-8", "replace").replace("\0", "\ufffd")
        except OSError:
            return ""
