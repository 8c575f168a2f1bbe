"""Expands words: every expansion of a shell, as far as its outcome is known."""

from collections.abc import Callable

from ralph.guard.follow.second_evaluation import judge_arithmetic, judge_name, judge_prompt
from ralph.guard.follow.state import State
from ralph.guard.paths import Where
from ralph.guard.shell.nodes import Arithmetic, Param, Process, Simple, Text, Word
from ralph.guard.shell.text import (
    ANY,
    BREAK,
    FOUND,
    FREE,
    NAMED,
    NET,
    PARENT,
    READ,
    SECRET,
    SURE,
    braces,
    hide,
    names,
    plain,
    show,
    split,
    unknown,
)
from ralph.guard.shell.words import checked_length, is_name

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.guard.shell.nodes import Part, Script

# Variables that hold a number, a name or a tool that a person has chosen.
_TAME = names(
    "USER LOGNAME HOSTNAME RANDOM SECONDS UID EUID LINENO BASHPID SHLVL COLUMNS LINES EPOCHSECONDS"
    " OSTYPE HOSTTYPE MACHTYPE BASH_VERSION LANG TERM CI PYTHON PYTHON3 CC CXX MAKE CARGO GO NODE"
)
_SECRETS = names("KEY TOKEN SECRET SECRETS PASSWORD PASSWD PAT CREDENTIALS")
_NOT_SECRET = names("PATH FILE DIR ID NAME LENGTH TYPE COUNT URL")


class Expander:
    """Turns words into fields; `run` follows the scripts that are substituted in them."""

    def __init__(self, where: Where, run: "Callable[[Script, State], str]") -> None:
        self.where, self.run, self.count = where, run, 0

    def fields(self, word: Word, state: State) -> list[str]:
        """The fields that a word becomes: one, none or many."""
        text = self._joined(word, state)
        made = braces(text) if "{" in text else [text]
        found = [show(field) for one in made for field in one.split(BREAK)]
        if any(part.quoted for part in word.parts) and not any(found):
            lists = [part for part in word.parts if isinstance(part, Param) and _is_list(part)]
            empty = [part for part in word.parts if isinstance(part, Text) and not part.text]
            return [] if lists and len(lists) + len(empty) == len(word.parts) else [""]
        return [field for field in found if field]

    def text(self, word: Word, state: State) -> str:
        """The word as one text, as in an assignment: neither split nor braced."""
        return show(self._joined(word, state)).replace(BREAK, " ")

    def _joined(self, word: Word, state: State) -> str:
        parts = [self._of_part(part, state, place) for place, part in enumerate(word.parts)]
        return checked_length("".join(parts))

    def _of_part(self, part: "Part", state: State, place: int) -> str:
        if isinstance(part, Text):
            if part.quoted:
                return hide(part.text)
            return self._tilde(part.text) if place == 0 else part.text
        if isinstance(part, Process):
            self.count += 1
            name = f"/dev/fd/{self.count}"
            inner = state.copy()
            inner.stdin = ANY if part.reads else inner.stdin
            state.files[name] = self.run(part.body, inner)
            return name
        if isinstance(part, Arithmetic):
            judge_arithmetic(self.text(part.inner, state), state)
            return NAMED
        if isinstance(part, Param):
            return self._param(part, state)
        printed = self.run(part.body, state.copy()).rstrip("\n")
        items = part.body.items
        if len(items) == 1 and isinstance(items[0], Simple) and not items[0].words:
            printed = f"{ANY}{READ}" if items[0].redirects else printed  # `$(<file)`
        return self._shaped(printed, state, quoted=part.quoted)

    def _shaped(self, value: str, state: State, *, quoted: bool) -> str:
        """The value of an expansion, split where a shell splits it."""
        if quoted:
            return hide(value)
        separators = state.value("IFS")
        return hide(split(value, " \t\n" if separators is None else separators))

    def _tilde(self, text: str) -> str:
        name, equals, value = text.partition("=")
        if equals and value.startswith("~") and is_name(name):
            return f"{name}={self._tilde(value)}"
        if not text.startswith("~"):
            return text
        user, slash, rest = text[1:].partition("/")
        if ":" in user:  # no user's name: the program gets it as it stands
            return text
        if user == "+":
            return f"{self.where.cwd}{slash}{rest}"
        return f"{ANY if user else self.where.home}{slash}{rest}"

    def _param(self, part: Param, state: State) -> str:
        judge_arithmetic(part.index, state)
        if part.prefix == "#":
            return NAMED
        if _is_list(part):
            items = state.params if part.name in "@*" else state.arrays.get(part.name)
            if items is not None:
                return self._listed(part, items, state)
        value = self._value(part, state)
        if part.prefix == "!":
            # A name that nobody knows may be that of a secret.
            hidden = ANY if part.index else SECRET
            judge_name(value if plain(value) else "", state)
            value = self._plain_value(value, state) if plain(value) and value else hidden
        if part.op:
            value = self._changed(part, value, state)
        return self._shaped(value, state, quoted=part.quoted)

    def _listed(self, part: Param, items: list[str], state: State) -> str:
        """All items of an array or all parameters, each changed as `op` says."""
        if part.prefix:
            return NAMED
        if part.op == ":":
            assert part.argument is not None
            argument = self.text(part.argument, state)
            judge_arithmetic(argument, state)
            skipped = argument.partition(":")[0].strip()
            if not skipped.isdecimal():
                return ANY
            items = items[max(int(skipped) - (part.name in "@*"), 0) :]
        elif part.op:
            items = [self._changed(part, item, state) for item in items]
        return BREAK.join(self._shaped(item, state, quoted=part.quoted) for item in items)

    def _value(self, part: Param, state: State) -> str:
        """The value of a variable or of an array's element."""
        items = state.arrays.get(part.name)
        if items is None:
            return ANY if part.index and part.index != "0" else self._plain_value(part.name, state)
        if part.index in ("", "0"):
            return items[0] if items else ""
        if part.index.isdecimal():
            return items[int(part.index)] if int(part.index) < len(items) else ""
        return ANY

    def _plain_value(self, name: str, state: State) -> str:
        if name.isdecimal() or name in "@*#":
            return state.positional(name)
        if name in "?$!-":
            return NAMED
        value = state.value(name)
        if value is not None:
            return value
        where = self.where  # else it is the environment that says it, as far as all know that
        known = {"HOME": where.home, "PWD": state.cwd, "IFS": " \t\n", "SHELL": "bash"}
        known |= {"CLAUDE_PROJECT_DIR": where.project, "BASH": "bash"}
        known["PPID"] = f"{NAMED}{FOUND}{PARENT}"  # the agent, which nobody here has started
        if name == "TMPDIR" and where.temps:
            return where.temps[0]
        if is_secret(name):
            return SECRET
        return known.get(name, NAMED if name in _TAME else ANY)

    def _changed(self, part: Param, value: str, state: State) -> str:
        """The value after `${name op argument}` has changed it."""
        assert part.argument is not None
        op, argument = part.op, self.text(part.argument, state)
        if op.lstrip(":") in ("-", "=", "?", "+") and op != ":":
            return self._default(part, value, argument, state)
        if op == "@":
            if argument == "P":
                judge_prompt(value)
            return ANY
        if op == ":":
            judge_arithmetic(argument, state)
        if not plain(value) or not plain(argument):
            return _changed_unknown(op, argument, value)
        return _changed_known(op, argument, value)

    def _default(self, part: Param, value: str, argument: str, state: State) -> str:
        kind = part.op.lstrip(":")
        is_set = (
            part.name in state.variables or part.name in state.arrays or value not in (ANY, SECRET)
        )
        if kind == "+":
            return "" if part.name in state.variables and not value else argument
        if kind == "?":
            if value == ANY and part.op == ":?" and _is_projects(part.name, state):
                state.variables[part.name] = (f"{ANY}{SURE}",)
                return f"{ANY}{SURE}"
            return value
        if is_set and (value or part.op == kind):
            return value
        if kind == "=":
            state.assign(part.name, argument)
        return argument


