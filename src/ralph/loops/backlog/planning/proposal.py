"""Tasks that an agent proposes, and the words that go with them."""

from collections.abc import Iterable, Mapping
from typing import Any

from ralph.kernel.tasks import completion
from ralph.kernel.value import replace, value
from ralph.text.words import counted

Record = Mapping[str, Any]
GOAL = "/goal"  # the one task of the run that plans; no task of a list can have this id


@value
class Proposal:
    """Records as the task file would hold them, but for their status and times."""

    tasks: tuple[Record, ...] = ()
    refused: tuple[str, ...] = ()  # what is no task, and why
    notes: tuple[tuple[str, str], ...] = ()  # by the task's id: what is not as the agent wrote it
    problem: str = ""  # why there is none

    @property
    def words(self) -> str:
        """`3 tasks, 2 of them with a check`."""
        checked = sum(bool(check_of(record)) for record in self.tasks)
        return f"{counted(len(self.tasks), 'task')}, {checked or 'none'} of them with a check"

    @property
    def objections(self) -> str:
        """Why nothing of it can be used."""
        return "; ".join((*filter(None, [self.problem]), *self.refused))

    def notes_on(self, task: str) -> tuple[str, ...]:
        return tuple(words for name, words in self.notes if name == task)


def check_of(record: Record) -> str:
    """What the host will look at, in words; "" where the agent's word completes the task."""
    rule = completion.parse(record.get("completion"), record["id"])
    return completion.words(rule, record["id"])


def with_ids(proposal: Proposal, ids: Mapping[str, str]) -> Proposal:
    """The same with other ids, by the old ones."""

    def named(old: str) -> str:
        return ids.get(old, old)

    tasks = []
    for record in proposal.tasks:
        new = {**record, "id": named(record["id"])}
        if "blockedBy" in record:
            new["blockedBy"] = [named(one) for one in record["blockedBy"]]
        if "parent" in record:
            new["parent"] = named(record["parent"])
        tasks.append(new)
    notes = tuple((named(task), words) for task, words in proposal.notes)
    return replace(proposal, tasks=tuple(tasks), notes=notes)


def as_json(proposal: Proposal) -> dict[str, Any]:
    """A proposal as it is kept."""
    return {
        "tasks": list(proposal.tasks),
        "refused": list(proposal.refused),
        "notes": [list(note) for note in proposal.notes],
    }


def from_json(data: Mapping[str, Any]) -> Proposal:
    """What `as_json` wrote."""
    notes = tuple((str(task), str(words)) for task, words in data["notes"])
    return Proposal(tuple(data["tasks"]), tuple(data["refused"]), notes)


def same(title: str) -> str:
    """By which two titles are the same."""
    return " ".join(title.split()).casefold()


def titles(tasks: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The id of each task by its title."""
    return {same(title): name for name, title in reversed([*tasks]) if title}
