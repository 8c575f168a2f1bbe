"""A terminal, as far as Ralph uses one: what a person would see after all that was written."""

import io
import re
import unicodedata

_TOKEN = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|(.)", re.DOTALL)


class Screen:
    """Rows of characters and a cursor; a wide character takes two places, the second empty."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: list[list[str]] = [[]]
        self.row = self.column = 0
        self.wraps = True
        self.wrapped = 0  # how often a line had no room

    def feed(self, text: str) -> None:
        """Show this; an escape sequence that nobody should use is an error."""
        for sequence, command, character in _TOKEN.findall(text):
            if command:
                self._obey(sequence, command)
            else:
                self._put(character)

    def lines(self) -> list[str]:
        """What stands there, without blanks at the end of lines and of the screen."""
        return "\n".join("".join(row).rstrip() for row in self.rows).rstrip("\n").split("\n")

    def _obey(self, sequence: str, command: str) -> None:
        match command, sequence:
            case "K", "":
                self._erase_line()
            case "J", "":
                self._erase_line()
                del self.rows[self.row + 1 :]
            case "A", "":
                self.row = max(0, self.row - 1)
            case "l" | "h", "?7":
                self.wraps = command == "h"
            case "m", _:
                pass
            case _:
                raise AssertionError(f"unexpected escape sequence: {sequence}{command}")

    def _erase_line(self) -> None:
        del self.rows[self.row][self.column :]

    def _put(self, character: str) -> None:
        if character == "\n":
            self._down()
        elif character == "\r":
            self.column = 0
        else:
            assert unicodedata.category(character) != "Cc", repr(character)
            self._print(character)

    def _down(self) -> None:
        """The terminal's driver adds the carriage return."""
        self.row, self.column = self.row + 1, 0
        if self.row == len(self.rows):
            self.rows.append([])

    def _print(self, character: str) -> None:
        size = columns_of(character)
        if self.column + size > self.width:
            self.wrapped += 1
            if not self.wraps:
                return
            self._down()
        row = self.rows[self.row]
        if not size:
            row[-1:] = ["".join(row[-1:]) + character]
            return
        row.extend(" " * (self.column - len(row)))
        row[self.column : self.column + size] = [character, *[""] * (size - 1)]
        self.column += size


def columns_of(character: str) -> int:
    """As most terminals have it."""
    if unicodedata.combining(character) or character in "\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Terminal(io.StringIO):
    """A stream of a process that writes to this screen."""

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self.screen = screen
        self.writes: list[str] = []

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.writes.append(text)
        self.screen.feed(text)
        return len(text)
