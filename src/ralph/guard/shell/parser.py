"""A shell parser: the text of a command in, its structure out. It runs and expands nothing.

It reads what bash reads, less what hardly anybody writes (`coproc`, `$[...]`, `for ...; { }`).
What it cannot follow is `Unfollowable`, never a guess.
"""

from ralph.guard.shell import nodes
from ralph.guard.shell.lines import Lines
from ralph.guard.shell.nodes import Script, Unfollowable, Word
from ralph.guard.shell.text import names
from ralph.guard.shell.words import META, NAME, NAME_START, checked_index, is_name

DECLARES = names("declare typeset local export readonly alias")
_CLOSERS = names("then elif else fi do done esac }")


def parse(text: str) -> Script:
    """The structure of a script; Unfollowable if there is anything it does not understand."""
    return Commands(text).script("")


class Commands(Lines):
    """Reads commands."""

    def reader(self, text: str) -> "Commands":
        return Commands(text)

    def script(self, end: str) -> Script:
        """Commands up to the closing mark, which is stepped over; no mark is the end of all."""
        script = self._list()
        if end:
            self.lines()
            self.expect(end)
        elif self.peek():
            raise Unfollowable(f"{self.near()!r} is not expected")
        elif self.documents:
            raise Unfollowable("a here-document has no end")
        return script

    def _list(self) -> Script:
        """Commands, until something comes that begins none."""
        items: list[nodes.Node] = []
        while True:
            self.lines()
            if not self.peek() or self.peek() in ");&|" or self.reserved() in _CLOSERS:
                return Script(tuple(items))
            items.append(self._chain())
            self.blanks()
            if self.peek() == "&" and not self.at("&&"):
                items[-1] = nodes.Background(items[-1])
                self.place += 1
            elif self.peek() == ";" and not self.at(";;") and not self.at(";&"):
                self.place += 1
            elif self.peek() not in ("\n", ""):
                return Script(tuple(items))

    def _chain(self) -> "nodes.Node":
        items = [self._pipeline()]
        self.blanks()
        while self.at("&&") or self.at("||"):
            self.place += 2
            self.lines()
            items.append(self._pipeline())
            self.blanks()
        return items[0] if len(items) == 1 else nodes.Chain(tuple(items))

    def _pipeline(self) -> "nodes.Node":
        while (word := self.reserved()) in ("!", "time"):
            self.place += len(word)
            self.blanks()
            if word == "time" and self.reserved() == "-p":
                self.place += 2
                self.blanks()
        items = [self._command()]
        self.blanks()
        while self.peek() == "|" and not self.at("||"):
            self.place += 2 if self.at("|&") else 1
            self.lines()
            while self.reserved() == "!":
                self.place += 1
                self.blanks()
            items.append(self._command())
            self.blanks()
        return items[0] if len(items) == 1 else nodes.Pipe(tuple(items))

    def _command(self) -> "nodes.Node":
        body = self._compound()
        if body is None:
            return self._simple()
        redirects = []
        while (redirect := self.redirect()) is not None:
            redirects.append(redirect)
        return nodes.Redirected(body, tuple(redirects)) if redirects else body

    def _compound(self) -> "nodes.Node | None":
        """A compound command, or None where a simple one stands."""
        if self.at("(("):
            start = self.place
            inner = self.arithmetic()
            if inner is not None:
                return nodes.Test((inner,))
            self.place = start
        if self.peek() == "(":
            self.place += 1
            return nodes.Block(self.script(")"), apart=True)
        word = self.reserved()
        reader = _COMPOUNDS.get(word)
        if reader is None:
            return None
        self.place += len(word)
        return reader(self)

    def group(self) -> "nodes.Node":
        """`{ ...; }`"""
        body = self._list()
        self._keyword("}")
        return nodes.Block(body, apart=False)

    def test(self) -> "nodes.Node":
        """`[[ ... ]]`"""
        words: list[Word] = []
        while True:
            self.lines()
            if self.reserved() == "]]":
                self.place += 2
                return nodes.Test(tuple(words))
            if self.peek() in ("(", ")", "<", ">", "&", "|"):
                self.place += 1
            elif not self.peek():
                raise Unfollowable("there is no closing ]]")
            else:
                words.append(self.word(stop=frozenset(" \t\n;&)"), pattern=True))
                if self.peek() == ";":
                    raise Unfollowable("; within [[ ]]")

    def conditional(self) -> "nodes.Node":
        """`if ...; then ...; elif ...; else ...; fi`"""
        bodies = [self._list()]
        self._keyword("then")
        bodies.append(self._list())
        while self.reserved() in ("elif", "else"):
            is_elif = self.reserved() == "elif"
            self.place += 4
            bodies.append(self._list())
            if is_elif:
                self._keyword("then")
                bodies.append(self._list())
        self._keyword("fi")
        return nodes.Branch((), tuple(bodies))

    def loop(self) -> "nodes.Node":
        """`while ...; do ...; done`"""
        return nodes.Loop(self._list(), self._do())

    def _do(self) -> Script:
        self._keyword("do")
        body = self._list()
        self._keyword("done")
        return body

    def each(self) -> "nodes.Node":
        """`for name in words; do ...; done`, or `for ((...)); do ...; done`"""
        self.blanks()
        if self.at("(("):
            inner = self.arithmetic()
            if inner is None:
                raise Unfollowable("for (( has no ))")
            self._separator()
            return nodes.Loop(nodes.Test((inner,)), self._do())
        name = self.run(NAME.__contains__)
        if not is_name(name):
            raise Unfollowable("for without a name")
        self.lines()
        words: list[Word] | None = None
        if self.reserved() == "in":
            self.place += 2
            self.blanks()
            words = []
            while self.peek() not in (";", "\n", ""):
                words.append(self.one_word())
                self.blanks()
        self._separator()
        return nodes.For(name, None if words is None else tuple(words), self._do())

    def _separator(self) -> None:
        self.blanks()
        self.place += self.peek() == ";"
        self.lines()

    def case(self) -> "nodes.Node":
        """`case word in pattern) ...;; esac`"""
        self.blanks()
        words, bodies = [self.one_word()], []
        self.lines()
        self._keyword("in")
        self.lines()
        while self.reserved() != "esac":
            self.place += self.peek() == "("
            words.append(self._pattern())
            while self.peek() == "|":
                self.place += 1
                words.append(self._pattern())
            self.expect(")")
            bodies.append(self._list())
            self.blanks()
            for mark in (";;&", ";;", ";&"):
                if self.at(mark):
                    self.place += len(mark)
                    break
            else:
                break
            self.lines()
        self._keyword("esac")
        return nodes.Branch(tuple(words), tuple(bodies))

    def _pattern(self) -> Word:
        self.blanks()
        word = self.word(stop=META - {"<", ">"})
        self.blanks()
        return word

    def _keyword(self, word: str) -> None:
        self.lines()
        if self.reserved() != word:
            raise Unfollowable(f"{word} is missing")
        self.place += len(word)

    def function(self) -> "nodes.Node":
        """`function name { ...; }`"""
        self.blanks()
        name = self.run(lambda c: c not in META)
        self.blanks()
        if self.at("("):
            self._parentheses()
        return self._function(name)

    def _parentheses(self) -> None:
        self.expect("(")
        self.blanks()
        self.expect(")")

    def _function(self, name: str) -> "nodes.Node":
        self.lines()
        body = self._compound()
        if body is None:
            raise Unfollowable(f"the function {name} has no body")
        return nodes.Function(name, body)

    def coproc(self) -> "nodes.Node":
        """Hardly anybody writes it."""
        raise Unfollowable("coproc is not understood")

    def _simple(self) -> "nodes.Node":
        assigns: list[nodes.Assign] = []
        words: list[Word] = []
        redirects: list[nodes.Redirect] = []
        while True:
            self.blanks()
            if (redirect := self.redirect()) is not None:
                redirects.append(redirect)
            elif (assign := self._assign(words)) is not None:
                assigns.append(assign)
            elif self.peek() == "(" and len(words) == 1 and (name := words[0].literal()):
                self._parentheses()
                return self._function(name)
            elif not self.peek() or (self.peek() in META and not self.at_process()):
                break
            else:
                words.append(self.one_word())
        if not (assigns or words or redirects):
            raise Unfollowable(f"{self.near()!r} is not expected")
        return nodes.Simple(tuple(assigns), tuple(words), tuple(redirects))

    def _assign(self, words: list[Word]) -> nodes.Assign | None:
        """An assignment, where one may stand: first, or after `export` and its like."""
        if words and words[0].literal() not in DECLARES:
            return None
        start, name, index = self.place, "", ""
        if self.peek() in NAME_START:  # an alias may be called by many names, a variable by few
            name = self.run(lambda c: c in NAME or (bool(words) and c in "-.:"))
        if name and self.peek() == "[":
            self.place += 1
            index = checked_index(self.until("]")) if "]" in self.text[self.place :] else ""
        adds = self.at("+=")
        if not name or not (adds or self.at("=")):
            self.place = start
            return None
        self.place += 2 if adds else 1
        array = self.peek() == "("
        values = [] if array else [self.word()]
        if array:
            self.expect("(")
            self.lines()
            while self.peek() != ")":
                values.append(self.one_word())
                self.lines()
            self.place += 1
        return nodes.Assign(name, tuple(values), adds=adds, array=array, index=index)


_COMPOUNDS = {
    "{": Commands.group,
    "[[": Commands.test,
    "if": Commands.conditional,
    "while": Commands.loop,
    "until": Commands.loop,
    "for": Commands.each,
    "select": Commands.each,
    "case": Commands.case,
    "function": Commands.function,
    "coproc": Commands.coproc,
}
