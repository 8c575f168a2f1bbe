"""Where workers with a proven task wait to merge it: one after the other, or several in a train.

The first that waits is the conductor. It tells the others of its train what to do, and each does
that in its own thread: its journal is its own.
"""

import threading
from queue import SimpleQueue
from typing import Generic, TypeVar

Load = TypeVar("Load")
Order = TypeVar("Order")


class Car(Generic[Load, Order]):
    """A worker at the station, with what it has to merge."""

    def __init__(self, worker: str, load: Load, *, alone: bool = False) -> None:
        self.worker, self.load, self.alone = worker, load, alone
        self.taken = False  # by a conductor
        self._orders = SimpleQueue[Order | None]()
        self._answers = SimpleQueue[str]()

    def ask(self, order: Order) -> str:
        """Have it do something; its answer, "" from one that could not or is gone."""
        self._orders.put(order)
        return self._answers.get()

    def dismiss(self, order: Order | None = None) -> None:
        """Tell it the last thing: None, to board again. Later ones are not heard."""
        self._orders.put(order)

    def hear(self) -> Order | None:
        """The next order."""
        return self._orders.get()

    def answer(self, said: str) -> None:
        self._answers.put(said)


class Station(Generic[Load, Order]):
    """Trains of at most so many cars, one after the other."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._changed = threading.Condition()
        self._waiting: list[Car[Load, Order]] = []
        self._train: list[Car[Load, Order]] = []  # the first is the conductor

    def board(self, car: Car[Load, Order]) -> tuple[Car[Load, Order], ...]:
        """Wait until no train is under way. The first that waits gets a train, of itself and those
        that wait as well; they get (). A conductor may board once more, alone."""
        with self._changed:
            if self._train and self._train[0].worker == car.worker:
                self._end(besides=car)
                return (car,)
            self._waiting.append(car)
            self._changed.wait_for(lambda: car.taken or self._is_next(car))
            if car.taken:
                return ()
            rest = self._waiting[1:] if not car.alone else []
            self._train = [car, *[each for each in rest if not each.alone][: self.most - 1]]
            for each in self._train:
                each.taken = True
                self._waiting.remove(each)
            self._changed.notify_all()
            return tuple(self._train)

    def leave(self, worker: str) -> None:
        """A worker is here no more: it has merged, was sent back, or has failed. A conductor's
        train has ended with it; a conductor does not wait for one that is gone."""
        with self._changed:
            self._waiting = [each for each in self._waiting if each.worker != worker]
            if self._train and self._train[0].worker == worker:
                self._end()
            for car in self._train:
                if car.worker == worker:
                    car.answer("")
            self._changed.notify_all()

    def _is_next(self, car: Car[Load, Order]) -> bool:
        return not self._train and self._waiting[0] is car

    def _end(self, besides: Car[Load, Order] | None = None) -> None:
        for car in self._train[1:]:
            car.dismiss()
        self._train = [besides] if besides else []
