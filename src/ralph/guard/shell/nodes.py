"""The parts of a shell script.

They are dataclasses for the type checker only: the guard's hook starts anew for every call, and
importing `dataclasses` alone would take a quarter of its time (ADR 25).
"""

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from dataclasses import dataclass as node
else:

    def node(kind: type) -> type:
        """Give a class a constructor that takes its fields, in their order or by name."""
        fields = tuple(kind.__annotations__)

        def take(self: object, *values: object, **named: object) -> None:
            self.__dict__.update(zip(fields, values, strict=False), **named)

        kind.__init__ = take
        return kind


class Unfollowable(Exception):  # noqa: N818  it says what happened
    """The parser does not know what a shell would make of this: the guard refuses it."""


@node
class Literal:
    """Literal text; quoted text is never split, expanded or matched."""

    text: str
    quoted: bool


@node
class Param:
    """`$name`, `${name}` or `${name op argument}`; `prefix` is `!` or `#` before the name."""

    name: str
    quoted: bool
    prefix: str = ""
    index: str = ""
    op: str = ""
    argument: "Word | None" = None


@node
class Substitution:
    """`$(...)` or backquotes."""

    body: "Script"
    quoted: bool


@node
class Process:
    """`<(...)`, whose output is read, or `>(...)`, which reads."""

    body: "Script"
    reads: bool
    quoted: bool = False


@node
class Arithmetic:
    """`$((...))`: a number, whatever it is; what is substituted in it is run."""

    inner: "Word"
    quoted: bool


@node
class Word:
    """A word of a command, which becomes one field, none or many."""

    parts: "tuple[Part, ...]"

    def literal(self) -> str | None:
        """The text, if all of it is literal."""
        texts = [part.text for part in self.parts if isinstance(part, Literal)]
        return "".join(texts) if len(texts) == len(self.parts) else None


@node
class Assign:
    """`name=value`, `name+=value`, `name=(values)`; an element `name[i]=value` has an index."""

    name: str
    values: tuple[Word, ...]
    adds: bool
    array: bool
    index: str


@node
class Redirect:
    """`op` is one of < > >> >| <> &> &>> >& <& <<< <<; `target` the file, descriptor or text;
    `descriptor` is what stands before it."""

    op: str
    target: Word
    descriptor: str = ""


@node
class Simple:
    """Assignments, words and redirections: one command."""

    assigns: tuple[Assign, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()


@node
class Pipe:
    """`a | b | c`: each stage reads what the one before prints."""

    items: "tuple[Node, ...]"


@node
class Chain:
    """`a && b || c`: what follows the first may or may not happen."""

    items: "tuple[Node, ...]"


@node
class Script:
    """Commands one after the other."""

    items: "tuple[Node, ...]"


@node
class Enclosed:
    """`{ ...; }`, `( ... )` and `command &`, or any compound command with redirections; changes
    stay inside what is `apart`."""

    body: "Node"
    apart: bool = False
    background: bool = False
    redirects: tuple[Redirect, ...] = ()


@node
class For:
    """`for name in words; do ...; done`; without words: over the positional parameters."""

    name: str
    words: tuple[Word, ...] | None
    body: Script


@node
class While:
    """`while` and `until`: the head and the body, any number of times."""

    head: "Node"
    body: Script


@node
class Branch:
    """`if` and `case`: words that are looked at, and bodies of which any may happen."""

    words: tuple[Word, ...]
    bodies: tuple[Script, ...]


@node
class Test:
    """`[[ ... ]]` or `((...))`: nothing happens but what is substituted in its words."""

    words: tuple[Word, ...]


@node
class Function:
    """`name() body`: nothing happens until it is called."""

    name: str
    body: "Node"


Part = Literal | Param | Substitution | Process | Arithmetic
Node = Simple | Pipe | Chain | Script | Enclosed | For | While | Branch | Test | Function
