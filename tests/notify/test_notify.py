"""B §On Limit Reached: "Notify human (if configured)"."""

import json
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from kits.adapters import has_ended
from ralph.kernel.verdict import Cut
from ralph.notify.message import About
from ralph.notify.notifier import Channels, Notify, notify_problem
from ralph.processes import user_command
from ralph.processes.child import Child, Command, Reader, start

WHY = "task limit:\n10 iterations used up\0"
EVENT = About("/shop", "run-1", "tasks run").of_task("blocked", "T-1", {"id": "T-1"}, WHY)
URL = "json://user:hunter22@127.0.0.1"
SAVE = 'cat > said.json; printf \'%s|\' "$RALPH_TASK_ID" "$RALPH_EVENT" "$RALPH_REASON" > env'

APPRISE = """
import json, threading
GATE = threading.Event()
class Apprise:
    def __init__(self):
        self.urls = []
    def add(self, url):
        self.urls.append(url)
        return not url.startswith("nonsense")
    def notify(self, title, body):
        if any(url.startswith("boom") for url in self.urls):
            raise RuntimeError("cannot reach " + self.urls[0])
        if any(url.startswith("slow") for url in self.urls):
            GATE.wait()
        with open("sent", "a") as file:
            json.dump([self.urls, title, body], file)
        return not any(url.startswith("down") for url in self.urls)
"""


class Person:
    """Who is notified in a workspace, and what they were told of failures."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.told: list[str] = []

    def by(self, command: str | None = None, urls: Sequence[str] = ()) -> Notify:
        channels = Channels(command, tuple(urls))
        return Notify(channels, str(self.workspace), os.environ, self.told.append)


@pytest.fixture
def person(workspace: Path) -> Person:
    return Person(workspace)


@pytest.fixture
def apprise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of that name which only writes down what it is asked."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "apprise.py").write_text(APPRISE)
    monkeypatch.syspath_prepend(tmp_path / "lib")
    monkeypatch.setitem(sys.modules, "apprise", None)
    monkeypatch.delitem(sys.modules, "apprise")


def test_the_command_gets_the_event_and_three_variables(person: Person) -> None:
    person.by(SAVE).send(EVENT)
    assert json.loads((person.workspace / "said.json").read_text()) == EVENT
    assert (person.workspace / "env").read_text() == (
        "T-1|blocked|task limit: 10 iterations used up|"
    )
    assert person.told == []


def test_nobody_configured_nobody_told(person: Person) -> None:
    person.by().send(EVENT)
    assert person.told == []


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo fine; echo 'no\x1b[31m route' >&2; exit 3", "exit code 3: no route"),
        ("exit 4", "exit code 4"),
        ("kill -9 $$", "exit code 137"),
    ],
)
def test_a_failing_command_is_told_once_and_ends_nothing(
    person: Person, command: str, why: str
) -> None:
    notify = person.by(command)
    notify.send(EVENT)
    notify.send({})
    assert person.told == [f"notify.command failed: {why}. The run goes on."]


def test_a_command_that_hangs_is_ended_with_what_it_started(person: Person) -> None:
    """30 seconds at most; here less."""
    slow = user_command.UserCommands(str(person.workspace), os.environ, patience=0.3)
    trouble = slow.run("sleep 99 & echo $! > pid; trap '' INT TERM; sleep 99", EVENT)
    assert trouble == user_command.Trouble("it took longer than 0.3s", late=True)
    assert has_ended(int((person.workspace / "pid").read_text()))


class Keeping:
    """A starter that can start a person's command beside an agent."""

    def __init__(self) -> None:
        self.started: list[str] = []

    def __call__(
        self, command: Command, on_output: Reader = None, on_error: Reader = None
    ) -> Child:
        self.started.append("agent")
        return start(command, on_output, on_error)

    def beside(self, command: Command, on_output: Reader = None, on_error: Reader = None) -> Child:
        self.started.append("person")
        return start(command, on_output, on_error)


