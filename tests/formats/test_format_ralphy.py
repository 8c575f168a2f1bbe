"""ralphy's tasks in YAML and JSON: "edits only that item's `completed`, comments stay"."""

import json
import subprocess
import sys

import pytest
from formats_support import (
    Record,
    again,
    assert_comes_back,
    assert_read_or_refused,
    by_key,
    imported,
)
from hypothesis import given
from hypothesis import strategies as st

from kits.thorough import dealt
from ralph.formats.ralphy import FORMAT

YAML = """\
# What we do next
project: shop   # kept
tasks:
  - title: Set up the database   # first of all
    completed: true
    parallel_group: 1
  - title: "Ünïcode: 'quotes' 😀"
    parallel_group: 1

  # The second wave
  - title: Add the API
    description: |
      Routes:
        - [ ] not a box
    completed: false  # not yet
    parallel_group: 2
    owner: developer
  - {title: Write tests, completed: no, parallel_group: 2}
  - title: >-
      Folded
      title
"""
JSON = {
    "tasks": [
        {"title": "A", "completed": False, "parallel_group": 1, "description": "x"},
        {"title": "B", "completed": True, "parallel_group": 2, "due": "2026-01-01"},
        {"title": "C", "parallel_group": 2},
    ],
    "version": 1,
}
JSON_TEXT = f"{json.dumps(JSON, indent=2)}\n"


def test_yaml_is_read() -> None:
    """ "Tasks of group n wait for those of lower groups"."""
    reading = FORMAT.read(YAML, "tasks.yaml")
    found = by_key(reading)
    wave = ["/Set up the database", "/Ünïcode: 'quotes' 😀"]
    assert found == {
        "/Set up the database": {
            "title": "Set up the database",
            "status": "done",
            "blockedBy": ["/Folded title"],
        },
        "/Ünïcode: 'quotes' 😀": {
            "title": "Ünïcode: 'quotes' 😀",
            "status": "pending",
            "blockedBy": ["/Folded title"],
        },
        "/Add the API": {
            "title": "Add the API",
            "description": "Routes:\n  - [ ] not a box\n",
            "status": "pending",
            "blockedBy": wave,
        },
        "/Write tests": {"title": "Write tests", "status": "pending", "blockedBy": wave},
        "/Folded title": {"title": "Folded title", "status": "pending"},
    }
    assert reading.lost == ()


def test_json_is_read() -> None:
    found = by_key(FORMAT.read(JSON_TEXT, "tasks.json"))
    assert [fields["status"] for fields in found.values()] == ["pending", "done", "pending"]
    assert found["/C"]["blockedBy"] == ["/A"]


