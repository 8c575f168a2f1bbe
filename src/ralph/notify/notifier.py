"""Notifies a person that a task needs them: by a command, or by apprise URLs (B §On Limit Reached,
"Notify human (if configured)")."""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from ralph.errors import ConfigError
from ralph.kernel.verdict import Cut
from ralph.processes.child import Starter, start
from ralph.processes.user_command import UserCommands
from ralph.text.plain import plain

_LONGEST = 4000  # characters of a variable
_VARIABLES = {"RALPH_TASK_ID": "taskId", "RALPH_EVENT": "event", "RALPH_REASON": "reason"}


class Notify:
    """Sends events as the settings say. A failure is told once and ends nothing."""

    def __init__(
        self,
        command: str | None,
        urls: Sequence[str],
        workspace: str,
        environ: Mapping[str, str],
        tell: Callable[[str], None],
        *,
        start: Starter = start,
        hurry: Callable[[], Cut | None] = lambda: None,
    ) -> None:
        self._command = command
        self._urls = tuple(urls)
        self._commands = UserCommands(workspace, environ, start, hurry=hurry)
        self._tell = tell
        self._told: set[str] = set()

    def send(self, event: Mapping[str, Any]) -> None:
        """Send an event, which has `event`, `taskId` and `reason`, and may have more."""
        problems = {}
        if self._command is not None:
            also = {name: _word(event, key) for name, key in _VARIABLES.items()}
            trouble = self._commands.run(self._command, event, also)
            problems["notify.command"] = trouble.words if trouble else ""
        if self._urls:
            problems["notify.urls"] = _by_urls(self._urls, event)
        for setting, problem in problems.items():
            if problem and setting not in self._told:
                self._told.add(setting)
                self._tell(f"{setting} failed: {problem}. The run goes on.")


def notify_problem(urls: Sequence[str]) -> ConfigError | None:
    """The error for a run that could notify nobody by these URLs; None if it can."""
    if not urls or find_spec("apprise") is not None:
        return None
    return ConfigError(
        "notify.urls needs the extra `notify`, which is not installed",
        "Type: pip install 'ralph-engine[notify]', or use notify.command",
    )


def _word(event: Mapping[str, Any], key: str) -> str:
    """Safe for an environment: short, and without a NUL."""
    word = event.get(key)
    return "" if word is None else plain(str(word), _LONGEST)


def _by_urls(urls: Sequence[str], event: Mapping[str, Any]) -> str:
    """Notify by URLs. Returns why that failed, or "", without the URLs: they hold passwords."""
    task, what, reason = (_word(event, key) for key in ("taskId", "event", "reason"))
    try:
        import apprise

        everybody = apprise.Apprise()
        odd = [number for number, url in enumerate(urls) if not everybody.add(url)]
        if odd:
            return f"apprise does not understand notify.urls[{odd[0]}]"
        sent = everybody.notify(title=f"ralph: {task} {what}", body=reason or what)
    except Exception as error:  # noqa: BLE001  a service that is down must not end a run
        why = str(error)
        for url in urls:
            why = why.replace(url, "[redacted]")
        return plain(f"{type(error).__name__}: {why}")
    return "" if sent else "apprise could not send it"