def test_the_command_is_a_persons_and_not_the_runs(workspace: Path) -> None:
    """ADR 10: it may do what an agent may not; and the keeper has one child at a time."""
    keeping, told = Keeping(), list[str]()
    channels = Channels("exit 0")
    notify = Notify(channels, str(workspace), os.environ, told.append, start=keeping)
    notify.send(EVENT)
    assert (keeping.started, told) == (["person"], [])


def test_whoever_asks_twice_to_stop_does_not_wait_for_a_command(person: Person) -> None:
    """ADR 7: the second signal ends everything at once."""
    hurried = Notify(
        Channels("sleep 99"),
        str(person.workspace),
        os.environ,
        person.told.append,
        hurry=lambda: Cut("asked to stop at once", grace=0.1),
    )
    hurried.send(EVENT)
    assert person.told == ["notify.command failed: asked to stop at once. The run goes on."]


@pytest.mark.parametrize(
    ("workspace", "command", "why"),
    [("/no/such/place", "true", "No such file"), (".", "a\0b", "null byte")],
)
def test_a_command_that_cannot_be_run(workspace: str, command: str, why: str) -> None:
    trouble = user_command.UserCommands(workspace, os.environ).run(command, EVENT)
    assert trouble is not None
    assert trouble.words.startswith("it could not be run: ")
    assert why in trouble.words


def test_a_flood_of_output_is_not_kept(person: Person) -> None:
    person.by("head -c 5000000 /dev/zero | tr '\\0' x; exit 1").send(EVENT)
    (told,) = person.told
    assert len(told) < 400


@pytest.mark.usefixtures("apprise")
def test_urls_are_told_by_apprise(person: Person) -> None:
    assert notify_problem([URL]) is None
    person.by(urls=[URL]).send(EVENT)
    assert json.loads((person.workspace / "sent").read_text()) == [
        [URL],
        "ralph: T-1 blocked",
        "task limit: 10 iterations used up",
    ]
    assert person.told == []


@pytest.mark.usefixtures("apprise")
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("nonsense://hunter22", "apprise does not understand it"),
        ("down://hunter22", "apprise could not send it"),
        ("boom://hunter22", "RuntimeError: cannot reach [redacted]"),
    ],
)
def test_failing_urls_are_told_once_and_never_printed(person: Person, url: str, why: str) -> None:
    notify = person.by(urls=[url])
    notify.send(EVENT)
    notify.send(EVENT)
    kind = url.partition(":")[0]
    assert person.told == [f"notify.urls[0] ({kind}) failed: {why}. The run goes on."]


def let_go() -> None:
    """Have what hangs go on, to its end."""
    sys.modules["apprise"].GATE.set()
    for thread in threading.enumerate():
        if thread.name.startswith("notify-"):
            thread.join()


@pytest.mark.usefixtures("apprise")
def test_urls_that_hang_are_given_up(person: Person) -> None:
    """Nobody else waits for them, and nor does the run: all have 30 seconds; here less."""
    channels = Channels("exit 3", ("slow://a", "json://b"))
    where, told = str(person.workspace), person.told
    Notify(channels, where, os.environ, told.append, patience=0.3).send(EVENT)
    let_go()
    assert person.told == [
        "notify.command failed: exit code 3. The run goes on.",
        "notify.urls[0] (slow) failed: it took longer than 0.3s. The run goes on.",
    ]
    hurried = Cut("asked to stop at once")
    notify = Notify(channels, where, os.environ, told.append, hurry=lambda: hurried)
    sys.modules["apprise"].GATE.clear()
    assert notify.deliver(EVENT)["notify.urls[0] (slow)"] == "asked to stop at once"
    let_go()


def test_urls_without_the_extra_are_named_at_the_start(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [p for p in sys.path if "site-packages" not in p])
    assert notify_problem([]) is None
    problem = notify_problem([URL])
    assert problem is not None
    assert "notify.urls needs the extra `notify`" in problem.message
    assert "pip install 'ralph-engine[notify]'" in problem.remedy
    person.by(urls=[URL]).send(EVENT)
    assert len(person.told) == 1
    assert "apprise" in person.told[0]
