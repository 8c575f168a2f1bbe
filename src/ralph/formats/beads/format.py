"""beads' `issues.jsonl`, one issue a line, and the list that `bd list --json` prints. Tombstones,
templates and messages are no tasks; they stay in the list when it is written again."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ralph.formats.base import TaskList, Writing
from ralph.formats.beads.fields import (
    NAME,
    is_array,
    is_issue,
    is_task,
    item_of,
    places_in,
)
from ralph.formats.json_lists import (
    ABSENT,
    all_are,
    with_members,
)
from ralph.text.timestamps import iso

_LARGEST_ROOT = 1 << 19  # characters; the way back must fit into a line of tasks.jsonl
_ESCAPES = ("\\u003c", "\\u003e", "\\u0026")  # as Go writes < > & by default


class Beads:
    """Issues. `now` is the time at which one is closed, reopened or new."""

    name = NAME

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def fits(self, name: str, text: str) -> bool:
        bare = text.removeprefix("\ufeff").lstrip()
        first = bare if bare.startswith("[") else bare.partition("\n")[0]
        other = name.casefold().endswith((".md", ".yaml", ".yml"))
        return not other and all_are(first, is_issue)

    def read(self, text: str, name: str) -> TaskList:
        places = places_in(text)
        tasks = [place.content for place in places if is_task(place.content)]
        keys = {str(issue["id"]) for issue in tasks}
        lost: list[str] = []
        made = tuple(item_of(issue, keys, lost) for issue in tasks)
        others = [(n, place) for n, place in enumerate(places) if not is_task(place.content)]
        root: dict[str, Any] = {}
        if sum(place.end - place.at for _, place in others) > _LARGEST_ROOT:
            lost.append(f"{name}: its {len(others)} issues that are no tasks are too long to keep")
        elif others:
            root["others"] = [[n, text[place.at : place.end]] for n, place in others]
        if any(escape in text for escape in _ESCAPES):
            root["escaped"] = True
        if is_array(text):
            root["array"] = "lines" if "\n" in text.strip() else "line"
        return TaskList(made, root if made else {}, tuple(lost))

    def write(self, tasks: Sequence[Mapping[str, Any]], root: Mapping[str, Any]) -> Writing:
        from ralph.formats.beads.write import written

        return written(tasks, root, iso(self._now()))

    def marked(self, text: str, keys: Collection[str], done: bool) -> str:
        now = iso(self._now())
        changes = {
            "status": "closed" if done else "open",
            "updated_at": now,
            "closed_at": now if done else ABSENT,
            "close_reason": "Completed" if done else ABSENT,
        }
        wrong = [
            (place, changes)
            for place in places_in(text)
            if place.content["id"] in keys
            and is_task(place.content)
            and (place.content.get("status") == "closed") is not done
        ]
        return with_members(text, wrong)


FORMAT = Beads(lambda: datetime.now(UTC))
