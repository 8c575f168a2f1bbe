"""Follows a script as a shell would, without doing anything, and judges each command in it.

Loops over known words are followed word by word, functions where they are called, both ways of a
condition. What a command prints is followed as well, as far as it is known: into pipes,
substitutions, files and the shells that read them.
"""

from itertools import product

from ralph.guard.follow.calls import Caller
from ralph.guard.follow.expand import Expander
from ralph.guard.follow.second_evaluation import (
    judge_arithmetic,
    judge_items,
    judge_number,
    judge_test,
)
from ralph.guard.follow.state import State, assigned_in
from ralph.guard.paths import Places
from ralph.guard.rules.catalog import judge_assignment, judge_redirect
from ralph.guard.rules.rule import Refusal, Refused
from ralph.guard.shell import nodes
from ralph.guard.shell.nodes import Script, Unfollowable, Word
from ralph.guard.shell.parser import DECLARES, parse
from ralph.guard.shell.text import ANY, ENDLESS, FREE, MARKS, NAMED
from ralph.guard.shell.words import checked_length

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ralph.guard.paths import Where

_MOST_STEPS = 3000
_MOST_CHOICES = 16
_DEEPEST = 60
_MANY = 100


class Judge:
    """Judges scripts in one world. `allowed` tells which refused commands a person allows."""

    def __init__(self, where: "Where", allowed: "Callable[[list[str]], bool]") -> None:
        self.where, self.allowed = where, allowed
        self.places = Places(where)
        self.expander = Expander(where, self.run)
        self.caller = Caller(self)
        self.steps = self.depth = 0
        self.assigned: set[str] = set()
        self.traps: list[tuple[str, State]] = []

    def judge(self, command: str) -> Refusal | None:
        """The refusal of a command, or None."""
        state = State(self.where.cwd)
        if any(mark in command for mark in MARKS):
            raise Unfollowable("it holds control characters")
        try:
            self.assigned = assigned_in(command) if "trap" in command else set()
            self.text(command, state)
            self.caller.judge_traps()
            for name, body in list(state.functions.items()):
                if name not in state.used:  # it may be exported, or named by a trap
                    inner = state.copy()
                    inner.params = [FREE] * 9
                    self.run(body, inner)
        except Refused as refused:
            return refused.refusal
        return None

    def text(self, script: str, state: State) -> str:
        """Judge a script; what it prints."""
        return self.run(parse(script), state)

    def count(self) -> None:
        """Count a step; there is an end to them."""
        self.steps += 1
        if self.steps > _MOST_STEPS or self.depth > _DEEPEST:
            raise Unfollowable("it is too long or too deep to follow")

    def run(self, node: "nodes.Node", state: State) -> str:
        """Judge what is in a node; what it prints."""
        self.count()
        self.depth += 1
        try:
            printed = _RUNNERS[type(node)](self, node, state)
        finally:
            self.depth -= 1
        return checked_length(printed)

    def script(self, node: Script, state: State) -> str:
        return "".join([self.run(item, state) for item in node.items])

    def chain(self, node: nodes.Chain, state: State) -> str:
        """`a && b`: what comes after the first may not happen."""
        printed = self.run(node.items[0], state)
        return printed + self._maybe(node.items[1:], state)

    def _maybe(self, items: "Iterable[nodes.Node]", state: State) -> str:
        before, state.weak = state.weak, True
        printed = "".join([self.run(item, state) for item in items])
        state.weak = before
        return printed

    def _either(self, items: "Iterable[nodes.Node]", state: State) -> str:
        """Like `_maybe`; and where it goes elsewhere, nobody knows where it is afterwards."""
        cwd = state.cwd
        printed = self._maybe(items, state)
        state.cwd = cwd if state.cwd == cwd else ANY
        return printed

    def pipe(self, node: nodes.Pipe, state: State) -> str:
        """Each stage in a subshell of its own, reading what the one before prints."""
        printed = state.stdin
        for item, reader in zip(node.items, [*node.items[1:], None], strict=True):
            inner = state.copy()
            inner.stdin, inner.piped, inner.reader = printed, True, _literal(reader)
            printed = self.run(item, inner)
        return printed or ""

    def background(self, node: nodes.Background, state: State) -> str:
        inner = state.copy()
        inner.background = True
        return self.run(node.body, inner)

    def block(self, node: nodes.Block, state: State) -> str:
        return self.run(node.body, state.copy() if node.apart else state)

    def each(self, node: nodes.For, state: State) -> str:
        """`for`: the body once for every word."""
        words = list(state.params) if node.words is None else self.fields(node.words, state)
        if len(words) > _MANY:
            if _spawns(node.body):
                raise Refused("resource-bomb", "it starts very many processes at once")
            words = list(dict.fromkeys(NAMED if w.isdecimal() else w for w in words))
        before = state.weak
        printed = []
        for word in words:
            state.weak = False
            state.assign(node.name, word)
            state.weak = True
            printed.append(self.run(node.body, state))
        state.weak = before
        return "".join(printed)

    def loop(self, node: nodes.Loop, state: State) -> str:
        """`while`: twice, so that the end of the body comes before its beginning too."""
        if _is_endless(node.head) and _spawns(node.body):
            raise Refused("resource-bomb", "it starts processes without end")
        self.run(node.head, state)
        self._either((node.body,), state)
        self.run(node.head, state)
        return self._either((node.body,), state)

    def branch(self, node: nodes.Branch, state: State) -> str:
        """`if` and `case`: all of it may happen."""
        for word in node.words:
            self.expander.text(word, state)
        return self._either(node.bodies, state)

    def test(self, node: nodes.Test, state: State) -> str:
        """`[[ ]]` and `(( ))`: what is substituted in them is run, now or when they are used."""
        texts = [self.expander.text(word, state) for word in node.words]
        if any("$(" in text or "`" in text for text in texts):
            raise Unfollowable("a test may run what is written in its text")
        judge_test(texts, state)
        if len(texts) == 1:
            judge_arithmetic(texts[0], state)
        return ""

    def function(self, node: nodes.Function, state: State) -> str:
        """Nothing happens until it is called."""
        state.functions[node.name] = node.body
        return ""

    def call_function(self, name: str, args: list[str], state: State) -> str:
        """Follow a function with these arguments."""
        if name in state.calling:
            if state.background or state.piped:
                raise Refused("resource-bomb", f"the function {name} starts itself over and over")
            return ANY
        state.used.add(name)
        outer = (state.params, state.calling)
        state.params, state.calling = args, (*state.calling, name)
        printed = self.run(state.functions[name], state)
        state.params, state.calling = outer
        return printed

    def redirected(self, node: nodes.Redirected, state: State) -> str:
        """A compound command that reads and writes elsewhere."""
        before = state.stdin, state.fed
        targets = self._open(node.redirects, state)
        printed = self.run(node.body, state)
        state.stdin, state.fed = before
        return self._written(targets, printed, state)

    def simple(self, node: nodes.Simple, state: State) -> str:
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
            printed.append(self._simple(node, state))
            ends.append((state.cwd, state.params))
            state.weak = True  # another choice does not undo what this one did
        state.choice, state.weak = outer, weak
        if any(end != ends[0] for end in ends):
            state.cwd, state.params = ANY, [ANY]
        return "".join(dict.fromkeys(printed))

    def _simple(self, node: nodes.Simple, state: State) -> str:
        argv = self.fields(node.words, state)
        if argv and argv[0] in DECLARES:
            argv += [assign.name for assign in node.assigns]
        before = state.stdin, state.fed
        inner = state
        if argv and argv[0] not in DECLARES and node.assigns:
            inner = state.copy()  # they hold for this command only
            inner.used, inner.functions = state.used, state.functions
        self._assign(node.assigns, inner, argv)
        targets = self._open(node.redirects, inner)
        printed = ""
        if argv:
            try:
                printed = self.caller.call(argv, inner)
            except Refused as refused:
                if not self.allowed(argv):
                    refused.refusal.name(argv)
                    raise
                printed = ANY
        if inner is not state:
            state.take(inner, {assign.name for assign in node.assigns})
        state.stdin, state.fed = before
        return self._written(targets, printed, state)

    def fields(self, words: tuple[Word, ...], state: State) -> list[str]:
        """The fields that words become."""
        return [field for word in words for field in self.expander.fields(word, state)]

    def _assign(self, assigns: tuple[nodes.Assign, ...], state: State, argv: list[str]) -> None:
        for assign in assigns:
            values = self.fields(assign.values, state) if assign.array else []
            text = " ".join(values) if assign.array else self.expander.text(assign.values[0], state)
            if argv[:1] == ["alias"]:
                self.text(text, state.copy())
                continue
            judge_assignment(assign.name, text, self, state)
            judge_arithmetic(assign.index, state)
            judge_items(values, state)
            if assign.array:
                before = state.arrays.get(assign.name, []) if assign.adds else []
                state.arrays[assign.name] = before + values
            elif assign.index:
                state.arrays[assign.name] = [*state.arrays.get(assign.name, []), text]
            else:
                state.arrays.pop(assign.name, None)
                old = (state.value(assign.name) or "") if assign.adds else ""
                state.assign(assign.name, old + text)
            judge_number(assign.name, state)

    def _open(self, redirects: tuple[nodes.Redirect, ...], state: State) -> list[tuple[str, str]]:
        """Judge redirections; the files that standard output goes to, and how."""
        targets = []
        for redirect in redirects:
            op, text = redirect.op, self.expander.text(redirect.target, state)
            if op in ("<<", "<<<"):
                state.stdin = text if op == "<<" else f"{text}\n"
            elif op in (">&", "<&") and not text.rstrip("-").strip("0123456789"):
                continue
            else:
                judge_redirect(op, text, self.places, state)
                if op == "<":
                    state.fed = text != "/dev/null"
                    state.stdin = state.files.get(self.places.absolute(text, state.cwd))
                elif redirect.takes_output():
                    targets.append((op, text))
        return targets

    def _written(self, targets: list[tuple[str, str]], printed: str, state: State) -> str:
        """Remember what went into files; what is left for the next in a pipe."""
        for op, text in targets:
            path = self.places.absolute(text, state.cwd)
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


