"""Reads shell words: quotes, expansions, substitutions. `parser` reads commands with it."""

import re
from collections.abc import Callable

from ralph.guard.shell import nodes
from ralph.guard.shell.nodes import Literal, Param, Part, Substitution, Unfollowable, Word
from ralph.guard.shell.text import ANY, MARKS

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
_HEX = "[0-9a-fA-F]"
_NUMBER = rf"x{_HEX}{{0,2}}|u{_HEX}{{0,4}}|U{_HEX}{{0,8}}"
_ANSI, _PRINTED = rf"\\([0-7]{{1,3}}|{_NUMBER}|c.?|.)", rf"\\([0-7]{{1,4}}|{_NUMBER}|[^c])"


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

    def script(self, _end: str) -> nodes.Script:
        """The commands up to the closing mark; `parser.Commands` knows how."""
        raise NotImplementedError

    def at(self, what: str) -> bool:
        return self.text.startswith(what, self.place)

    def peek(self) -> str:
        """The next character, or nothing at the end."""
        return self.text[self.place : self.place + 1]

    def take(self, what: str) -> bool:
        """Step over what comes next, if it is this."""
        found = self.at(what)
        self.place += len(what) if found else 0
        return found

    def expect(self, what: str) -> None:
        """Step over what has to come next."""
        if not self.take(what):
            raise Unfollowable(f"{what!r} is missing")

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
            if pattern and self.take("("):
                inner = self.word(stop=frozenset(")"), pattern=True)
                self.expect(")")
                parts += [Literal("(", quoted=True), *inner.parts, Literal(")", quoted=True)]
            else:
                parts += self._part(c, stop)
        return Word(tuple(parts))

    def at_process(self) -> bool:
        return self.at("<(") or self.at(">(")

    def _part(self, c: str, stop: frozenset[str]) -> list[Part]:
        """The parts that begin with this character, outside quotes."""
        if c == "\\":
            c = self.text[self.place + 1 : self.place + 2]
            self.place += 2
            if not c:
                raise Unfollowable("it ends with a backslash")
            return [] if c == "\n" else [Literal(c, quoted=True)]
        if self.take("'"):
            return [Literal(self.until("'"), quoted=True)]
        if self.take('"'):
            return self.double_quoted()
        if self.take("$"):
            return self._dollar()
        if c == "`":
            return [self._backquoted(quoted=False)]
        if self.at_process():
            self.place += 2
            return [nodes.Process(self.script(")"), reads=c == ">")]
        if c in "<>(":
            self.place += 1
            return [Literal(c, quoted=True)]
        return [Literal(self.run(lambda c: c not in stop and c not in "\\'\"$`<>("), quoted=False)]

    def double_quoted(self, end: str = '"') -> list[Part]:
        """Text with expansions, up to the closing mark; with no mark up to the end of all."""
        parts: list[Part] = [Literal("", quoted=True)]
        while (c := self.peek()) and not (end and self.at(end)):
            if c == "\\":
                c = self.text[self.place + 1 : self.place + 2]
                self.place += 2
                kept = c if c and c in f"$`\\{end}" else f"\\{c}"
                parts.append(Literal("" if c == "\n" else kept, quoted=True))
            elif self.take("$"):
                parts += self._dollar(quoted=True, ends=end)
            elif c == "`":
                parts.append(self._backquoted(quoted=True))
            else:
                plain = self.run(lambda c: c not in '\\$`"' or (c == '"' and end != '"'))
                parts.append(Literal(plain, quoted=True))
        if end and not self.take(end):
            raise Unfollowable("there is no closing quote")
        return parts

    def _dollar(self, *, quoted: bool = False, ends: str = "") -> list[Part]:
        """The parts behind a `$`; a lone one is itself."""
        c = self.peek()
        if self.at("((") and (inner := self.arithmetic()) is not None:
            return [nodes.Arithmetic(inner, quoted=quoted)]
        if self.take("("):
            return [Substitution(self.script(")"), quoted=quoted)]
        if self.take("{"):
            return [self._braced(quoted=quoted)]
        if c == "[":
            raise Unfollowable("$[...] is not understood: write $((...))")
        if c and c in NAME_START:
            return [Param(self.run(NAME.__contains__), quoted=quoted)]
        if c and c in _SPECIAL:
            self.place += 1
            return [Param(c, quoted=quoted)]
        if not quoted and self.take("'"):
            return [Literal(self._ansi(), quoted=True)]
        if not quoted and not ends and self.take('"'):
            return self.double_quoted()
        return [Literal("$", quoted=True)]

    def arithmetic(self) -> Word | None:
        """The inside of `((...))`; None if the parentheses are those of commands."""
        depth = inner_end = 0
        for place in range(self.place, len(self.text)):
            depth += {"(": 1, ")": -1}.get(self.text[place], 0)
            if depth == 1 and place > self.place and not inner_end:
                inner_end = place
            if depth == 0:
                break
        else:
            raise Unfollowable("there is no closing ))")
        if inner_end != place - 1:
            return None
        inner = type(self)(self.text[self.place + 2 : inner_end])
        self.place = place + 1
        return Word(tuple(inner.double_quoted(end="")))

    def _backquoted(self, *, quoted: bool) -> Substitution:
        found = re.compile(r"`((?:[^`\\]|\\.)*+)`", re.DOTALL).match(self.text, self.place)
        if found is None:
            raise Unfollowable("there is no closing `")
        self.place = found.end()
        inner = re.sub(r'\\([$`\\"])' if quoted else r"\\([$`\\])", r"\1", found[1])
        return Substitution(type(self)(inner).script(""), quoted=quoted)

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
        index = checked_index(self.until("]")) if self.take("[") else ""
        op = next((o for o in _OPERATORS if self.at(o)), "")
        self.place += len(op)
        parts: list[Part] = []
        while (c := self.peek()) and c != "}":
            if quoted and self.take("'"):
                parts.append(Literal("'", quoted=True))
            else:
                parts += self._part(c, frozenset("}"))
        self.expect("}")
        argument = Word(tuple(parts))
        return Param(name, quoted=quoted, prefix=prefix, index=index, op=op, argument=argument)

    def _ansi(self) -> str:
        """The text of `$'...'`, its escapes undone."""
        found = re.compile(r"((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.text, self.place)
        if found is None:
            raise Unfollowable("there is no closing quote")
        self.place = found.end()
        text = re.sub(_ANSI, _unescaped, found[1], flags=re.DOTALL)
        if any(mark in text for mark in MARKS):
            raise Unfollowable("it holds control characters")
        return text


def _unescaped(match: "re.Match[str]") -> str:
    """The character that an escape of `$'...'` stands for."""
    escape = match[1]
    if escape[0] in "01234567":
        return chr(int(escape, 8) & 0xFF)
    if escape[0] in "xuU" and escape[1:]:
        return chr(int(escape[1:], 16)) if int(escape[1:], 16) < 0x110000 else ""
    if escape[0] == "c":
        return chr(ord(escape[1:] or "@") & 0x1F)
    return _ESCAPES.get(escape, match[0])


def printed(text: str) -> str:
    """The text as `echo -e` and `printf` print it; ANY where that is a mark of ours."""

    def shown(match: "re.Match[str]") -> str:
        text = _unescaped(match)
        return ANY if text and text in MARKS else text

    return re.sub(_PRINTED, shown, text, flags=re.DOTALL) if "\\" in text else text
