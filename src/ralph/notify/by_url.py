"""Sends a message by one URL of apprise, in a thread of its own."""

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ralph.notify.message import variables
from ralph.text.plain import plain


class Post(threading.Thread):
    """A message on its way by one URL. Apprise waits as long as it likes; we do not."""

    def __init__(self, number: int, url: str, message: Mapping[str, Any]) -> None:
        super().__init__(name=f"notify-{number}", daemon=True)
        scheme = url.partition("://")[0]
        kind = f" ({scheme})" if scheme != url and scheme.isalnum() else ""
        self.channel = f"notify.urls[{number}]{kind}"  # the rest of a URL holds passwords
        self.problem = ""
        self._url, self._words = url, variables(message)

    def run(self) -> None:
        said: list[str] = []
        try:
            import apprise

            service = apprise.Apprise()
            with _hearing(said):
                if not service.add(self._url):
                    self.problem = "apprise does not understand it"
                    return
                title, body = self._words["RALPH_TITLE"], self._words["RALPH_TEXT"]
                sent = service.notify(title=title, body=body)
        except Exception as error:  # noqa: BLE001  a service that is down must not end a run
            self.problem = self._without_url(f"{type(error).__name__}: {error}")
            return
        why = f": {self._without_url(said[-1])}" if said else ""
        self.problem = "" if sent else f"apprise could not send it{why}"

    def _without_url(self, why: str) -> str:
        return plain(why.replace(self._url, "[redacted]"))


class _Listener(logging.Handler):
    """Keeps what apprise complains about in this thread, which would go to stderr otherwise."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._said, self._thread = said, threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self._said.append(record.getMessage())


@contextmanager
def _hearing(said: list[str]) -> Iterator[None]:
    logger, listener = logging.getLogger("apprise"), _Listener(said)
    logger.addHandler(listener)
    try:
        yield
    finally:
        logger.removeHandler(listener)
