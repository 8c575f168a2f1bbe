"""What the formats share: reading the records they write, times, and what must be left out."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ralph.adapters.digest import digest_of
from ralph.adapters.task_lines import iso

Record = Mapping[str, Any]
_LONGEST = 150  # characters of a name
_SHOWN = 5  # ids in a message


def kept_of(record: Record, name: str) -> Mapping[str, Any] | None:
    """What this format kept of a record when it read it; None: it came from elsewhere."""
    source = record.get("source")
    if not isinstance(source, Mapping) or source.get("format") != name:
        return None
    kept = source.get("kept")
    return kept if isinstance(kept, Mapping) else {}


def key_of(record: Record, name: str) -> str | None:
    """Its key in a list of the format of this name, if it came from one."""
    if kept_of(record, name) is None:
        return None
    key = record["source"].get("key")
    return key if isinstance(key, str) else None


def keys_of(tasks: Sequence[Record], name: str) -> dict[str, str]:
    """By which key each task is known in a list of this format, by its id. No two are the same."""
    ids = {str(record["id"]) for record in tasks}
    keys: dict[str, str] = {}
    used: set[str] = set()
    for record in tasks:
        task_id, key = str(record["id"]), key_of(record, name)
        own = key is not None and key not in used and (key == task_id or key not in ids)
        keys[task_id] = key if own and key is not None else task_id
        used.add(keys[task_id])
    return keys


def status_of(record: Record) -> str:
    """Its status; without one it is pending, as in tasks.jsonl."""
    return str(record.get("status") or "pending")


def text_of(record: Record, name: str) -> str:
    """A field that is a text, "" where it is not there."""
    found = record.get(name)
    return found if isinstance(found, str) else ""


def texts_of(record: Record, name: str) -> tuple[str, ...]:
    """A field that is a list of texts."""
    found = record.get(name)
    found = found if isinstance(found, list | tuple) else ()
    return tuple(one for one in found if isinstance(one, str))


def priority_of(record: Record) -> int:
    """Its priority; 0 where it has none."""
    found = record.get("priority")
    return found if type(found) is int else 0


def moment(text: object) -> str | None:
    """A time as tasks.jsonl has it; None for what is no time."""
    if not isinstance(text, str):
        return None
    try:
        return iso(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None


class Names:
    """Gives names that nobody has yet: a number behind those that are used."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)
        self._numbers: Counter[str] = Counter()

    def free(self, name: str) -> str:
        """The name, cut if it is long, that is used from now on."""
        if len(name) > _LONGEST:
            name = f"{name[:_LONGEST]}… {digest_of([name.encode('utf-8', 'replace')], 4)}"
        found = name
        while found in self._used:
            self._numbers[name] += 1
            found = f"{name} ({self._numbers[name] + 1})"
        self._used.add(found)
        return found


class Losses:
    """What does not go into a list: by what it is, with the tasks that have it."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}

    def add(self, what: str, task: str) -> None:
        tasks = self._found.setdefault(what, [])
        if tasks[-1:] != [task]:
            tasks.append(task)

    def fields(self, record: Record, names: Iterable[str]) -> None:
        """Each of these fields that the record has."""
        for name in names:
            if record.get(name) not in (None, "", [], {}, ()):
                self.add(name, str(record["id"]))

    def words(self) -> tuple[str, ...]:
        """One sentence for each kind."""
        return tuple(f"{what}: {_some(tasks)}" for what, tasks in self._found.items())


def _some(tasks: Sequence[str]) -> str:
    more = f" and {len(tasks) - _SHOWN} more" if len(tasks) > _SHOWN else ""
    return ", ".join(tasks[:_SHOWN]) + more
