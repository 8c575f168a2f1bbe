"""Texts that a shell evaluates a second time: names, subscripts, arithmetic and prompts.

`printf -v 'a[$(rm x)]'` and `x='a[$(rm x)]'; ((x))` run what stands in quotes. Arithmetic on a
value that nobody knows is everyday work and passes; a name that nobody knows does not.
"""

import re
from collections.abc import Callable

from ralph.guard.follow.state import State
from ralph.guard.rules.rule import Call, Refused, positional
from ralph.guard.shell.text import names, shown, unknown

_RUNS = r"\$\(|`|\$\{[\s|]"
_NAMES = r"(?<!\w)[A-Za-z_]\w*"
_ELEMENT_RUNS = r"\w\[[^\]]*(?:\$\(|`)"
_OPENED_RUNS = r"\{\w+\[.*(?:\$\(|`)"  # `{a[...]}> file`
_COMPARES = names("-eq -ne -lt -le -gt -ge")
_EQUALS = names("= == != =~")
_DECLARING = names("declare typeset local export readonly")


def judge_arithmetic(text: str, state: State) -> None:
    """Refuse arithmetic that runs a command, in its text or in the variables that it names."""
    seen: set[str] = set()
    texts = [text]
    while texts:
        text = texts.pop()
        if re.search(_RUNS, text):
            raise Refused("evasion", f"the shell would run what is written in {shown(text)}")
        for name in set(re.findall(_NAMES, text)) - seen:
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


def judge_prompt(text: str) -> None:
    """Refuse `${x@P}` of a text that runs a command or that nobody can tell."""
    if unknown(text) or "${" in text or re.search(_RUNS, text):
        raise Refused("evasion", "@P would run what is written in the text")


def judge_test(texts: list[str], state: State) -> None:
    """Refuse `-v` of a name, and comparisons of numbers, that run a command."""
    for place, text in enumerate(texts):
        before, after = texts[max(place - 1, 0) : place], texts[place + 1 : place + 2]
        if text in ("-v", "-R") and _EQUALS.isdisjoint(before):
            for name in after:
                judge_name(name, state)
        if text in _COMPARES:
            for operand in (*before, *after):
                judge_arithmetic(operand, state)


def judge_again(call: Call) -> None:
    """Refuse a builtin whose words run a command when they are evaluated again."""
    texts = [word for word in call.words if re.match(_OPENED_RUNS, word)]
    texts += call.values("-W") if call.name in ("compgen", "complete") else []
    for text in texts:
        judge_arithmetic(text, call.state)
    if call.name in ("[", "test"):
        judge_test(call.words, call.state)
    elif call.name == "let":
        for word in call.words:
            judge_arithmetic(word, call.state)
    elif call.name in _DECLARING:
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


def _mapped_into(call: Call) -> list[str]:
    return _operands(call.words, "dnOsuCc")


# By builtin: the names of the variables that it sets.
_NAMING: dict[str, Callable[[Call], list[str]]] = {
    "printf": lambda c: c.values("-v")[:1] if "".join(c.words[:1]).startswith("-v") else [],
    "read": lambda c: [*_operands(c.words, "adinNptu"), *c.clustered("a", "dinNptu")],
    "mapfile": _mapped_into,
    "readarray": _mapped_into,
    "unset": lambda c: c.args,
    "wait": lambda c: c.clustered("p", ""),
    "getopts": lambda c: c.args[1:2],
}
