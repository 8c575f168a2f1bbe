"""Lists of stories, and what a reading of one becomes in the task file."""

import json
from typing import Any

from ralph.formats.base import Format, TaskList

Json = dict[str, Any]


def records_of(reading: TaskList, name: str) -> list[Json]:
    """The records that an import makes, with ids of ours: nothing may work by the luck that keys
    are ids."""
    records = []
    ids = {item.key: f"T-{number}" for number, item in enumerate(reading.items)}
    for number, item in enumerate(reading.items):
        source = {"format": name, "path": "list", "key": item.key, "kept": dict(item.kept)}
        if not number:
            source["root"] = dict(reading.root)
        record = {"id": ids[item.key], **item.fields, "source": source}
        if "blockedBy" in record:
            record["blockedBy"] = [ids[key] for key in record["blockedBy"]]
        records.append(record)
    # As the task file gives them back.
    return [json.loads(json.dumps(record)) for record in records]


def written(form: Format, text: str) -> str:
    """The list after it was read and written."""
    reading = form.read(text, "list")
    return form.write(records_of(reading, form.name), reading.root).text


def as_json(content: object) -> str:
    """A list as tools write it."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def story(key: str, **more: Any) -> Json:  # noqa: ANN401
    """A story of snarktank's."""
    return {
        "id": key,
        "title": f"Do {key}",
        "description": f"As a user I want {key}",
        "acceptanceCriteria": ["It works", "Typecheck passes"],
        "priority": 1,
        "passes": False,
        "notes": "",
        **more,
    }


def listing(*stories: Json, **more: Any) -> Json:  # noqa: ANN401
    """A list of snarktank's."""
    root = {"project": "App", "branchName": "ralph/app", "description": "An app"}
    return {**root, **more, "userStories": list(stories)}
