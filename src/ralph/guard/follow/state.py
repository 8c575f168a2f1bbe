"""The knowledge while a script is followed: variables, functions, the directory, written files."""

from collections.abc import Callable

from ralph.guard.paths import Where
from ralph.guard.shell.nodes import Node, Unfollowable
from ralph.guard.shell.parser import parse
from ralph.guard.shell.text import ANY
from ralph.guard.shell.words import checked_length

_MOST_VALUES = 8
_MOST_STEPS = 3000
_DEEPEST = 60


class Judgement:
    """The part that all states of one judgement share. `run` and `call` judge a node and a command
    in a state and predict what they print; `allowed` tells what a person allows."""

    def __init__(
        self,
        where: Where,
        run: "Callable[[Node, State], str]",
        call: "Callable[[list[str], State], str]",
        allowed: Callable[[list[str]], bool],
    ) -> None:
        self.where, self.run, self.call, self.allowed = where.copy(), run, call, allowed
        self.steps = self.depth = self.processes = 0
        self.assigned: set[str] = set()  # names that no environment has, as the command sets them
        self.traps: list[tuple[str, State]] = []

    def count(self) -> None:
        """Count a step; there is an end to them."""
        self.steps += 1
        if self.steps > _MOST_STEPS or self.depth > _DEEPEST:
            raise Unfollowable("it is too long or too deep to follow")


class State:
    """Copied for a subshell; a variable may have one of several values."""

    def __init__(self, judgement: Judgement) -> None:
        self.judgement, self.where, self.cwd = judgement, judgement.where, judgement.where.cwd
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
        other = State(self.judgement)
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

    def whole(self, path: str) -> str:
        """The absolute path."""
        return self.where.absolute(path, self.cwd)

    def kind(self, path: str) -> str:
        """The kind of place that a path leads to."""
        return self.where.kind(path, self.cwd)

    def text(self, script: str) -> str:
        """Judge a script; what it prints."""
        return self.run(parse(script))

    def run(self, node: Node) -> str:
        """Judge what is in a node; what it prints."""
        judgement = self.judgement
        judgement.count()
        judgement.depth += 1
        try:
            printed = judgement.run(node, self)
        finally:
            judgement.depth -= 1
        return checked_length(printed)

    def call(self, argv: list[str]) -> str:
        """Judge a command that another one runs; what it prints."""
        if not argv:
            return ""
        self.judgement.count()
        return self.judgement.call(argv, self)

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