def _literal(node: "nodes.Node | None") -> list[str]:
    """The words of a command that says all of itself; none of any other."""
    words = [word.literal() for word in node.words] if isinstance(node, nodes.Simple) else []
    return [word for word in words if word is not None] if None not in words else []


def _names(node: nodes.Simple, state: State) -> set[str]:
    """The variables with several values that a command uses."""
    several = {name for name, values in state.variables.items() if len(values) > 1}
    if not several:
        return several
    words = [*node.words, *(w for a in node.assigns for w in a.values)]
    words += [redirect.target for redirect in node.redirects]
    return several & {name for word in words for name in _used(word)}


def _used(word: Word) -> "Iterable[str]":
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


def _is_endless(head: "nodes.Node") -> bool:
    """True if a loop with this head goes on forever: `while true`, `for ((;;))`."""
    head = head.items[0] if isinstance(head, Script) and head.items else head
    if isinstance(head, nodes.Test):
        return not "".join(word.literal() or "?" for word in head.words).strip("; ")
    words = [word.literal() for word in head.words[:1]] if isinstance(head, nodes.Simple) else []
    return any(word in ("true", ":", "false") for word in words)


def _spawns(body: Script) -> bool:
    """True if something is sent to the background, and nothing waits or ends it."""
    items = [
        inner
        for item in body.items
        for inner in (item.body.items if isinstance(item, nodes.Block) else (item,))
    ]
    plain = [
        item.words[0].literal() for item in items if isinstance(item, nodes.Simple) and item.words
    ]
    waits = any(word in ("sleep", "wait", "break", "exit", "read") for word in plain)
    return any(isinstance(item, nodes.Background) for item in items) and not waits


_RUNNERS: "dict[type, Callable[..., str]]" = {
    Script: Judge.script,
    nodes.Chain: Judge.chain,
    nodes.Pipe: Judge.pipe,
    nodes.Background: Judge.background,
    nodes.Block: Judge.block,
    nodes.For: Judge.each,
    nodes.Loop: Judge.loop,
    nodes.Branch: Judge.branch,
    nodes.Test: Judge.test,
    nodes.Function: Judge.function,
    nodes.Redirected: Judge.redirected,
    nodes.Simple: Judge.simple,
}
