"""What tests of formats share: a list as it stands in tasks.jsonl after an import."""

from collections.abc import Mapping
from typing import Any

from ralph.formats.base import Format, TaskList

Record = dict[str, Any]


def imported(reading: TaskList, name: str, path: str = "list", first: int = 1) -> list[Record]:
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


def by_key(reading: TaskList) -> dict[str, Mapping[str, Any]]:
    """The fields of each item."""
    return {item.key: item.fields for item in reading.items}


def assert_comes_back(form: Format, text: str) -> None:
    """The list is written as it was, and each of its items can be marked without the others."""
    reading = form.read(text, "x")
    if reading.items:
        assert form.write(imported(reading, form.name), reading.root).text == text
    for item in reading.items:
        done = item.fields["status"] not in ("done", "cancelled")
        after = form.read(form.marked(text, [item.key], done), "x")
        for old, new in zip(reading.items, after.items, strict=True):
            assert old.key == new.key
            assert (old.fields == new.fields) is (old.key != item.key)


def assert_read_or_refused(form: Format, text: str) -> None:
    """Whatever it is, there is no other error than the one with words."""
    form.fits("x", text)
    try:
        form.read(text, "x")
        form.marked(text, ["a"], True)
    except ValueError:
        pass
