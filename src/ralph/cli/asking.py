"""Questions at a terminal, one after the other."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from ralph.errors import AbortedError, ConfigError

_Answer = TypeVar("_Answer")


@contextmanager
def dialogue(aborted: str) -> Iterator[None]:
    """Around questions: a person may edit the line, and may go away at any of them."""
    with suppress(ImportError):  # where Python was built with it
        import readline  # noqa: F401
    try:
        yield
    except (KeyboardInterrupt, EOFError):
        print()
        raise AbortedError(f"Aborted: {aborted}") from None


def ask(question: str, understand: Callable[[str], _Answer]) -> _Answer:
    """Ask until the answer is understood; each time say in one line why it was not."""
    while True:
        try:
            answer = input(question)
            answer.encode()  # a terminal may send bytes that are no text; no file could hold them
            return understand(answer.strip())
        except UnicodeError:
            print("  That is not readable text.")
        except ValueError as error:
            print(f"  {error}")
        except ConfigError as error:
            print(f"  {error.words}")


def yes(answer: str) -> bool:
    """A blank answer is a no."""
    if answer.lower() not in ("", "y", "yes", "n", "no"):
        raise ValueError("Answer y or n.")
    return answer.lower() in ("y", "yes")
