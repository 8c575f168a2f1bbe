"""Notifies people by a command, by apprise URLs, and by a bell (B §On Limit Reached, "Notify human
(if configured)"). Whatever becomes of a notification is words, never an exception."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ralph.errors import ConfigError
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Cut
from ralph.notify.message import ENDED, variables
from ralph.processes.child import Starter, start
from ralph.processes.user_command import PATIENCE, UserCommands
from ralph.processes.which import which
from ralph.text.words import duration

if TYPE_CHECKING:
    from ralph.notify.by_url import Post

_LEAST = 1.0  # seconds that each may take, however long others took
_LOOK = 0.1  # seconds
_STDERR = 2
_DESKTOPS = ("DISPLAY", "WAYLAND_DISPLAY")
_SHOW = 'exec notify-send --app-name=Ralph -- "$RALPH_TITLE" "$RALPH_TEXT"'


@value
class Channels:
    """The ways in which people want to be told."""

    command: str | None = None
    urls: tuple[str, ...] = ()
    bell: bool = False

    def __bool__(self) -> bool:
        return bool(self.command or self.urls or self.bell)


class Notify:
    """Sends messages by every channel, all of them within `patience` seconds. A failure is told
    once and ends nothing."""

    def __init__(
        self,
        channels: Channels,
        workspace: str,
        environ: Mapping[str, str],
        tell: Callable[[str], None],
        *,
        start: Starter = start,
        hurry: Callable[[], Cut | None] = lambda: None,
        patience: float = PATIENCE,
        terminal: int = _STDERR,
    ) -> None:
        self._channels, self._environ, self._tell = channels, environ, tell
        self._commands = UserCommands(workspace, environ, start, patience, hurry)
        self._terminal = terminal
        self._told: set[str] = set()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; say what went wrong, if that was not said before."""
        after = "" if message.get("event") == ENDED else " The run goes on."
        for channel, problem in self.deliver(message).items():
            if problem and channel not in self._told:
                self._told.add(channel)
                self._tell(f"{channel} failed: {problem}.{after}")

    def deliver(self, message: Mapping[str, Any]) -> dict[str, str]:
        """Send a message; by channel, the reason why that failed, or ""."""
        give_up = time.monotonic() + self._commands.patience
        posts = self._posted(message)
        problems = {}
        if self._channels.command is not None:
            problems["notify.command"] = self._run(self._channels.command, message, {}, give_up)
        if self._channels.bell:
            problems["notify.bell"] = self._ring(message, give_up)
        for post in posts:
            problems[post.channel] = self._awaited(post, give_up)
        return problems

    def _posted(self, message: Mapping[str, Any]) -> "list[Post]":
        """Messages that are on their way by URLs."""
        if not self._channels.urls:
            return []
        from ralph.notify.by_url import Post  # most people want none of what that imports

        posts = [Post(number, url, message) for number, url in enumerate(self._channels.urls)]
        for post in posts:
            post.start()
        return posts

    def _run(
        self, command: str, message: Mapping[str, Any], also: Mapping[str, str], give_up: float
    ) -> str:
        left = max(_LEAST, min(give_up - time.monotonic(), self._commands.patience))
        commands = replace(self._commands, patience=left)
        trouble = commands.run(command, message, {**variables(message), **also})
        return trouble.words if trouble else ""

    def _ring(self, message: Mapping[str, Any], give_up: float) -> str:
        """Ring the terminal, and show the message on the desktop, if there is one."""
        rung, problem = _rings(self._terminal), "there is no terminal and no desktop"
        if any(self._environ.get(name) for name in _DESKTOPS):
            problem = "notify-send is not installed"
            if which("notify-send", self._environ.get("PATH")) is not None:
                text = variables(message)["RALPH_TEXT"].replace("&", "&amp;").replace("<", "&lt;")
                problem = self._run(_SHOW, message, {"RALPH_TEXT": text}, give_up)
        return "" if rung else problem

    def _awaited(self, post: "Post", give_up: float) -> str:
        while post.is_alive():
            if (hurry := self._commands.hurry()) is not None:
                return hurry.why
            if time.monotonic() >= give_up:
                return f"it took longer than {duration(self._commands.patience)}"
            post.join(_LOOK)
        return post.problem


def notify_problem(urls: Sequence[str]) -> ConfigError | None:
    """The error for a run that could notify nobody by these URLs; None if it can."""
    if not urls:
        return None
    from importlib.util import find_spec

    if find_spec("apprise") is not None:
        return None
    return ConfigError(
        "notify.urls needs the extra `notify`, which is not installed",
        "Type: pip install 'ralph-engine[notify]', or use notify.command",
    )


def _rings(terminal: int) -> bool:
    try:
        return os.isatty(terminal) and os.write(terminal, b"\a") == 1
    except OSError:
        return False
