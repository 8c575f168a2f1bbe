"""The formats by name, and which of them a file has."""

import json
import subprocess
import sys
from itertools import permutations

import pytest

from ralph.errors import ConfigError
from ralph.formats.base import spliced
from ralph.formats.catalog import NAMES, by_name, detect

STORY = {"id": "US-1", "title": "One", "passes": False}
ISSUE = {"number": 1, "title": "One", "state": "OPEN", "body": "", "labels": []}
LISTS = [
    ("prd", "prd.json", json.dumps({"project": "x", "userStories": [STORY]})),
    ("ralph-tui", "prd.json", json.dumps({"name": "x", "userStories": [STORY]})),
    ("stories", "tasks.json", json.dumps({"userStories": [{**STORY, "reviewStatus": None}]})),
    ("iannuttall", "prd-x.json", json.dumps({"version": 1, "stories": [STORY]})),
    ("markdown", "fix_plan.md", "# Plan\n\n- [ ] One\n- [x] Two\n"),
    (
        "beads",
        ".beads/issues.jsonl",
        '{"id":"bd-1","title":"One","status":"open","issue_type":"bug"}\n',
    ),
    ("ralphy", "tasks.yaml", "tasks:\n  - title: One\n    completed: false\n"),
    ("ralphy", "tasks.json", json.dumps({"tasks": [{"title": "One", "completed": False}]})),
    ("github", "issues.json", json.dumps([ISSUE])),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_format_has_the_name_by_which_it_is_found(name: str) -> None:
    assert by_name(name).name == name


@pytest.mark.parametrize(("name", "path", "text"), LISTS)
def test_a_list_is_detected(name: str, path: str, text: str) -> None:
    """ "Formats are detected", each as itself alone."""
    assert detect(path, text).name == name
    assert detect(path, text.replace("\n", "\r\n")).name == name


@pytest.mark.parametrize(("name", "path", "text"), LISTS)
def test_a_byte_order_mark_is_in_nobodys_way(name: str, path: str, text: str) -> None:
    """Some editors write one: the list is read, and marked, as without it."""
    form = by_name(name)

    def marked(before: str) -> list[tuple[str, object]]:
        keys = {item.key for item in form.read(f"{before}{text}", path).items}
        after = form.marked(f"{before}{text}", keys, True)
        assert after.startswith(before)
        return [(item.key, item.fields["status"]) for item in form.read(after, path).items]

    assert marked("\ufeff") == marked("")
    assert marked("\ufeff") != [(key, "pending") for key, _ in marked("")]


def test_changes_of_a_text_may_come_in_any_order() -> None:
    changes = [(4, 5, "E"), (0, 0, "<"), (1, 3, ""), (6, 6, ">")]
    for order in permutations(changes):
        assert spliced("abcdef", order) == "<adEf>"


@pytest.mark.parametrize("text", ["", "words\n", "{}", "[]", "[1]", '"x"', "a: b\n", "{" * 9999])
def test_what_is_no_list_is_named_with_all_formats(text: str) -> None:
    with pytest.raises(ConfigError, match=r"some\.file is no task list") as refused:
        detect("some.file", text)
    assert all(name in refused.value.remedy for name in NAMES)


def test_what_could_be_two_is_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"prd\.json could be prd, prd") as refused:
        detect("prd.json", LISTS[0][2], ("prd", "markdown", "prd"))
    assert refused.value.remedy == "Say which: --format prd"


def test_no_format_is_imported_before_it_is_asked_for() -> None:
    script = (
        "import sys, ralph.formats.catalog as r; r.by_name('prd');"
        "print([n for n in sys.modules if n.endswith(('.markdown', '.beads', '.github'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"