def _is_projects(name: str, state: State) -> bool:
    """True if a variable may be the project's own: not one that this script has set to what nobody
    knows, nor one that leads elsewhere on every machine."""
    if name in state.variables or name.startswith(("XDG_", "GIT_", "CLAUDE_", "SSH_")):
        return False
    return not name.endswith(("HOME", "PATH", "PWD", "PREFIX", "DESTDIR", "PROFILE", "DISK"))


def is_secret(name: str) -> bool:
    """True if an environment variable of this name holds a secret."""
    parts = name.split("_")
    if name != name.upper() or parts[-1] in _NOT_SECRET:
        return False
    return not _SECRETS.isdisjoint(parts) or name.endswith(("APIKEY", "PASSWORD", "TOKEN"))


def _is_list(part: Param) -> bool:
    return part.name in "@*" or part.index in ("@", "*")


def _changed_unknown(op: str, argument: str, value: str) -> str:
    """A part of a path below the project is one too, a part of a harmless word is harmless."""
    if unknown(value) or unknown(argument) or op[0] not in "#%^,":
        return next((mark for mark in (NET, SECRET) if mark in value), ANY)
    if FREE in value:
        return FREE if value.startswith(FREE) and op[0] != "#" and "/" not in argument else ANY
    return value


def _changed_known(op: str, argument: str, value: str) -> str:
    if op[0] in "^,":
        end = len(value) if len(op) == 2 else 1
        return (value[:end].upper() if op[0] == "^" else value[:end].lower()) + value[end:]
    if op == ":":
        return _substring(value, argument)
    return _replaced(op, argument, value) if op[0] == "/" else _trimmed(op, argument, value)


def _substring(value: str, argument: str) -> str:
    numbers = [item.strip() for item in argument.split(":")]
    if not all(n.removeprefix("-").isdecimal() for n in numbers):
        return ANY
    start = int(numbers[0])
    start = max(len(value) + start, 0) if start < 0 else start
    if len(numbers) == 1:
        return value[start:]
    length = int(numbers[1])
    return value[start:length] if length < 0 else value[start : start + length]


def _replaced(op: str, argument: str, value: str) -> str:
    old, _, new = argument.partition("/")
    if not old or any(c in old for c in "*?[\\"):
        return ANY
    if op == "/#":
        return new + value[len(old) :] if value.startswith(old) else value
    if op == "/%":
        return value[: -len(old)] + new if value.endswith(old) else value
    return value.replace(old, new) if op == "//" else value.replace(old, new, 1)


def _trimmed(op: str, pattern: str, value: str) -> str:
    """The value without a beginning (#) or an end (%) that matches; twice for the longest."""
    from fnmatch import fnmatchcase

    places = range(len(value) + 1)
    longest = len(op) == 2
    if op[0] == "#":
        fits = [p for p in places if fnmatchcase(value[:p], pattern)]
        return value[max(fits) if longest else min(fits) :] if fits else value
    fits = [p for p in places if fnmatchcase(value[p:], pattern)]
    return value[: min(fits) if longest else max(fits)] if fits else value
