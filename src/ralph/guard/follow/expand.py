"""Expands words, as far as the outcome is known, and judges texts that a shell evaluates a second
time: names, subscripts, arithmetic and prompts.

`printf -v 'a[$(rm x)]'` and `x='a[$(rm x)]'; ((x))` run what stands in quotes. Arithmetic on a
value that nobody knows is everyday work and passes; a name that nobody knows does not.
"""

import re
from collections.abc import Callable

from ralph.guard.follow.state import State
from ralph.guard.rules.rule import Call, Refused, positional
from ralph.guard.rules.secrets import is_secret
from ralph.guard.shell.nodes import Arithmetic, Literal, Param, Part, Process, Simple, Word
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
    fits,
    hide,
    names,
    plain,
    show,
    shown,
    split,
    unknown,
)
from ralph.guard.shell.words import checked_length, is_name

# Variables that hold a number, a name or a tool that a person has chosen.
_TAME = names(
    "USER LOGNAME HOSTNAME RANDOM SECONDS UID EUID LINENO BASHPID SHLVL COLUMNS LINES EPOCHSECONDS"
    " OSTYPE HOSTTYPE MACHTYPE BASH_VERSION LANG TERM CI PYTHON PYTHON3 CC CXX MAKE CARGO GO NODE"
)
_RUNS = r"\$\(|`|\$\{[\s|]"
_ELEMENT_RUNS = r"\w\[[^\]]*(?:\$\(|`)"
_OPENED_RUNS = r"\{\w+\[.*(?:\$\(|`)"  # `{a[...]}> file`


def fields_of(word: Word, state: State) -> list[str]:
    """The fields that a word becomes: one, none or many."""
    made = braces(_joined(word, state))
    found = [show(field) for one in made for field in one.split(BREAK)]
    if any(part.quoted for part in word.parts) and not any(found):
        lists = [part for part in word.parts if isinstance(part, Param) and _is_list(part)]
        empty = [part for part in word.parts if isinstance(part, Literal) and not part.text]
        return [] if lists and len(lists) + len(empty) == len(word.parts) else [""]
    return [field for field in found if field]


def text_of(word: Word, state: State) -> str:
    """The word as one text, as in an assignment: neither split nor braced."""
    return show(_joined(word, state)).replace(BREAK, " ")


def _joined(word: Word, state: State) -> str:
    parts = [_of_part(part, state, place) for place, part in enumerate(word.parts)]
    return checked_length("".join(parts))


def _of_part(part: Part, state: State, place: int) -> str:
    if isinstance(part, Literal):
        if part.quoted:
            return hide(part.text)
        return _tilde(part.text, state) if place == 0 else part.text
    if isinstance(part, Process):
        state.judgement.processes += 1
        name = f"/dev/fd/{state.judgement.processes}"
        inner = state.copy()
        inner.stdin = ANY if part.reads else inner.stdin
        state.files[name] = inner.run(part.body)
        return name
    if isinstance(part, Arithmetic):
        judge_arithmetic(text_of(part.inner, state), state)
        return NAMED
    if isinstance(part, Param):
        return _param(part, state)
    printed = state.copy().run(part.body).rstrip("\n")
    items = part.body.items
    if len(items) == 1 and isinstance(items[0], Simple) and not items[0].words:
        printed = f"{ANY}{READ}" if items[0].redirects else printed  # `$(<file)`
    return _shaped(printed, state, quoted=part.quoted)


def _shaped(value: str, state: State, *, quoted: bool) -> str:
    """The value of an expansion, split where a shell splits it."""
    if quoted:
        return hide(value)
    separators = state.value("IFS")
    return hide(split(value, " \t\n" if separators is None else separators))


def _tilde(text: str, state: State) -> str:
    name, equals, value = text.partition("=")
    if equals and value.startswith("~") and is_name(name):
        return f"{name}={_tilde(value, state)}"
    if not text.startswith("~"):
        return text
    user, slash, rest = text[1:].partition("/")
    if ":" in user:  # no user's name: the program gets it as it stands
        return text
    if user == "+":
        return f"{state.where.cwd}{slash}{rest}"
    return f"{ANY if user else state.where.home}{slash}{rest}"


def _is_list(part: Param) -> bool:
    return part.name in "@*" or part.index in ("@", "*")


