"""What is known while a script is followed: variables, functions, the directory, written files."""

from ralph.core.shell_text import ANY, NAMED

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.core.shell_nodes import Node

_MOST_VALUES = 8


def assigned_in(command: str) -> set[str]:
    """The names in small letters that a command may assign; no environment has them."""
    pieces = [piece.split("=")[0] for piece in command.replace(";", " ").split() if "=" in piece]
    return {name for name in pieces if name.isidentifier() and name == name.lower()}


class State:
    """Copied for a subshell; a variable may have one of several values."""

    __slots__ = (
        *("added_remote", "arrays", "background", "branch", "calling", "choice", "cwd", "fed"),
        *("far", "files", "left"),
        *("functions", "numbers"),
        *("params", "piped", "reader", "stdin", "used", "variables", "weak", "zero"),
    )

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
        """The state of a subshell; functions that it calls count as called here."""
        other = State(self.cwd)
        other.variables, other.arrays = dict(self.variables), dict(self.arrays)
        other.functions, other.used = dict(self.functions), self.used
        other.files, other.params, other.stdin = self.files, list(self.params), self.stdin
        other.choice, other.calling = dict(self.choice), self.calling
        other.weak, other.background = self.weak, self.background
        other.numbers = self.numbers
        other.zero, other.fed = self.zero, self.fed
        other.piped, other.added_remote = self.piped, self.added_remote
        other.branch, other.left, other.far = self.branch, list(self.left), self.far
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
        """What a variable holds, under the choice that is being tried; None: not set here."""
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
