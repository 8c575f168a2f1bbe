"""A person at a terminal of their own, which no run has started, whom an agent's script can ask."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from run_support import Done, ralph


@contextmanager
def person(place: Path) -> Iterator[str]:
    """Someone who types `ralph` as often as the shell function `person` asks for it, which is what
    this gives. It waits until that was done, and ends with the same code."""
    place.mkdir()
    gone = threading.Event()
    asked = threading.Thread(target=_answer, args=(place, gone))
    asked.start()
    try:
        yield f"""
person() {{
    asked=$(mktemp -d "{place}/XXXXXX")
    printf '%s\\n' "$@" > "$asked/words" && mv "$asked/words" "$asked/asked"
    until [ -e "$asked/code" ]; do sleep 0.02; done
    return "$(cat "$asked/code")"
}}
"""
    finally:
        gone.set()
        asked.join()


def _answer(place: Path, gone: threading.Event) -> None:
    while not gone.wait(0.02):
        for asked in place.glob("*/asked"):
            done = ralph(*asked.read_text().splitlines())
            asked.unlink()
            _tell(asked.parent, done)


def _tell(place: Path, done: Done) -> None:
    (place / "said").write_text(done.out + done.err)
    (place / "new").write_text(str(done.code))
    (place / "new").rename(place / "code")
