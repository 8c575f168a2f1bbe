"""`tasks.json` lies where an agent can write: whatever stands in its place is told or replaced."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ralph.kernel.tasks.task import Backlog, ReviewStatus, Status, Task
from ralph.loops.stories.file import StoryFile, as_text, tasks_of
from ralph.loops.stories.folder import Folder
from ralph.review.law import NotAListError

STORY = {
    "id": "US-001",
    "title": "Log in",
    "passes": False,
    "priority": 1,
    "acceptanceCriteria": ["it works"],
    "reviewStatus": None,
    "reviewCount": 0,
    "reviewFeedback": "",
}
LIST = {"project": "p", "branchName": "b", "description": "d", "userStories": [STORY]}
# Root may read everywhere, unless it gives up just that.
GIVE_UP = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
AS_ORDINARY_USER = (
    (*GIVE_UP, "--inh-caps=-dac_override,-dac_read_search") if not os.geteuid() else ()
)


def works(*words: str) -> bool:
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


needs_ordinary_user = pytest.mark.skipif(
    not works(*AS_ORDINARY_USER, "true"),
    reason="root may read everywhere, and setpriv is not there to change that",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "ralph"
    made.mkdir()
    (made / "prompt.md").write_text("Do $RALPH_STORY.\n")
    (made / "tasks.json").write_bytes(as_text(LIST))
    return made


def backlog(folder: Path) -> Backlog:
    return Folder(str(folder.parent), str(folder), home=str(folder)).backlog()


# ------------------------------------------------------------ reading


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    """To a list that is perfectly all right: it would be judged, and another kept."""
    (path.parent / "real.json").write_bytes(as_text(LIST))
    path.symlink_to("real.json")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate((64 << 20) + 1)


PLACES: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda _: None, "it cannot be read: No such file or directory"),
    "link": (link, "it cannot be read: it is a symbolic link"),
    "dangling": (lambda path: path.symlink_to("nowhere"), "it is a symbolic link"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "it is a symbolic link"),
    "pipe": (pipe, "it cannot be read: not a regular file"),
    "directory": (lambda path: path.mkdir(), "it cannot be read: Is a directory"),
    "huge": (huge, "it cannot be read: it is larger than 64 MB"),
    "empty": (lambda path: path.touch(), "it is not valid JSON"),
    "half": (lambda path: path.write_bytes(as_text(LIST)[:99]), "it is not valid JSON"),
    "latin": (lambda path: path.write_bytes(b'{"project": "\xe4"}'), "it is not UTF-8 text (byte"),
    "utf-16": (lambda path: path.write_bytes("{}".encode("utf-16")), "it is not UTF-8 text"),
}


@pytest.mark.parametrize("kind", list(PLACES))
def test_what_is_no_list_is_told_and_nobody_waits(folder: Path, kind: str) -> None:
    """ "`tasks.json` not UTF-8 / not JSON / replaced by a symlink"."""
    make, words = PLACES[kind]
    (folder / "tasks.json").unlink()
    make(folder / "tasks.json")
    with pytest.raises(NotAListError) as caught:
        StoryFile(str(folder / "tasks.json")).listing()
    assert words in str(caught.value)
    assert backlog(folder).problem == f"ralph/tasks.json: {caught.value}"


@needs_ordinary_user
@pytest.mark.parametrize("locked", ["tasks.json", "."])
def test_a_list_that_may_not_be_read(folder: Path, locked: str) -> None:
    code = (
        "import os, sys; from ralph.loops.stories.folder import Folder; "
        "print(Folder(os.path.dirname(sys.argv[1]), sys.argv[1]).backlog().problem)"
    )
    words = [*AS_ORDINARY_USER, sys.executable, "-c", code, str(folder)]
    (folder / locked).chmod(0)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    (folder / locked).chmod(0o700)
    assert done.stdout == "ralph/tasks.json: it cannot be read: Permission denied\n", done.stderr


def test_a_byte_order_mark_is_no_fault(folder: Path) -> None:
    (folder / "tasks.json").write_bytes(b"\xef\xbb\xbf" + as_text(LIST))
    (folder / "prompt.md").write_bytes(b"\xef\xbb\xbfDo it.")
    assert [task.text for task in backlog(folder).tasks] == ["Do it."]


def test_half_a_character_is_read_as_a_question_mark(folder: Path) -> None:
    """JSON can spell it, and neither a console nor a journal could show it."""
    text = as_text(LIST).replace(b"Log in", rb"Log \ud83d in")
    (folder / "tasks.json").write_bytes(text)
    [task] = backlog(folder).tasks
    assert task.title == "Log ? in"


def test_the_first_problem_of_check_1_is_the_backlogs(folder: Path) -> None:
    broken = {**LIST, "userStories": [{**STORY, "passes": 1}, {}]}
    StoryFile(str(folder / "tasks.json")).write(as_text(broken))
    words = "ralph/tasks.json: Story US-001: 'passes' must be true or false, not 1."
    assert backlog(folder).problem == words


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        (b" \n", "it is empty: write down what an iteration shall do"),
        (b"Do\0it", "it contains a NUL byte: it is not text"),
        (b"\xff", "it is not UTF-8 text (byte 0)"),
        (b"x" * ((64 << 20) + 1), "it is larger than 64 MB"),
    ],
    ids=["missing", "empty", "binary", "latin", "huge"],
)
def test_a_prompt_that_is_none(folder: Path, content: bytes | None, words: str) -> None:
    (folder / "prompt.md").unlink()
    if content is not None:
        (folder / "prompt.md").write_bytes(content)
    assert backlog(folder).problem == f"ralph/prompt.md: {words}"


# ------------------------------------------------------------ the tasks


def test_stories_become_tasks() -> None:
    """R: priority may be any number, and 1 comes first: what counts is the order."""
    stories: list[dict[str, Any]] = [
        {**STORY, "id": "a", "priority": 10**90, "dependsOn": ["b"]},
        {**STORY, "id": "b", "priority": 1.5, "reviewStatus": "needs_review", "dependsOn": None},
        {**STORY, "id": "c", "priority": -1e300, "notes": None},
        {**STORY, "id": "d", "priority": 1.5, "notes": "did it", "passes": True},
    ]
    assert tasks_of({"userStories": stories}, "text") == [
        Task("a", "Log in", "text", priority=3, blocked_by=("b",)),
        Task("b", "Log in", "text", priority=2, review=ReviewStatus.NEEDS_REVIEW),
        Task("c", "Log in", "text", priority=1),
        Task("d", "Log in", "text", Status.DONE, priority=2, notes="did it", passes=True),
    ]
    assert tasks_of({"userStories": []}) == []


def test_stories_are_known_by_their_ids(folder: Path) -> None:
    """Who waits for whom is looked up for each: a long list must stay quick."""
    found = backlog(folder)
    assert dict(found.known) == {"US-001": found.tasks[0]}
    assert found.problem is None


# ------------------------------------------------------------ writing


def full_folder(path: Path) -> None:
    (path / "more").mkdir(parents=True)
    (path / "more" / "file").write_text("text")


TAKEN: dict[str, Callable[[Path], object]] = {
    "nothing": lambda _: None,
    "file": lambda path: path.write_text("old and much longer than what comes" * 99),
    "link": lambda path: path.symlink_to("precious"),
    "dangling": lambda path: path.symlink_to("nowhere"),
    "link to a folder": lambda path: path.symlink_to("."),
    "pipe": pipe,
    "folder": full_folder,
}


@pytest.mark.parametrize("kind", list(TAKEN))
def test_it_is_written_in_place_of_whatever_stands_there(tmp_path: Path, kind: str) -> None:
    (tmp_path / "precious").write_text("precious")
    path = tmp_path / "tasks.json"
    TAKEN[kind](path)
    StoryFile(str(path)).write(as_text(LIST))
    assert stat.S_ISREG(path.lstat().st_mode)
    assert path.stat().st_mode & 0o600 == 0o600
    assert StoryFile(str(path)).listing() == LIST
    assert sorted(os.listdir(tmp_path)) == ["precious", "tasks.json"]
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_folder_that_is_gone_is_made_again(tmp_path: Path) -> None:
    file = StoryFile(str(tmp_path / "deep" / "ralph" / "tasks.json"))
    file.write(as_text(LIST))
    assert file.listing() == LIST


@needs_ordinary_user
def test_a_folder_that_cannot_be_emptied_gives_way(tmp_path: Path) -> None:
    """Or an agent could keep the host from putting the list back."""
    path = tmp_path / "tasks.json"
    full_folder(path)
    (path / "more").chmod(0)
    code = "import sys; from ralph.loops.stories.file import StoryFile, as_text; "
    code += "StoryFile(sys.argv[1]).write(as_text({'project': 'p'}))"
    words = [*AS_ORDINARY_USER, sys.executable, "-c", code, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    for moved in tmp_path.glob("*/more"):
        moved.chmod(0o700)
    assert (done.returncode, done.stderr) == (0, "")
    assert path.read_text() == '{\n  "project": "p"\n}\n'


def test_no_name_of_an_agent_is_in_the_way(tmp_path: Path) -> None:
    """It knows the process that it runs under; what it puts there beforehand is not written to."""
    (tmp_path / "precious").write_text("precious")
    path = tmp_path / "tasks.json"
    for guess in (f"tasks.json.{os.getpid()}.tmp", "tasks.json.tmp"):
        (tmp_path / guess).symlink_to("precious")
    StoryFile(str(path)).write(as_text(LIST))
    assert (tmp_path / "precious").read_text() == "precious"
    assert StoryFile(str(path)).listing() == LIST


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "Ctrl+C"]
)
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_what_fails_half_way_leaves_the_old_list(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    def fail(*given: object) -> None:
        raise error

    monkeypatch.setattr(os, step, fail)
    file = StoryFile(str(folder / "tasks.json"))
    with pytest.raises((OSError, KeyboardInterrupt)):
        file.write(as_text({"project": "new"}))
    assert file.listing() == LIST
    assert sorted(os.listdir(folder)) == ["prompt.md", "tasks.json"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_who_is_killed_half_way_leaves_the_old_list(folder: Path, step: str) -> None:
    code = f"""
import os, signal, sys
from ralph.loops.stories.file import StoryFile
os.{step} = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
StoryFile(sys.argv[1]).write(b"new")
"""
    path = str(folder / "tasks.json")
    done = subprocess.run([sys.executable, "-c", code, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert StoryFile(path).listing() == LIST
    (folder / f"tasks.json.{'0' * 16}.tmp").mkdir()  # an agent's
    (folder / "tasks.json.tmp").touch()
    StoryFile(path).write(as_text({"project": "new"}))
    left = {"prompt.md", "tasks.json", "tasks.json.tmp", f"tasks.json.{'0' * 16}.tmp"}
    assert set(os.listdir(folder)) == left


def test_a_list_as_people_read_it() -> None:
    assert as_text({"a": ["ä"]}) == '{\n  "a": [\n    "ä"\n  ]\n}\n'.encode()
    halves = {"a": "\ud83d", "b": "ä"}
    assert json.loads(as_text(halves)) == halves
