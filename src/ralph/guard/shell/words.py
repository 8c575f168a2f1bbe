"""Reading shell words: quotes, expansions, substitutions. `shell.py` reads commands with it."""

from collections.abc import Callable

from ralph.guard.shell.nodes import (
    Arithmetic,
    Param,
    Process,
    Script,
    Substitution,
    Text,
    Unfollowable,
    Word,
)
from ralph.guard.shell.text import MARKS

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.guard.shell.nodes import Part

BLANKS = " \t"
META = frozenset(" \t\n;&|<>()")
NAME_START = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
NAME = NAME_START | frozenset("0123456789")
_SPECIAL = frozenset("@*#?-$!0123456789")
_OPERATORS = (
    *(":-", ":=", ":?", ":+", "##", "%%", "//", "/#", "/%", "^^", ",,"),
    *("-", "=", "?", "+", "#", "%", "/", "^", ",", ":", "@"),
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPES |= {"e": "\033", "E": "\033", "\\": "\\", "'": "'", '"': '"', "?": "?"}
_LONGEST_TEXT = 1_000_000
_HEX_LENGTHS = {"x": 2, "u": 4, "U": 8}
_HEX = frozenset("0123456789abcdefABCDEF")
_OCTAL = frozenset("01234567")


def is_name(text: str) -> bool:
    """True if a variable may be called so."""
    return text[:1] in NAME_START and NAME.issuperset(text) and bool(text)


def checked_index(index: str) -> str:
    """The index of an array's element: a shell would run what is substituted in it."""
    if "$(" in index or "`" in index:
        raise Unfollowable("an array's index runs a command")
    return index


def checked_length(text: str) -> str:
    """The text: a script may double it over and over."""
    if len(text) > _LONGEST_TEXT:
        raise Unfollowable("it makes a very long text")
    return text


class Words:
    """A text and a place in it. Methods that read move the place on."""

    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0

    def script(self, _end: str) -> Script:
        """The commands up to the closing mark; `shell.Commands` knows how."""
        raise NotImplementedError

    def reader(self, _text: str) -> "Words":
        """A reader like this for another text."""
        raise NotImplementedError

    def at(self, what: str) -> bool:
        return self.text.startswith(what, self.place)

    def peek(self) -> str:
        """The next character, or nothing at the end."""
        return self.text[self.place : self.place + 1]

    def expect(self, what: str) -> None:
        """Step over what has to come next."""
        if not self.at(what):
            raise Unfollowable(f"{what!r} is missing")
        self.place += len(what)

    def run(self, allowed: Callable[[str], bool]) -> str:
        """The longest run of such characters."""
        start = self.place
        while self.place < len(self.text) and allowed(self.text[self.place]):
            self.place += 1
        return self.text[start : self.place]

    def until(self, what: str) -> str:
        """The text before the next such mark; the place is after it."""
        found = self.text.find(what, self.place)
        if found < 0:
            raise Unfollowable(f"there is no closing {what}")
        start, self.place = self.place, found + len(what)
        return self.text[start:found]

    def word(self, *, stop: frozenset[str] = META, pattern: bool = False) -> Word:
        """The next word; within `[[` and `case` a pattern may hold parentheses."""
        parts: list[Part] = []
        while (c := self.peek()) and (c not in stop or self.at_process() or (pattern and c == "(")):
            if pattern and c == "(":
                self.place += 1
                inner = self.word(stop=frozenset(")"), pattern=True)
                self.expect(")")
                parts += [Text("(", quoted=True), *inner.parts, Text(")", quoted=True)]
            else:
                parts += self._part(c, stop)
        return Word(tuple(parts))

    def at_process(self) -> bool:
        return self.at("<(") or self.at(">(")

    def _part(self, c: str, stop: frozenset[str]) -> "list[Part]":
        """The parts that begin with this character, outside quotes."""
        if c == "\\":
            c = self.text[self.place + 1 : self.place + 2]
            self.place += 2
            if not c:
                raise Unfollowable("it ends with a backslash")
            return [] if c == "\n" else [Text(c, quoted=True)]
        if c == "'":
            self.place += 1
            return [Text(self.until("'"), quoted=True)]
        if c == '"':
            self.place += 1
            return self.double_quoted()
        if c == "$":
            return self._dollar()
        if c == "`":
            return [self._backquoted(quoted=False)]
        if self.at_process():
            self.place += 2
            return [Process(self.script(")"), reads=c == ">")]
        if c in "<>(":
            self.place += 1
            return [Text(c, quoted=True)]
        return [Text(self.run(lambda c: c not in stop and c not in "\\'\"$`<>("), quoted=False)]

    def double_quoted(self, end: str = '"') -> "list[Part]":
        """Text with expansions, up to the closing mark; with no mark up to the end of all."""
        parts: list[Part] = [Text("", quoted=True)]
        while not (end and self.at(end)):
            c = self.peek()
            if not c:
                if end:
                    raise Unfollowable("there is no closing quote")
                return parts
            if c == "\\":
                c = self.text[self.place + 1 : self.place + 2]
                self.place += 2
                kept = c if c and c in f"$`\\{end}" else f"\\{c}"
                parts.append(Text("" if c == "\n" else kept, quoted=True))
            elif c == "$":
                parts += self._dollar(quoted=True, ends=end)
            elif c == "`":
                parts.append(self._backquoted(quoted=True))
            else:
                plain = self.run(lambda c: c not in '\\$`"' or (c == '"' and end != '"'))
                parts.append(Text(plain, quoted=True))
        self.place += len(end)
        return parts

    def _dollar(self, *, quoted: bool = False, ends: str = "") -> "list[Part]":
        """The parts that `$` begins; a lone one is itself."""
        self.place += 1
        c = self.peek()
        if self.at("((") and (inner := self.arithmetic()) is not None:
            return [Arithmetic(inner, quoted=quoted)]
        if c == "(":
            self.place += 1
            return [Substitution(self.script(")"), quoted=quoted)]
        if c == "{":
            self.place += 1
            return [self._braced(quoted=quoted)]
        if c == "[":
            raise Unfollowable("$[...] is not understood: write $((...))")
        if c and c in NAME_START:
            return [Param(self.run(NAME.__contains__), quoted=quoted)]
        if c and c in _SPECIAL:
            self.place += 1
            return [Param(c, quoted=quoted)]
        if c == "'" and not quoted:
            self.place += 1
            return [Text(self._ansi(), quoted=True)]
        if c == '"' and not quoted and not ends:
            self.place += 1
            return self.double_quoted()
        return [Text("$", quoted=True)]

    def arithmetic(self) -> Word | None:
        """The inside of `((...))`; None if the parentheses are those of commands."""
        depth, inner_end, place = 0, 0, self.place
        while place < len(self.text):
            depth += {"(": 1, ")": -1}.get(self.text[place], 0)
            if depth == 1 and place > self.place and not inner_end:
                inner_end = place
            if depth == 0:
                break
            place += 1
        else:
            raise Unfollowable("there is no closing ))")
        if inner_end != place - 1:
            return None
        inner = self.reader(self.text[self.place + 2 : inner_end])
        self.place = place + 1
        return Word(tuple(inner.double_quoted(end="")))

    def _backquoted(self, *, quoted: bool) -> Substitution:
        self.place += 1
        inner: list[str] = []
        while (c := self.peek()) != "`":
            if not c:
                raise Unfollowable("there is no closing `")
            after = self.text[self.place + 1 : self.place + 2]
            escaped = c == "\\" and after and after in ('$`\\"' if quoted else "$`\\")
            inner.append(after if escaped else c)
            self.place += 2 if escaped else 1
        self.place += 1
        return Substitution(self.reader("".join(inner)).script(""), quoted=quoted)

    def _braced(self, *, quoted: bool) -> Param:
        prefix = ""
        if self.peek() in ("!", "#") and self.text[self.place + 1 : self.place + 2] not in "}:-=+?":
            prefix = self.peek()
            self.place += 1
        name = self.run(NAME.__contains__ if self.peek() in NAME_START else str.isdigit)
        if not name:
            name = self.peek()
            if not name or name not in _SPECIAL:
                raise Unfollowable("${...} names no variable")
            self.place += 1
        index = ""
        if self.peek() == "[":
            self.place += 1
            index = checked_index(self.until("]"))
        op = next((o for o in _OPERATORS if self.at(o)), "")
        self.place += len(op)
        parts: list[Part] = []
        while (c := self.peek()) and c != "}":
            if quoted and c == "'":
                self.place += 1
                parts.append(Text("'", quoted=True))
            else:
                parts += self._part(c, frozenset("}"))
        self.expect("}")
        argument = Word(tuple(parts))
        return Param(name, quoted=quoted, prefix=prefix, index=index, op=op, argument=argument)

    def _ansi(self) -> str:
        """The text of `$'...'`, its escapes undone."""
        told: list[str] = []
        while (c := self.peek()) != "'":
            if not c:
                raise Unfollowable("there is no closing quote")
            self.place += 1
            told.append(self._ansi_escape() if c == "\\" else c)
            if told[-1] and told[-1] in MARKS:
                raise Unfollowable("it holds control characters")
        self.place += 1
        return "".join(told)

    def _ansi_escape(self) -> str:
        c = self.peek()
        self.place += 1
        if c in _HEX_LENGTHS:
            digits = self._digits(_HEX, _HEX_LENGTHS[c])
            return chr(int(digits, 16)) if digits and int(digits, 16) < 0x110000 else ""
        if c in _OCTAL:
            self.place -= 1
            return chr(int(self._digits(_OCTAL, 3), 8) & 0xFF)
        if c == "c":
            self.place += 1
            return chr(ord(self.text[self.place - 1 : self.place] or "@") & 0x1F)
        return _ESCAPES.get(c, f"\\{c}")

    def _digits(self, allowed: frozenset[str], most: int) -> str:
        start = self.place
        while self.place - start < most and self.peek() in allowed:
            self.place += 1
        return self.text[start : self.place]
