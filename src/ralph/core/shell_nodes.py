"""What a shell script is made of, as plain classes.

They are no dataclasses: the guard's hook starts anew for every call, and importing `dataclasses`
alone would take a quarter of its time (ADR 25).
"""

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from typing import TypeAlias

    Part: TypeAlias = "Text | Param | Substitution | Process | Arithmetic"
    Node: TypeAlias = (
        "Simple | Pipe | Chain | Script | Background | Block | For | Loop | Branch | Test"
        " | Function | Redirected"
    )


class Unfollowable(Exception):  # noqa: N818  it says what happened
    """The parser does not know what a shell would make of this: the guard refuses it."""


class Text:
    """Literal text; quoted text is never split, expanded or matched."""

    __slots__ = ("quoted", "text")

    def __init__(self, text: str, *, quoted: bool) -> None:
        self.text, self.quoted = text, quoted


class Param:
    """`$name`, `${name}` or `${name op argument}`; `prefix` is `!` or `#` before the name."""

    __slots__ = ("argument", "index", "name", "op", "prefix", "quoted")

    def __init__(
        self,
        name: str,
        *,
        quoted: bool,
        prefix: str = "",
        index: str = "",
        op: str = "",
        argument: "Word | None" = None,
    ) -> None:
        self.name, self.quoted, self.prefix = name, quoted, prefix
        self.index, self.op, self.argument = index, op, argument


class Substitution:
    """`$(...)` or backquotes."""

    __slots__ = ("body", "quoted")

    def __init__(self, body: "Script", *, quoted: bool) -> None:
        self.body, self.quoted = body, quoted


class Process:
    """`<(...)`, whose output is read, or `>(...)`, which reads."""

    __slots__ = ("body", "quoted", "reads")

    def __init__(self, body: "Script", *, reads: bool) -> None:
        self.body, self.quoted, self.reads = body, False, reads


class Arithmetic:
    """`$((...))`: a number, whatever it is; what is substituted in it is run."""

    __slots__ = ("inner", "quoted")

    def __init__(self, inner: "Word", *, quoted: bool) -> None:
        self.inner, self.quoted = inner, quoted


class Word:
    """What becomes one field, none or many."""

    __slots__ = ("parts",)

    def __init__(self, parts: "tuple[Part, ...]") -> None:
        self.parts = parts

    def literal(self) -> str | None:
        """The text, if all of it is literal."""
        texts = [part.text for part in self.parts if isinstance(part, Text)]
        return "".join(texts) if len(texts) == len(self.parts) else None


class Assign:
    """`name=value`, `name+=value`, `name=(values)`; an element `name[i]=value` has an index."""

    __slots__ = ("adds", "array", "index", "name", "values")

    def __init__(
        self, name: str, values: tuple[Word, ...], *, adds: bool, array: bool, index: str
    ) -> None:
        self.name, self.values = name, values
        self.adds, self.array, self.index = adds, array, index


class Redirect:
    """`op` is one of < > >> >| <> &> &>> >& <& <<< <<; `target` the file, descriptor or text;
    `descriptor` is what stands before it."""

    __slots__ = ("descriptor", "op", "target")

    def __init__(self, op: str, target: Word, descriptor: str = "") -> None:
        self.op, self.target, self.descriptor = op, target, descriptor

    def takes_output(self) -> bool:
        """Whether standard output goes there."""
        return self.op[0] != "<" and (self.descriptor in ("", "1"))


class Simple:
    """Assignments, words and redirections: one command."""

    __slots__ = ("assigns", "redirects", "words")

    def __init__(
        self,
        assigns: tuple[Assign, ...],
        words: tuple[Word, ...],
        redirects: tuple[Redirect, ...] = (),
    ) -> None:
        self.assigns, self.words, self.redirects = assigns, words, redirects


class Pipe:
    """`a | b | c`: each stage reads what the one before prints."""

    __slots__ = ("items",)

    def __init__(self, items: "tuple[Node, ...]") -> None:
        self.items = items


class Chain:
    """`a && b || c`: what follows the first may or may not happen."""

    __slots__ = ("items",)

    def __init__(self, items: "tuple[Node, ...]") -> None:
        self.items = items


class Script:
    """Commands one after the other."""

    __slots__ = ("items",)

    def __init__(self, items: "tuple[Node, ...]") -> None:
        self.items = items


class Background:
    """`command &`."""

    __slots__ = ("body",)

    def __init__(self, body: "Node") -> None:
        self.body = body


class Block:
    """`{ ...; }`, or `( ... )` with changes that stay inside."""

    __slots__ = ("apart", "body")

    def __init__(self, body: Script, *, apart: bool) -> None:
        self.body, self.apart = body, apart


class For:
    """`for name in words; do ...; done`; without words: over the positional parameters."""

    __slots__ = ("body", "name", "words")

    def __init__(self, name: str, words: "tuple[Word, ...] | None", body: Script) -> None:
        self.name, self.words, self.body = name, words, body


class Loop:
    """`while` and `until`: the head and the body, any number of times."""

    __slots__ = ("body", "head")

    def __init__(self, head: "Node", body: Script) -> None:
        self.head, self.body = head, body


class Branch:
    """`if` and `case`: words that are looked at, and bodies of which any may happen."""

    __slots__ = ("bodies", "words")

    def __init__(self, words: tuple[Word, ...], bodies: tuple[Script, ...]) -> None:
        self.words, self.bodies = words, bodies


class Test:
    """`[[ ... ]]` or `((...))`: nothing happens but what is substituted in its words."""

    __slots__ = ("words",)

    def __init__(self, words: tuple[Word, ...]) -> None:
        self.words = words


class Function:
    """`name() body`: nothing happens until it is called."""

    __slots__ = ("body", "name")

    def __init__(self, name: str, body: "Node") -> None:
        self.name, self.body = name, body


class Redirected:
    """A compound command with redirections."""

    __slots__ = ("body", "redirects")

    def __init__(self, body: "Node", redirects: tuple[Redirect, ...]) -> None:
        self.body, self.redirects = body, redirects
