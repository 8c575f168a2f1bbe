"""Opens the page in a browser. Its link logs in: it stands in no list of processes."""

import html
import os
import tempfile
import threading
import webbrowser
from collections.abc import Callable


def open_in_browser(link: str) -> Callable[[], None]:
    """Open a link by a file that leads there and is this user's alone; gives what removes it."""
    descriptor, path = tempfile.mkstemp(prefix="ralph-web-", suffix=".html")  # 0600
    there = html.escape(link)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta charset="utf-8"><title>ralph web</title>'
            f'<meta http-equiv="refresh" content="0; url={there}"><a href="{there}">ralph web</a>'
        )
    # Some browsers are not left before the page is.
    threading.Thread(target=webbrowser.open, args=(f"file://{path}",), daemon=True).start()

    def remove() -> None:
        try:
            os.unlink(path)
        except OSError:
            pass

    return remove
