"""What is done here is told to the list it came from, and a change of mind there is heard."""

import os
from pathlib import Path
from typing import Any

import pytest

from ralph.files.state_dir import write_atomically
from ralph.forge.port import Issues
from ralph.formats.prd import PRD
from ralph.formats.ralphy import FORMAT as RALPHY
from ralph.loops.backlog.tracker.importing import Merge, Origin
from ralph.loops.backlog.tracker.sync import How, Synced, Trackers, evidence_words, told

Json = dict[str, Any]
TEXT = (
    '{\r\n "userStories": [\r\n  {"id": "US-1", "title": "One", "acceptanceCriteria": ["x"], '
    '"passes": false},\r\n  {"id": "US-2", "title": "Two", "passes": true}\r\n ]\r\n}'
)


def no_github() -> Issues:
    raise AssertionError("nobody asked for issues")


def records(text: str = TEXT, path: str = "prd.json") -> list[Json]:
    """The tasks that an import of the list makes."""
    origin = Origin("prd", {"path": path}, path)
    merge = Merge(PRD.read(text, path), origin, "2026-01-31", by_agent=False)
    return list(merge([], frozenset()))


def prd(workspace: Path, text: str = TEXT) -> Path:
    path = workspace / "prd.json"
    path.write_bytes(text.encode())
    return path


def mark(workspace: Path, record: Json, *, done: bool = True, write: bool = True) -> Synced:
    return Trackers(str(workspace), no_github, write=write).mark([record], done=done)[0]


# ------------------------------------------------------------------ files


@pytest.mark.parametrize("begin", ["", "\ufeff"])
def test_only_passes_of_the_one_story_changes(workspace: Path, begin: str) -> None:
    """Mode, ends of lines and every other byte stay; and it goes back."""
    path = prd(workspace, begin + TEXT)
    path.chmod(0o640)
    first, second = records()
    synced = mark(workspace, first)
    assert synced == Synced(How.MARKED, "prd.json: US-1 is done", "prd.json")
    assert path.read_bytes().decode() == begin + TEXT.replace("false", "true")
    assert path.stat().st_mode & 0o777 == 0o640
    assert mark(workspace, first).how is How.ALREADY
    assert mark(workspace, first, done=False).how is How.MARKED
    assert path.read_bytes().decode() == begin + TEXT
    assert mark(workspace, second).how is How.ALREADY


def test_many_are_told_by_one_reading_and_one_writing(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stories = [f'{{"id": "US-{n}", "title": "Do {n}", "passes": false}}' for n in range(50)]
    path = prd(workspace, f'{{"userStories": [{", ".join(stories)}]}}')
    before = path.read_text()
    tasks = records(before)
    path.write_text(before.replace("Do 7", "Do not"))
    written: list[str] = []

    def write(path: str, text: str) -> None:
        written.append(path)
        write_atomically(path, text)

    monkeypatch.setattr("ralph.loops.backlog.tracker.sync.write_atomically", write)
    gone = {**tasks[0], "source": {**tasks[0]["source"], "key": "US-99"}}
    told = Trackers(str(workspace), no_github).mark((*tasks, gone, {"id": "T-1"}), done=True)
    how = [synced.how for synced in told]
    assert how == [
        *(How.CONFLICT if n == 7 else How.MARKED for n in range(50)),
        *(How.CONFLICT, How.NOTHING),
    ]
    assert len(written) == 1
    assert path.read_text().count("true") == 49
    assert '"Do not", "passes": false' in path.read_text()


def test_one_that_cannot_be_marked_keeps_none_of_the_others(workspace: Path) -> None:
    """An alias in YAML is somebody else's too."""
    text = "tasks:\n- title: a\n- &b {title: b, completed: false}\n- title: c\n  <<: *b\n"
    (workspace / "t.yaml").write_text(text)
    origin = Origin("ralphy", {"path": "t.yaml"}, "t.yaml")
    merge = Merge(RALPHY.read(text, "t.yaml"), origin, "2026-01-31", by_agent=False)
    told = Trackers(str(workspace), no_github).mark(merge([], frozenset())[:2], done=True)
    assert [synced.how for synced in told] == [How.MARKED, How.FAILED]
    assert (workspace / "t.yaml").read_text() == text.replace(": a\n", ": a\n  completed: true\n")


def test_to_look_writes_nothing(workspace: Path) -> None:
    path = prd(workspace)
    assert mark(workspace, records()[0], write=False).how is How.MARKED
    assert path.read_bytes().decode() == TEXT


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT.replace("One", "Another"), "US-1 was changed in prd.json .*(title)"),
        (TEXT.replace('["x"]', '["x", "y"]'), "US-1 was changed in prd.json .*(description)"),
        (TEXT.replace("US-1", "US-3"), "US-1 is not in prd.json any more"),
    ],
)
def test_a_change_of_mind_there_is_told_and_nothing_is_written(
    workspace: Path, text: str, words: str
) -> None:
    """ "A two-way conflict is reported, never overwritten"."""
    path = prd(workspace, text)
    synced = mark(workspace, records()[0])
    assert synced.how is How.CONFLICT
    assert all(part in synced.words for part in words.split(" .*"))
    assert path.read_bytes().decode() == text


def test_what_somebody_opened_again_there_is_not_closed_again(workspace: Path) -> None:
    prd(workspace)
    first, second = records()
    first |= told(first, done=True)
    assert mark(workspace, first).how is How.CONFLICT
    prd(workspace, TEXT.replace("true", "false"))
    assert "opened again" in mark(workspace, second).words


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "prd.json: No such file or directory"),
        (b"{", "prd.json: it is not valid JSON"),
        (b"\xff\xfe", "prd.json: 'utf-8' codec"),
    ],
)
def test_what_cannot_be_read_is_told(workspace: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        (workspace / "prd.json").write_bytes(content)
    synced = mark(workspace, records()[0])
    assert (synced.how, synced.words[: len(words)]) == (How.FAILED, words)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_what_cannot_be_written_is_told(workspace: Path) -> None:
    prd(workspace)
    workspace.chmod(0o500)
    assert mark(workspace, records()[0]).how is How.FAILED
    workspace.chmod(0o700)


@pytest.mark.parametrize(
    "record",
    [
        {"id": "a"},
        {"id": "a", "source": None},
        {"id": "a", "source": {"format": "unheard of", "path": "x"}},
        {"id": "a", "source": {"format": "prd", "path": "-", "key": "a"}},
        {"id": "a", "source": {"format": "prd", "key": "a"}},
    ],
)
def test_where_there_is_nobody_to_tell(workspace: Path, record: Json) -> None:
    assert mark(workspace, record).how is How.NOTHING


# ------------------------------------------------------------------ the words


def test_the_evidence_in_words() -> None:
    evidence = {"kind": "test_passing", "command": "make test", "exitCode": 0, "tree": "abc"}
    task = {"id": "T-1", "title": "One", "evidence": evidence}
    assert evidence_words(task) == (
        "Done by ralph: T-1: One\nChecked: `make test` exited with 0\nTree: abc"
    )
    assert evidence_words({"id": "T-1"}) == "Done by ralph: T-1"