def _param(part: Param, state: State) -> str:
    judge_arithmetic(part.index, state)
    if part.prefix == "#":
        return NAMED
    if _is_list(part):
        items = state.params if part.name in "@*" else state.arrays.get(part.name)
        if items is not None:
            return _listed(part, items, state)
    value = _element(part, state)
    if part.prefix == "!":
        # A name that nobody knows may be that of a secret.
        hidden = ANY if part.index else SECRET
        judge_name(value if plain(value) else "", state)
        value = _variable(value, state) if plain(value) and value else hidden
    if part.op:
        value = _changed(part, value, state)
    return _shaped(value, state, quoted=part.quoted)


def _listed(part: Param, items: list[str], state: State) -> str:
    """All items of an array or all parameters, each changed as `op` says."""
    if part.prefix:
        return NAMED
    if part.op == ":":
        assert part.argument is not None
        argument = text_of(part.argument, state)
        judge_arithmetic(argument, state)
        skipped = argument.partition(":")[0].strip()
        if not skipped.isdecimal():
            return ANY
        items = items[max(int(skipped) - (part.name in "@*"), 0) :]
    elif part.op:
        items = [_changed(part, item, state) for item in items]
    return BREAK.join(_shaped(item, state, quoted=part.quoted) for item in items)


def _element(part: Param, state: State) -> str:
    """The value of a variable or of an array's element."""
    items = state.arrays.get(part.name)
    if items is None:
        return ANY if part.index and part.index != "0" else _variable(part.name, state)
    place = part.index or "0"
    if not place.isdecimal():
        return ANY
    return items[int(place)] if int(place) < len(items) else ""


def _variable(name: str, state: State) -> str:
    if name.isdecimal():
        return "".join([state.zero, *state.params][int(name) : int(name) + 1])
    if name in "#?$!-":
        return NAMED
    if name in "@*":
        return ANY
    value = state.value(name)
    if value is not None:
        return value
    where = state.where  # else it is the environment that says it, as far as all know that
    known = {"HOME": where.home, "PWD": state.cwd, "IFS": " \t\n", "SHELL": "bash"}
    known |= {"CLAUDE_PROJECT_DIR": where.project, "BASH": "bash"}
    known |= {"TMPDIR": where.temps[0]} if where.temps else {}
    known["PPID"] = f"{NAMED}{FOUND}{PARENT}"  # the agent, which nobody here has started
    if is_secret(name):
        return SECRET
    return known.get(name, NAMED if name in _TAME else ANY)


def _changed(part: Param, value: str, state: State) -> str:
    """The value after `${name op argument}` has changed it."""
    assert part.argument is not None
    op, argument = part.op, text_of(part.argument, state)
    if op.lstrip(":") in ("-", "=", "?", "+") and op != ":":
        return _default(part, value, argument, state)
    if op == "@":
        if argument == "P" and (unknown(value) or "${" in value or re.search(_RUNS, value)):
            raise Refused("evasion", "@P would run what is written in the text")
        return ANY
    if op == ":":
        judge_arithmetic(argument, state)
    if plain(value) and plain(argument):
        return _changed_known(op, argument, value)
    # A part of a path below the project is one too, a part of a harmless word is harmless.
    if unknown(value) or unknown(argument) or op[0] not in "#%^,":
        return next((mark for mark in (NET, SECRET) if mark in value), ANY)
    if FREE in value:
        return FREE if value.startswith(FREE) and op[0] != "#" and "/" not in argument else ANY
    return value


def _default(part: Param, value: str, argument: str, state: State) -> str:
    kind = part.op.lstrip(":")
    is_set = part.name in state.variables or part.name in state.arrays or value not in (ANY, SECRET)
    if kind == "+":
        return "" if part.name in state.variables and not value else argument
    if kind == "?":
        if value == ANY and part.op == ":?" and _is_projects(part.name, state):
            value = f"{ANY}{SURE}"
            state.variables[part.name] = (value,)
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


def _changed_known(op: str, argument: str, value: str) -> str:
    if op[0] in "^,":
        end = len(value) if len(op) == 2 else 1
        return (value[:end].upper() if op[0] == "^" else value[:end].lower()) + value[end:]
    if op == ":":  # `${name:start:length}`
        numbers = [item.strip() for item in argument.split(":")]
        if not all(n.removeprefix("-").isdecimal() for n in numbers):
            return ANY
        start = int(numbers[0])
        rest = value[max(len(value) + start, 0) if start < 0 else start :]
        return rest if len(numbers) == 1 else rest[: int(numbers[1])]
    if op[0] == "/":
        old, _, new = argument.partition("/")
        if not old or any(c in old for c in "*?[\\"):
            return ANY
        if op == "/#":
            return new + value[len(old) :] if value.startswith(old) else value
        if op == "/%":
            return value[: -len(old)] + new if value.endswith(old) else value
        return value.replace(old, new, -1 if op == "//" else 1)
    # Without a beginning (#) or an end (%) that matches; twice for the longest.
    begins, longest = op[0] == "#", len(op) == 2
    places = range(len(value) + 1)
    cuts = [p for p in places if fits(value[:p] if begins else value[p:], argument)]
    if not cuts:
        return value
    cut = max(cuts) if begins is longest else min(cuts)
    return value[cut:] if begins else value[:cut]


