"""A watched screen: the real application without a terminal, over real runs."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot

from ralph.files.state_dir import state_root
from ralph.journal.runs import Run, all_runs
from ralph.ui.style import Style
from ralph.watch.app.main import WatchApp
from ralph.watch.model import View

UNTIL_TOLD = "until [ -e go ]; do sleep 0.02; done"
PATIENT = {
    "text": ["I look at it.", "I am done."],
    "tools": [{"name": "Bash", "input": {"command": "make test"}, "run": UNTIL_TOLD}],
    "response": "DONE",
}
Scene = Callable[["Watched"], Awaitable[None]]


class Watched:
    """What a person sees and does."""

    def __init__(self, app: WatchApp, pilot: Pilot[View | None]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def rows(self) -> list[str]:
        """The rows of the screen."""
        return [strip.text for strip in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        return "\n".join(row.rstrip() for row in self.rows)

    def is_beside(self, wanted: bool) -> bool:
        """True if the log stands beside the rest, or does not, as wanted."""
        return ("─ Log" in self.rows[0]) is wanted

    async def sees(self, *words: str) -> str:
        """Wait until all these stand on the screen; the screen."""
        return await self.until(lambda: all(word in self.text for word in words), *words)

    async def misses(self, words: str) -> str:
        return await self.until(lambda: words not in self.text, "not", words)

    async def until(self, happened: Callable[[], object], *what: str) -> str:
        deadline = time.monotonic() + 30
        while not happened():
            assert time.monotonic() < deadline, f"{what} never came:\n{self.text}"
            await self.pilot.pause(0.02)
        return self.text

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def types(self, words: str) -> None:
        """Type words into a field, and Enter."""
        await self.press(*("space" if c == " " else c for c in words), "enter")

    async def resize(self, width: int, height: int) -> None:
        await self.pilot.resize_terminal(width, height)
        await self.pilot.pause(0.05)


def watch(scene: Scene, run: Run | None = None, size: tuple[int, int] = (80, 24)) -> WatchApp:
    """Play a scene; the application, which somebody may have left."""

    async def play() -> WatchApp:
        app = WatchApp(state_root(os.environ), run, Style(emoji=True, color=True))
        async with app.run_test(size=size) as pilot:
            await scene(Watched(app, pilot))
        return app

    return asyncio.run(play())


def the_run() -> Run:
    """The only run, or the newest."""
    return all_runs(state_root(os.environ))[0]


def left_on_disk(run: Run) -> dict[str, bytes]:
    """The journal of a run, and all that was asked of it."""
    places = [Path(run.journal), *sorted(Path(run.directory, "signals").iterdir())]
    return {str(place): place.read_bytes() for place in places}