def test_titles_that_are_there_twice_have_keys_of_their_own() -> None:
    text = '{"tasks": [{"title": "a"}, {"title": "a"}, {"title": "a (2)"}]}'
    assert [i.key for i in FORMAT.read(text, "x").items] == ["/a", "/a (2)", "/a (2) (2)"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tasks: [", "line 1, column 9: "),
        ("a: b", "`tasks` must be a list"),
        ("- title: a", "there is no `tasks:` at its top"),
        ("", "there is no `tasks:` at its top"),
        ("tasks:\n- a", "task 1: it must be an object with a title"),
        ("tasks:\n- title: a\n- title: 5", "task 2: title must be a text"),
        ("tasks:\n- title: a\n  completed: 1", "task 1: completed must be true or false"),
        ("tasks:\n- title: a\n  parallel_group: x", "task 1: parallel_group must be a whole"),
        ('{"tasks": 1', "line 1, column 12: "),
        ('{"tasks": {}}', "`tasks` must be a list"),
        ("tasks: " + "[" * 5000, ""),
        ("- " * 5000, ""),
        ("a: &a [*a]\ntasks: *a", "nested too deeply"),
        ("tasks: !!python/object/apply:os.system [true]", "could not determine a constructor"),
        ("tasks:\n- title: a\n--- b", "but found another document"),
        ("\x07", "special characters are not allowed"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, why: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011  the words are compared
        FORMAT.read(text, "tasks.yaml")
    assert why in str(error.value)


def test_aliases_of_aliases_do_not_fill_the_memory() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 20)
    )
    with pytest.raises(ValueError, match="too much"):
        FORMAT.read(f"{bomb}tasks: []\n", "tasks.yaml")


def test_groups_of_thousands_are_refused() -> None:
    tasks = [{"title": str(n), "parallel_group": n % 2} for n in range(10_000)]
    with pytest.raises(ValueError, match="dependencies"):
        FORMAT.read(json.dumps({"tasks": tasks}), "x")


@pytest.mark.parametrize(
    ("name", "text", "fits"),
    [
        ("tasks.yaml", YAML, True),
        ("-", YAML, True),
        ("tasks.json", JSON_TEXT, True),
        ("ralph.yml", "tasks:\n  enabled: true\n", False),
        ("queue.json", '{"tasks": [{"id": "1", "title": "a", "status": "todo"}]}', False),
        ("prd.json", '{"userStories": []}', False),
        ("tasks.json", '{"tasks": []}', False),
        ("x.md", YAML, False),
        ("x.json", "{", False),
        ("x", "", False),
    ],
)
def test_it_is_known_by_its_titles(name: str, text: str, fits: bool) -> None:
    assert FORMAT.fits(name, text) is fits


def test_yaml_is_asked_for_only_when_it_is_met() -> None:
    """ "PyYAML, imported only when a YAML file is met"; without it the error says what to type."""
    program = (
        "import sys; sys.modules['yaml'] = None\n"
        "from ralph.formats.ralphy import FORMAT\n"
        "from ralph.errors import ConfigError\n"
        "assert FORMAT.fits('a.yaml', 'tasks:\\n- title: a')\n"
        "FORMAT.read('{\"tasks\": []}', 'a.json')\n"
        "try: FORMAT.read('tasks: []', 'a.yaml')\n"
        "except ConfigError as error: print(error.remedy)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "Type: pip install 'ralph-engine[formats]'\n"


# ------------------------------------------------------------------ marking


@pytest.mark.parametrize(
    ("key", "done", "old", "new"),
    [
        ("/Set up the database", False, "completed: true\n", "completed: false\n"),
        ("/Add the API", True, "completed: false  # not", "completed: true  # not"),
        ("/Write tests", True, "completed: no,", "completed: true,"),
        ("/Ünïcode: 'quotes' 😀", True, '😀"\n', '😀"\n    completed: true\n'),
        ("/Folded title", True, "- title: >-", "- completed: true\n    title: >-"),
        ("/Add the API", False, "", ""),
    ],
)
@pytest.mark.parametrize("change", ["", "crlf", "bom"])
def test_only_the_one_value_changes_in_yaml(
    key: str, done: bool, old: str, new: str, change: str
) -> None:
    text, expected = YAML, YAML.replace(old, new, 1)
    if change == "crlf":
        text, expected = text.replace("\n", "\r\n"), expected.replace("\n", "\r\n")
    if change == "bom":
        text, expected = f"\ufeff{text}", f"\ufeff{expected}"
    assert FORMAT.marked(text, [key], done) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tasks:\n- title: a", "tasks:\n- title: a\n  completed: true"),
        ("tasks:\n- title: a # c", "tasks:\n- title: a # c\n  completed: true"),
        ("tasks: [{title: a}]", "tasks: [{completed: true, title: a}]"),
        ("tasks:\n- title: a\n  completed:\n", "tasks:\n- title: a\n  completed: true\n"),
        ("tasks:\n- completed: 'false'\n  title: a", None),
        ("x: &x false\ntasks:\n- title: a\n  completed: *x\n", None),
        ("tasks:\n- title: a\n  completed: &x false\n- title: b\n  completed: *x\n", None),
        ("tasks:\n- &x\n  title: a\n  completed: false\n- <<: *x\n  title: b\n", None),
        (
            "x: &x {completed: false}\ntasks:\n- <<: *x\n  title: a\n",
            "x: &x {completed: false}\ntasks:\n- <<: *x\n  title: a\n  completed: true\n",
        ),
    ],
)
def test_corners_of_yaml(text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="completed"):
            FORMAT.marked(text, ["/a"], True)
    else:
        assert FORMAT.marked(text, ["/a"], True) == expected


def test_only_the_one_value_changes_in_json() -> None:
    marked = FORMAT.marked(JSON_TEXT, ["/A"], True)
    assert marked == JSON_TEXT.replace('"completed": false', '"completed": true', 1)
    assert FORMAT.marked(marked, ["/A"], False) == JSON_TEXT
    added = FORMAT.marked(JSON_TEXT, ["/C"], True)
    assert json.loads(added)["tasks"][2] == {"title": "C", "parallel_group": 2, "completed": True}
    assert added.startswith(JSON_TEXT[: JSON_TEXT.index('"C"')])
    assert FORMAT.marked(JSON_TEXT, ["/D"], True) == JSON_TEXT


# ------------------------------------------------------------------ writing


@pytest.mark.parametrize(
    "text",
    [YAML, JSON_TEXT, f"\ufeff{YAML}", '{"tasks":[{"title":"a","x":[1,null]}],"y":"ö"}\n'],
)
def test_a_list_is_written_as_it_was(text: str) -> None:
    assert again(FORMAT, text, "x") == text


