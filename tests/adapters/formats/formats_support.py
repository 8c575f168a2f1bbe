"""What tests of formats share: a list as it stands in tasks.jsonl after an import."""

from collections.abc import Mapping
from typing import Any

from ralph.adapters.formats.base import Format, Reading

Record = dict[str, Any]


def imported(reading: Reading, name: str, path: str = "list", first: int = 1) -> list[Record]:
    """The records that an import makes of a list. All get ids of ours, so that nothing works by
    the luck of keys that are ids."""
    ids = {item.key: f"T-{n:03}" for n, item in enumerate(reading.items, first)}
    assert len(ids) == len(reading.items), "keys are unique"
    records: list[Record] = []
    for item in reading.items:
        fields = dict(item.fields)
        if "parent" in fields:
            fields["parent"] = ids[fields["parent"]]
        if "blockedBy" in fields:
            fields["blockedBy"] = [ids[key] for key in fields["blockedBy"]]
        source: Record = {"format": name, "path": path, "key": item.key, "kept": dict(item.kept)}
        if not records:
            source["root"] = dict(reading.root)
        records.append({"id": ids[item.key], **fields, "source": source})
    return records


def again(form: Format, text: str, name: str) -> str:
    """The list after a way through tasks.jsonl."""
    reading = form.read(text, name)
    return form.write(imported(reading, form.name), reading.root).text


def by_key(reading: Reading) -> dict[str, Mapping[str, Any]]:
    """The fields of each item."""
    return {item.key: item.fields for item in reading.items}
