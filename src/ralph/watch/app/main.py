"""The application: the screen of a run, the screen of all, and the way between them."""

import os
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from ralph.journal.runs import Run, look_again
from ralph.ui.status.listing import Entry
from ralph.ui.style import Style
from ralph.watch.app.run import RunScreen
from ralph.watch.app.runs import RunsScreen
from ralph.watch.model import Left, View


class WatchApp(App[View | None]):
    """Shows a run, or all of this machine. Colours are the terminal's own sixteen."""

    CSS = "Screen { background: ansi_default; color: ansi_default; overflow: hidden; }"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,ctrl+q", "interrupt", priority=True, show=False),
        Binding("ctrl+z", "suspend_process", priority=True, show=False),
    ]

    def __init__(self, root: str, run: Run | None, style: Style) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self._root, self._run, self._look = root, run, style
        self.interrupted = False

    def on_mount(self) -> None:
        if self._run is None:
            self._list()
        else:
            self._watch(self._run)

    def _list(self) -> None:
        self._show(RunsScreen(self._root, self._look, self._choose))

    def _choose(self, entry: Entry) -> None:
        project = os.path.dirname(os.path.dirname(entry.directory))
        self._watch(look_again(Run(entry.run, project)))

    def _watch(self, run: Run) -> None:
        self._show(RunScreen(run, self._look, self._list))

    def _show(self, screen: RunScreen | RunsScreen) -> None:
        if isinstance(self.screen, RunScreen | RunsScreen):
            self.switch_screen(screen)
        else:
            self.push_screen(screen)

    def action_interrupt(self) -> None:
        self.interrupted = True
        screen = self.screen
        self.exit(screen.last if isinstance(screen, RunScreen) else None)


def watch(root: str, run: Run | None, style: Style) -> Left:
    """Watch a run, or choose one, until somebody leaves."""
    app = WatchApp(root, run, style)
    view = app.run()
    return Left(view, app.interrupted)
