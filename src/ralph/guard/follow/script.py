"""Follows a script as a shell would, without doing anything, and judges each command in it.

Loops over known words are followed word by word, functions where they are called, both ways of a
condition. What a command prints is followed as well, as far as it is known: into pipes,
substitutions, files and the shells that read them.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import product

from ralph.guard.follow import expand
from ralph.guard.follow.calls import judge_command, judge_text
from ralph.guard.follow.state import Judgement, State
from ralph.guard.paths import Where
from ralph.guard.rules.catalog import judge_redirect
from ralph.guard.rules.environment import judge_assignment
from ralph.guard.rules.rule import Refused
from ralph.guard.shell import nodes
from ralph.guard.shell.nodes import Node, Script, Unfollowable, Word
from ralph.guard.shell.parser import DECLARES
from ralph.guard.shell.text import ANY, ENDLESS, FREE, MARKS, NAMED

_MOST_CHOICES = 16
_MANY = 100


def follow(command: str, where: Where, allowed: Callable[[list[str]], bool]) -> None:
    """Judge a command. `allowed` tells which refused commands a person allows."""
    if any(mark in command for mark in MARKS):
        raise Unfollowable("it holds control characters")
    judgement = Judgement(where, lambda n, s: _RUNNERS[type(n)](n, s), judge_command, allowed)
    state = State(judgement)
    if "trap" in command:
        pieces = [text.split("=")[0] for text in command.replace(";", " ").split() if "=" in text]
        judgement.assigned = {n for n in pieces if n.isidentifier() and n == n.lower()}
    state.text(command)
    for text, then in list(judgement.traps):  # now all is assigned
        judge_text(text, [], then, "a trap")
    for name, body in list(state.functions.items()):
        if name not in state.used:  # it may be exported, or named by a trap
            inner = state.copy()
            inner.params = [FREE] * 9
            inner.run(body)


def _maybe(items: Iterable[Node], state: State) -> str:
    """Nodes that may not be run, such as what follows the first of `a && b`."""
    before, state.weak = state.weak, True
    printed = "".join([state.run(item) for item in items])
    state.weak = before
    return printed


def _either(items: Iterable[Node], state: State) -> str:
    """Like `_maybe`; and where it goes elsewhere, nobody knows where it is afterwards."""
    cwd = state.cwd
    printed = _maybe(items, state)
    state.cwd = cwd if state.cwd == cwd else ANY
    return printed


def _pipe(node: nodes.Pipe, state: State) -> str:
    """Each stage in a subshell of its own, reading what the one before prints."""
    printed = state.stdin
    for item, reader in zip(node.items, [*node.items[1:], None], strict=True):
        inner = state.copy()
        inner.stdin, inner.piped = printed, True
        words = [w.literal() for w in reader.words] if isinstance(reader, nodes.Simple) else []
        inner.reader = [word for word in words if word is not None] if None not in words else []
        printed = inner.run(item)
    return printed or ""


def _enclosed(node: nodes.Enclosed, state: State) -> str:
    inner = state.copy() if node.apart else state
    inner.background = state.background or node.background
    before = inner.stdin, inner.fed
    targets = _open(node.redirects, inner)
    printed = inner.run(node.body)
    inner.stdin, inner.fed = before
    return _written(targets, printed, inner)


def _each(node: nodes.For, state: State) -> str:
    """`for`: the body once for every word."""
    words = list(state.params) if node.words is None else _fields(node.words, state)
    if len(words) > _MANY:
        if _spawns(node.body):
            raise Refused("resource-bomb", "it starts very many processes at once")
        words = list(dict.fromkeys(NAMED if w.isdecimal() else w for w in words))
    before = state.weak
    printed = []
    for word in words:
        state.weak = False
        state.assign(node.name, word)
        printed.append(_maybe((node.body,), state))
    state.weak = before
    return "".join(printed)


def _loop(node: nodes.While, state: State) -> str:
    """`while`: twice, so that the end of the body comes before its beginning too."""
    if _is_endless(node.head) and _spawns(node.body):
        raise Refused("resource-bomb", "it starts processes without end")
    state.run(node.head)
    _either((node.body,), state)
    state.run(node.head)
    return _either((node.body,), state)


def _branch(node: nodes.Branch, state: State) -> str:
    """`if` and `case`: all of it may happen."""
    for word in node.words:
        expand.text_of(word, state)
    return _either(node.bodies, state)


def _test(node: nodes.Test, state: State) -> str:
    """`[[ ]]` and `(( ))`: what is substituted in them is run, now or when they are used."""
    texts = [expand.text_of(word, state) for word in node.words]
    if any("$(" in text or "`" in text for text in texts):
        raise Unfollowable("a test may run what is written in its text")
    expand.judge_test(texts, state)
    if len(texts) == 1:
        expand.judge_arithmetic(texts[0], state)
    return ""


def _function(node: nodes.Function, state: State) -> str:
    state.functions[node.name] = node.body
    return ""


def _simple(node: nodes.Simple, state: State) -> str:
    """A command, once for each choice of its variables' values."""
    outer, weak, before = state.choice, state.weak, (state.cwd, state.params)
    names = sorted(_names(node, state) - outer.keys())
    choices = list(product(*[state.variables[name] for name in names]))
    if len(choices) > _MOST_CHOICES:
        raise Unfollowable("its variables may hold too many values")
    printed, ends = [], []
    for choice in choices:
        state.choice = {**outer, **dict(zip(names, choice, strict=True))}
        state.cwd, state.params = before
        printed.append(_chosen(node, state))
        ends.append((state.cwd, state.params))
        state.weak = True  # another choice does not undo what this one did
    state.choice, state.weak = outer, weak
    if any(end != ends[0] for end in ends):
        state.cwd, state.params = ANY, [ANY]
    return "".join(dict.fromkeys(printed))