def judge_arithmetic(text: str, state: State) -> None:
    """Refuse arithmetic that runs a command, in its text or in the variables that it names."""
    seen: set[str] = set()
    texts = [text]
    while texts:
        text = texts.pop()
        if re.search(_RUNS, text):
            raise Refused("evasion", f"the shell would run what is written in {shown(text)}")
        for name in set(re.findall(r"(?<!\w)[A-Za-z_]\w*", text)) - seen:
            seen.add(name)
            texts += (*state.variables.get(name, ()), *state.arrays.get(name, ()))


def judge_name(text: str, state: State) -> None:
    """Refuse a variable's name that nobody can tell, or with a subscript that runs a command."""
    if unknown(text):
        raise Refused("evasion", "nobody can tell which variable it means, or what its index runs")
    if re.search(_RUNS, text):
        raise Refused("evasion", f"the shell would run what is written in {shown(text)}")
    judge_arithmetic(text.partition("[")[2], state)


def judge_number(name: str, state: State) -> None:
    """Refuse what a variable holds whose values are always evaluated, as by `declare -i`."""
    if name in state.numbers:
        judge_arithmetic(name, state)


def judge_items(values: list[str], state: State) -> None:
    """Refuse `([index]=value)` with an index that runs a command."""
    for value in values:
        if value[:1] == "[" and ("]=" in value or re.search(_ELEMENT_RUNS, value)):
            judge_arithmetic(value.partition("]=")[0], state)


def judge_test(texts: list[str], state: State) -> None:
    """Refuse `-v` of a name, and comparisons of numbers, that run a command."""
    for place, text in enumerate(texts):
        before, after = texts[max(place - 1, 0) : place], texts[place + 1 : place + 2]
        if text in ("-v", "-R") and {"=", "==", "!=", "=~"}.isdisjoint(before):
            for name in after:
                judge_name(name, state)
        if text in ("-eq", "-ne", "-lt", "-le", "-gt", "-ge"):
            for operand in (*before, *after):
                judge_arithmetic(operand, state)


def judge_again(call: Call) -> None:
    """Refuse a builtin whose words run a command when they are evaluated again."""
    texts = [word for word in call.words if re.match(_OPENED_RUNS, word)]
    texts += call.values("-W") if call.name in ("compgen", "complete") else []
    texts += call.words if call.name == "let" else []
    for text in texts:
        judge_arithmetic(text, call.state)
    if call.name in ("[", "test"):
        judge_test(call.words, call.state)
    elif call.name in ("declare", "typeset", "local", "export", "readonly"):
        for word in call.args:
            _judge_declared(word, call)
    elif call.name in _NAMING:
        for name in _NAMING[call.name](call):
            judge_name(name, call.state)


def _judge_declared(word: str, call: Call) -> None:
    head, _, value = word.partition("=")
    listed = "[" in head or value[:1] == "("
    if re.search(_ELEMENT_RUNS, word) or (listed and re.search(_RUNS, word)):
        raise Refused("evasion", f"the shell would run what is written in {shown(word)}")
    judge_name(word.partition("]")[0] if "[" in head else head, call.state)
    if call.has_letter("in"):  # a number, or a name for another
        call.state.numbers.add(head)
        judge_arithmetic(word, call.state)


def _operands(words: list[str], valued: str) -> list[str]:
    """The words that are no flags; the last letter of a cluster may take the next word."""
    flags = [w for w in words if w[:1] == "-" and w[1:2] not in ("", "-") and w[-1] in valued]
    return positional(words, flags)


# By builtin: the names of the variables that it sets.
_NAMING: dict[str, Callable[[Call], list[str]]] = {
    "printf": lambda c: c.values("-v")[:1] if "".join(c.words[:1]).startswith("-v") else [],
    "read": lambda c: [*_operands(c.words, "adinNptu"), *c.clustered("a", "dinNptu")],
    **dict.fromkeys(("mapfile", "readarray"), lambda c: _operands(c.words, "dnOsuCc")),
    "unset": lambda c: c.args,
    "wait": lambda c: c.clustered("p", ""),
    "getopts": lambda c: c.args[1:2],
}
