"""Who waits at the station, who rides with whom, and that nobody waits for ever."""

import threading
import time
from collections.abc import Callable

from ralph.loops.backlog.parallel.station import Car, Station

Platform = Station[int, str]


def car(name: str, *, alone: bool = False) -> Car[int, str]:
    return Car(name, 0, alone=alone)


class Workers:
    """Threads that board, and what each got."""

    def __init__(self, station: Platform) -> None:
        self.station, self.threads = station, list[threading.Thread]()
        self.got = dict[str, tuple[str, ...]]()
        self.heard = dict[str, list[str | None]]()

    def come(self, name: str, *, alone: bool = False) -> None:
        """One more boards, and waits behind those that are there."""
        mine = car(name, alone=alone)

        def board() -> None:
            train = self.station.board(mine)
            self.got[name] = tuple(each.worker for each in train)
            if train:
                return
            heard = self.heard.setdefault(name, [])
            while (order := mine.hear()) is not None:
                heard.append(order)
                mine.answer(f"{name} did {order}")

        thread = threading.Thread(target=board, daemon=True)
        self.threads.append(thread)
        thread.start()
        until(lambda: name in self.got or mine in self.station._waiting)

    def end(self) -> None:
        for thread in self.threads:
            thread.join(10)
            assert not thread.is_alive(), self.got


def until(holds: Callable[[], bool]) -> None:
    for _ in range(2000):
        if holds():
            return
        time.sleep(0.005)
    raise AssertionError("it does not come")


def test_the_first_does_not_wait_for_others() -> None:
    station = Platform(8)
    assert [each.worker for each in station.board(car("a"))] == ["a"]
    station.leave("a")
    assert [each.worker for each in station.board(car("b"))] == ["b"]


def test_those_that_wait_ride_together_and_in_their_order() -> None:
    """However often it is tried: each that was taken wakes up."""
    for _ in range(50):
        station = Platform(3)
        first, workers = car("a"), Workers(station)
        station.board(first)
        for name in "bcdef":
            workers.come(name)
        station.leave("a")
        until(lambda: {"b", "c", "d"} <= {*workers.got})  # noqa: B023
        assert [workers.got[name] for name in "bcd"] == [("b", "c", "d"), (), ()]
        assert "e" not in workers.got, "one train after the other"
        station.leave("b")
        until(lambda: {"e", "f"} <= {*workers.got})  # noqa: B023
        station.leave("e")
        workers.end()


def test_who_wants_to_be_alone_is() -> None:
    station = Platform(8)
    workers = Workers(station)
    station.board(car("a"))
    for name in "bcde":
        workers.come(name, alone=name in "ce")
    station.leave("a")
    until(lambda: {"b", "d"} <= {*workers.got})
    for name in "bce":
        until(lambda: name in workers.got)  # noqa: B023
        station.leave(name)
    workers.end()
    assert workers.got == {"b": ("b", "d"), "c": ("c",), "d": (), "e": ("e",)}


def test_a_conductor_may_go_on_alone_and_its_train_is_dismissed() -> None:
    station = Platform(8)
    workers = Workers(station)
    station.board(car("a"))
    workers.come("b")
    workers.come("c")
    station.leave("a")
    until(lambda: "b" in workers.got)
    assert [each.worker for each in station.board(car("b", alone=True))] == ["b"]
    workers.end()
    assert workers.heard == {"c": []}


def test_a_conductor_hears_what_became_of_its_order() -> None:
    station = Platform(8)
    workers = Workers(station)
    station.board(car("a"))
    conductor = threading.Thread(target=lambda: trains.append(station.board(car("b"))))
    trains: list[tuple[Car[int, str], ...]] = []
    conductor.start()
    until(lambda: bool(station._waiting))
    workers.come("c")
    station.leave("a")
    conductor.join(10)
    [[_, other]] = trains
    assert other.ask("this") == "c did this"
    station.leave("c")
    other.dismiss()
    workers.end()
    assert other._answers.get(timeout=1) == ""
