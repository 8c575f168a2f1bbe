"""The knowledge while a script is followed: variables, functions, the directory, written files."""

from ralph.guard.shell.text import ANY, NAMED

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from typing import Protocol

    from ralph.guard.paths import Places, Where
    from ralph.guard.shell.nodes import Node

    class Judge(Protocol):
        """Follows scripts, as those know it whom it asks about a command."""

        where: Where
        places: Places
        assigned: set[str]
        traps: list[tuple[str, "State"]]

        def text(self, script: str, state: "State") -> str: ...
        def count(self) -> None: ...
        def call_function(self, name: str, args: list[str], state: "State") -> str: ...

    class Caller(Protocol):
        """Judges commands, as those know it who find one in what another is given."""

        @property
        def judge(self) -> Judge: ...
        def again(self, argv: list[str], state: "State") -> str: ...


_MOST_VALUES = 8


def assigned_in(command: str) -> set[str]:
    """The names in small letters that a command may assign; no environment has them."""
    pieces = [piece.split("=")[0] for piece in command.replace(";", " ").split() if "=" in piece]
    return {name for name in pieces if name.isidentifier() and name == name.lower()}


class State:
    """Copied for a subshell; a variable may have one of several values."""

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self.variables: dict[str, tuple[str, ...]] = {}
        self.arrays: dict[str, list[str]] = {}
        self.functions: dict[str, Node] = {}
        self.used: set[str] = set()  # functions that were called
        self.files: dict[str, str] = {}  # what this script itself wrote, by absolute path
        self.params: list[str] = []
        self.zero = "bash"
        self.stdin: str | None = None  # None: nothing is sent there
        self.fed = False  # whether a file is sent there
        self.choice: dict[str, str] = {}  # the value of a variable with several, for now
        self.calling: tuple[str, ...] = ()
        self.weak = False  # whether what is done now may also not be done
        self.background = False
        self.piped = False
        self.far = False  # whether it is done on another machine
        self.left: list[str] = []  # directories that `pushd` has left
        self.reader: list[str] = []  # the command that reads what is printed now, if it is known
        self.added_remote = False
        self.branch = ""  # what this script has checked out
        self.numbers = {"RANDOM", "SECONDS", "OPTIND", "LINENO"}  # evaluated when they are set

    def copy(self) -> "State":
        """The state of a subshell; written files, and functions that it calls, count here too."""
        other = State(self.cwd)
        other.__dict__.update(self.__dict__)
        other.variables, other.arrays = dict(self.variables), dict(self.arrays)
        other.functions, other.choice = dict(self.functions), dict(self.choice)
        other.params, other.left, other.reader = list(self.params), list(self.left), []
        return other

    def take(self, other: "State", passing: set[str]) -> None:
        """Go on from a state in which these variables held for one command only."""
        self.cwd, self.params, self.branch = other.cwd, other.params, other.branch
        self.left = other.left
        self.variables |= {n: v for n, v in other.variables.items() if n not in passing}
        self.arrays |= {n: v for n, v in other.arrays.items() if n not in passing}

    def assign(self, name: str, value: str) -> None:
        """Give a variable a value, or one more if this may not happen."""
        self.choice.pop(name, None)
        before = self.variables.get(name, ()) if self.weak else ()
        values = tuple(dict.fromkeys((*before, value)))
        self.variables[name] = values if len(values) <= _MOST_VALUES else (ANY,)

    def value(self, name: str) -> str | None:
        """The value of a variable, under the choice that is being tried; None: not set here."""
        if name in self.choice:
            return self.choice[name]
        values = self.variables.get(name)
        return values[0] if values else None

    def positional(self, name: str) -> str:
        """`$1`, `$@`, `$#` and their like."""
        if name == "#":
            return NAMED
        if name in "@*":
            return ANY
        place = int(name)
        if place == 0:
            return self.zero
        return self.params[place - 1] if place <= len(self.params) else ""