def test_only_completed_is_changed_in_yaml() -> None:
    reading = FORMAT.read(YAML, "x")
    records = imported(reading, "ralphy")
    records[2]["status"], records[3]["status"] = "done", "done"
    text = FORMAT.write(records, reading.root).text
    assert text == YAML.replace("completed: false", "completed: true").replace(": no,", ": true,")


def test_more_than_that_is_written_anew_and_said() -> None:
    reading = FORMAT.read(YAML, "x")
    records = imported(reading, "ralphy")
    records[2]["title"] = "Other"
    own: Record = {"id": "T-9", "title": "New", "blockedBy": ["T-003"], "status": "blocked"}
    written = FORMAT.write([*records, own], reading.root)
    assert "comments and the way it was written" in written.lost
    assert "status blocked (written as not completed): T-9" in written.lost
    found = by_key(FORMAT.read(written.text, "x.yaml"))
    assert "/Other" in found
    assert found["/New"]["blockedBy"] == ["/Other", "/Write tests"]
    assert "project: shop" in written.text
    assert "owner: developer" in written.text


def test_dependencies_become_groups() -> None:
    tasks: list[Record] = [
        {"id": "T-1", "title": "A", "blockedBy": ["T-3"]},
        {"id": "T-2", "title": "B", "blockedBy": ["T-1", "gone"], "priority": 3},
        {"id": "T-3", "title": "C", "description": "x", "status": "done"},
    ]
    written = FORMAT.write(tasks, {})
    assert json.loads(written.text) == {
        "tasks": [
            {"title": "A", "completed": False, "parallel_group": 1},
            {"title": "B", "completed": False, "parallel_group": 2, "ralph": {"priority": 3}},
            {"title": "C", "completed": True, "description": "x"},
        ]
    }
    assert written.lost == ("blockers and parents that are not in this list: T-2",)


def test_circles_and_long_chains_are_written() -> None:
    circle: list[Record] = [
        {"id": "T-1", "title": "A", "blockedBy": ["T-2"]},
        {"id": "T-2", "title": "B", "blockedBy": ["T-1"]},
    ]
    assert len(json.loads(FORMAT.write(circle, {}).text)["tasks"]) == 2
    chain = [{"id": f"{n}", "title": "x", "blockedBy": [f"{n + 1}"]} for n in range(5000)]
    tasks = json.loads(FORMAT.write(chain, {}).text)["tasks"]
    assert tasks[0]["parallel_group"] == 4999


# ------------------------------------------------------------------ anything

_VALUES = st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=5)
_TASKS = st.lists(
    st.fixed_dictionaries(
        {"title": st.sampled_from(["a", "b", "c: d", "é", "#x"])},
        optional={
            "completed": st.booleans() | st.none(),
            "parallel_group": st.integers(0, 3) | st.none(),
            "description": _VALUES,
            "x": _VALUES | st.lists(_VALUES, max_size=2),
        },
    ),
    max_size=4,
)


@given(_TASKS, st.booleans())
def test_any_list_comes_back(tasks: list[Record], as_yaml: bool) -> None:
    """ "Round trips lose nothing", also fields that we do not know."""
    text = f"{json.dumps({'tasks': tasks}, indent=2, ensure_ascii=False)}\n"
    if as_yaml:
        import yaml

        text = yaml.safe_dump({"tasks": tasks}, sort_keys=False, allow_unicode=True)
    assert_comes_back(FORMAT, text)


@given(st.text() | st.text(alphabet="tasks:- title{}[]&*!|>#'\"\n\t ,?%@`<"))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert_read_or_refused(FORMAT, text)


@given(st.text(alphabet="&*!|>#'\"\n\t {}[],:?%-a<=~0.", max_size=30))
def test_any_yaml_behind_a_task_is_read_or_refused(text: str) -> None:
    try:
        whole = f"tasks:\n  - title: a\n    x: {text}"
        reading = FORMAT.read(whole, "x")
        for item in reading.items:
            FORMAT.marked(whole, [item.key], True)
        FORMAT.write(imported(reading, "ralphy"), reading.root)
    except ValueError:
        pass


@pytest.mark.parametrize(
    "piece", dealt(["- title: a\n", "[", "- ", "? ", "a: ", "{", "&a ", "#", " ", "'", "!"], 4)
)
def test_a_large_text_of_anything_takes_linear_time(piece: str) -> None:
    """No assertion about time: a quadratic one would not end."""
    text = "tasks:\n" + piece * ((1 << 17) // len(piece))
    FORMAT.fits("x", text * 8)
    try:
        FORMAT.read(text, "x")
    except ValueError:
        pass
