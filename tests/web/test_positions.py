"""A client that comes back where it broke off, to this server or the next one, is told everything
and nothing twice: facts and lines, across turns, torn lines, resumed runs and shortened streams."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.agents.turn_files import SavedStream
from ralph.journal.journal import FileJournal, read_journal
from ralph.journal.runs import Run
from ralph.kernel.facts import Asked, Began, Decided, Ended, Launching, Resumed, Settled, Started
from ralph.kernel.tasks.task import Assignment
from ralph.kernel.turn import Role, Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Boundary, Continue, Reason, Stop
from ralph.kernel.world import Request
from ralph.web.chunks import chunk_after
from ralph.web.positions import Cursor, cursor_at, position_of
from ralph.web.spool import Spool
from ralph.web.tail import Tail

STEPS = st.lists(
    st.sampled_from(["say", "say", "say", "call", "tear", "turn", "ask", "crash", "stop", "look"]),
    min_size=1,
    max_size=60,
)
CUTS = st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=12)


class Stage:
    """A run that is written as an engine writes it."""

    def __init__(self, project: Path, most: int) -> None:
        self.run = Run("20260101-000000-0000", str(project))
        Path(self.run.directory, "signals").mkdir(parents=True)
        self.journal = FileJournal(self.run.journal)
        self.most, self.turn, self.time, self.said = most, 0, 1_767_225_600.0, 0
        self.stream: SavedStream | None = None
        self.record(Started(0.0, self.run.id, "harness", "/shop", 1, "0", agent="claude"))

    def record(self, fact: Any) -> None:  # noqa: ANN401
        self.time += 40_000.0  # half a day: some facts begin one
        self.journal.record(replace(fact, time=self.time))

    def step(self, name: str) -> None:
        if name in ("say", "call", "tear") and self.stream is None:
            self.begin()
        stream = self.stream
        self.said += 1
        if name == "say":
            content: Any = {"type": "text", "text": f"I say {self.said}\nand more."}
            self.print(content, "\n")
        elif name == "call":
            inputs = {"command": f"make {self.said}"}
            content = {"type": "tool_use", "id": f"t{self.said}", "name": "Bash", "input": inputs}
            self.print(content, "\n")
        elif name == "tear" and stream is not None:
            stream.write(b'{"type": "assistant", "mess')
            self.end()
        elif name == "turn" and stream is not None:
            self.end()
        elif name == "ask" and stream is None:
            self.record(Asked(0.0, Request(f"r{self.said}", "note", text="Be quick")))
        elif name == "crash":
            self.crash()
        elif name == "stop" and stream is None:
            self.record(Settled(0.0, Stop(Reason.INTERRUPTED, "asked to")))

    def print(self, content: object, end: str) -> None:
        line = {"type": "assistant", "message": {"role": "assistant", "content": [content]}}
        assert self.stream is not None
        self.stream.write(f"{json.dumps(line)}{end}".encode())

    def begin(self) -> None:
        self.turn += 1
        path = Path(self.run.directory, f"{self.turn:03d}.stream")
        self.record(Began(0.0, self.turn, Assignment("prompt", "Do it")))
        self.record(Launching(0.0, Role.WORK, "claude", str(path)))
        self.stream = SavedStream(lambda: path.open("wb+", buffering=0), self.most)

    def end(self) -> None:
        assert self.stream is not None
        self.stream.end()
        self.stream.close()
        self.stream = None
        self.record(Ended(0.0, Turn()))
        self.record(Decided(0.0, Boundary.CLOSING, Continue()))
        self.record(Settled(0.0, Continue()))

    def close(self) -> None:
        self.journal.close()
        if self.stream is not None:
            self.stream.close()

    def crash(self) -> None:
        """Killed while it wrote; then somebody lets it go on."""
        if self.stream is not None:
            self.stream.close()
            self.stream = None
        self.journal.close()
        with open(self.run.journal, "ab") as file:
            file.write(b'{"type":"ended","tim')
        _, last = read_journal(self.run.journal, trim=True)
        self.journal = FileJournal(self.run.journal, last)
        self.record(Resumed(0.0, 2))


class Client:
    """Keeps what it was told, and where it was broken off."""

    def __init__(self) -> None:
        self.position = "0.0"
        self.facts: list[Any] = []
        self.lines: list[str] = []
        self.numbers: list[int] = []

    def take(self, tail: Tail, events: int) -> bool:
        """Read so many events from where it was, then break off; False where there are none."""
        cursor = cursor_at(self.position, tail.spool, tail.told)
        assert cursor is not None
        data, _ = chunk_after(cursor, tail)
        whole = data.decode().split("\n\n")[:-1]
        for event in whole[:events]:
            fields = dict(line.split(": ", 1) for line in event.split("\n"))
            told = json.loads(fields["data"])
            self.position = fields["id"]
            if fields["event"] == "fact":
                self.facts.append(told["fact"])
            else:
                self.lines += [line["text"] for line in told["lines"]]
                self.numbers += [line["n"] for line in told["lines"]]
        return bool(whole)


class Servers:
    """Tails of one run after the other, as servers that are started anew have them."""

    def __init__(self, stage: Stage) -> None:
        self._run, self._most = stage.run, stage.most
        self._all: list[Tail] = []

    def another(self) -> Tail:
        self._all.append(Tail(self._run, lambda: None, self._most))
        return self._all[-1]

    def __enter__(self) -> Callable[[], Tail]:
        return self.another

    def __exit__(self, *_: object) -> None:
        for tail in self._all:
            tail.close()


@pytest.fixture
def spool() -> Iterator[Spool]:
    made = Spool()
    yield made
    made.close()


@given(STEPS, CUTS)
def test_whoever_comes_back_misses_nothing_and_hears_nothing_twice(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], cuts: list[tuple[int, bool]]
) -> None:
    stage = Stage(tmp_path_factory.mktemp("run"), 1 << 20)
    with Servers(stage) as another:
        followed(stage, another, steps, cuts)


def followed(
    stage: Stage, another: Callable[[], Tail], steps: list[str], cuts: list[tuple[int, bool]]
) -> None:
    tail, client, left = another(), Client(), iter(cuts)
    for name in steps:
        stage.step(name)
        if name != "look":
            continue
        tail.look()
        events, restarts = next(left, (1, False))
        client.take(tail, events)
        if restarts:  # another server answers from here on
            tail = another()
    stage.close()
    for server in (tail, another()):
        server.look()
        assert not server.problem
    while client.take(tail, 3):
        pass
    whole = Client()
    while whole.take(server, 1000):
        pass
    facts = [json.loads(line) for line in Path(stage.run.journal).read_text().splitlines()]
    assert client.facts == [{n: v for n, v in fact.items() if n != "hash"} for fact in facts]
    assert client.facts == whole.facts
    assert client.lines == whole.lines
    assert client.numbers == [*range(server.spool.total)]


@pytest.mark.parametrize("events", [1, 100])
def test_more_than_fits_into_one_piece_comes_before_what_followed_it(
    tmp_path: Path, events: int
) -> None:
    """Also where all of it comes from one line of the stream."""
    stage, client = Stage(tmp_path, 1 << 20), Client()
    stage.step("say")
    stage.print({"type": "text", "text": "\n".join(f"{n}" for n in range(1_300))}, "\n")
    stage.step("turn")
    stage.close()
    with Servers(stage) as another:
        tail = another()
        tail.look()
        while client.take(tail, events):
            pass
        assert client.numbers == [*range(tail.spool.total)]
    assert [line for line in client.lines if line.isdecimal()] == [f"{n}" for n in range(1_300)]
    kinds = [fact["type"] for fact in client.facts]
    assert kinds == ["started", "began", "launching", "ended", "decided", "settled"]


def test_after_a_shortened_stream_all_that_is_left_is_told(tmp_path: Path) -> None:
    """What nobody has any more is told to nobody; what came after it to all."""
    stage, client = Stage(tmp_path, 8_000), Client()
    with Servers(stage) as another:
        tail = another()
        for number in range(300):
            stage.step("say")
            if number % 7 == 0:
                tail.look()
                client.take(tail, 5)
        stage.step("turn")
        stage.close()
        tail.look()
        tail.look()
        while client.take(tail, 5):
            pass
        assert client.numbers == [*range(tail.spool.total)]
        said = [line for line in client.lines if line.startswith("I say")]
        assert len(said) == len(set(said))
        assert said[-1] == "I say 300"
        # To another server the middle is unknown: it goes on behind what was told.
        late = another()
        late.look()
        for position in ("0.0", client.position):
            again = Client()
            again.position = position
            while again.take(late, 100):
                pass
            more = [line for line in again.lines if line.startswith("I say")]
            assert more == [line for line in said if line in more]
            assert (more[-1:] == said[-1:]) is (position == "0.0")


@pytest.mark.parametrize(
    "position",
    ["", "0", "x.y", "1.2.3.4", "-1.0", "1e3.0", "٣.0", "9" * 20 + ".0", "0.0.x", "0.0\n"],
)
def test_what_is_no_position_leads_nowhere(position: str, spool: Spool) -> None:
    assert cursor_at(position, spool, 100) is None


def test_positions_of_another_journal_lead_to_the_end(spool: Spool) -> None:
    assert cursor_at("500.7", spool, 100) == Cursor(100, 0)
    assert cursor_at("100.0.50", spool, 100) == Cursor(100, 0)
    assert position_of(Cursor(100, 0), spool) == "100.0"


def test_a_journal_that_was_changed_ends_the_log_and_says_so(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 1 << 20)
    stage.step("say")
    stage.step("turn")
    text = Path(stage.run.journal).read_text()
    Path(stage.run.journal).write_text(text.replace('"iteration":1', '"iteration":2'))
    stage.close()
    client = Client()
    with Servers(stage) as another:
        tail = another()
        tail.look()
        assert "was changed after it was written" in tail.problem
        while client.take(tail, 1):
            pass
    assert client.lines[-1] == tail.problem
    assert [fact["type"] for fact in client.facts] == ["started"]