def _chosen(node: nodes.Simple, state: State) -> str:
    argv = _fields(node.words, state)
    declares = bool(argv) and argv[0] in DECLARES
    argv += [assign.name for assign in node.assigns] if declares else []
    before = state.stdin, state.fed
    inner = state
    if argv and not declares and node.assigns:
        inner = state.copy()  # they hold for this command only
        inner.functions = state.functions
    for assign in node.assigns:
        _assign(assign, inner, is_alias=argv[:1] == ["alias"])
    targets = _open(node.redirects, inner)
    printed = ""
    if argv:
        try:
            printed = judge_command(argv, inner)
        except Refused as refused:
            if not state.judgement.allowed(argv):
                refused.name(argv)
                raise
            printed = ANY
    if inner is not state:
        state.take(inner, {assign.name for assign in node.assigns})
    state.stdin, state.fed = before
    return _written(targets, printed, state)


def _fields(words: tuple[Word, ...], state: State) -> list[str]:
    """The fields that words become."""
    return [field for word in words for field in expand.fields_of(word, state)]


def _assign(assign: nodes.Assign, state: State, *, is_alias: bool) -> None:
    name, values = assign.name, _fields(assign.values, state) if assign.array else []
    text = " ".join(values) if assign.array else expand.text_of(assign.values[0], state)
    if is_alias:
        state.copy().text(text)
        return
    judge_assignment(name, text, state)
    expand.judge_arithmetic(assign.index, state)
    expand.judge_items(values, state)
    if assign.array:
        state.arrays[name] = (state.arrays.get(name, []) if assign.adds else []) + values
    elif assign.index:
        state.arrays[name] = [*state.arrays.get(name, []), text]
    else:
        state.arrays.pop(name, None)
        state.assign(name, ((state.value(name) or "") if assign.adds else "") + text)
    expand.judge_number(name, state)


def _open(redirects: tuple[nodes.Redirect, ...], state: State) -> list[tuple[str, str]]:
    """Judge redirections; the files that standard output goes to, and how."""
    targets = []
    for redirect in redirects:
        op, text = redirect.op, expand.text_of(redirect.target, state)
        if op in ("<<", "<<<"):
            state.stdin = text if op == "<<" else f"{text}\n"
        elif op in (">&", "<&") and not text.rstrip("-").strip("0123456789"):
            continue
        else:
            judge_redirect(op, text, state)
            if op == "<":
                state.fed = text != "/dev/null"
                state.stdin = state.files.get(state.whole(text))
            elif op[0] != "<" and redirect.descriptor in ("", "1"):
                targets.append((op, text))
    return targets


def _written(targets: list[tuple[str, str]], printed: str, state: State) -> str:
    """Remember what went into files; what is left for the next in a pipe."""
    for op, text in targets:
        path = state.whole(text)
        if path.startswith("/dev/"):
            printed = "" if path == "/dev/null" else printed
            continue
        if ENDLESS in printed:
            raise Refused(
                "resource-bomb", "it never ends and would fill the disk; take some with head"
            )
        before = state.files.get(path, "") if op in (">>", "&>>") else ""
        state.files[path], printed = before + printed, ""
    return printed


def _names(node: nodes.Simple, state: State) -> set[str]:
    """The variables with several values that a command uses."""
    several = {name for name, values in state.variables.items() if len(values) > 1}
    if not several:
        return several
    words = [*node.words, *(w for a in node.assigns for w in a.values)]
    words += [redirect.target for redirect in node.redirects]
    return several & {name for word in words for name in _used(word)}


def _used(word: Word) -> Iterator[str]:
    for part in word.parts:
        if isinstance(part, nodes.Param):
            yield part.name
            if part.argument is not None:
                yield from _used(part.argument)
        elif isinstance(part, nodes.Substitution):
            for item in part.body.items:
                for simple in item.items if isinstance(item, nodes.Pipe | nodes.Chain) else (item,):
                    for inner in simple.words if isinstance(simple, nodes.Simple) else ():
                        yield from _used(inner)


def _is_endless(head: Node) -> bool:
    """True if a loop with this head goes on forever: `while true`, `for ((;;))`."""
    head = head.items[0] if isinstance(head, Script) and head.items else head
    if isinstance(head, nodes.Test):
        return not "".join(word.literal() or "?" for word in head.words).strip("; ")
    words = [word.literal() for word in head.words[:1]] if isinstance(head, nodes.Simple) else []
    return any(word in ("true", ":", "false") for word in words)


def _spawns(body: Script) -> bool:
    """True if something is sent to the background, and nothing waits or ends it."""
    items: list[Node] = []
    for item in body.items:
        inner = item.body if isinstance(item, nodes.Enclosed) else item
        items += inner.items if isinstance(inner, Script) else [item]
    plain = [
        item.words[0].literal() for item in items if isinstance(item, nodes.Simple) and item.words
    ]
    waits = any(word in ("sleep", "wait", "break", "exit", "read") for word in plain)
    return not waits and any(isinstance(item, nodes.Enclosed) and item.background for item in items)


_RUNNERS: dict[type, Callable[..., str]] = {
    Script: lambda node, state: "".join([state.run(item) for item in node.items]),
    nodes.Chain: lambda n, state: state.run(n.items[0]) + _maybe(n.items[1:], state),
    nodes.Pipe: _pipe,
    nodes.Enclosed: _enclosed,
    nodes.For: _each,
    nodes.While: _loop,
    nodes.Branch: _branch,
    nodes.Test: _test,
    nodes.Function: _function,
    nodes.Simple: _simple,
}
