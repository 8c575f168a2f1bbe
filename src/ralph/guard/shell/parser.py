"""A shell parser: the text of a command in, its structure out. It runs and expands nothing.

It reads what bash reads, less what hardly anybody writes (`coproc`, `$[...]`, `for ...; { }`).
What it cannot follow is `Unfollowable`, never a guess.
"""

from ralph.guard.shell import nodes
from ralph.guard.shell.nodes import Literal, Node, Redirect, Script, Unfollowable, Word
from ralph.guard.shell.text import names
from ralph.guard.shell.words import BLANKS, META, NAME, NAME_START, Words, checked_index, is_name

DECLARES = names("declare typeset local export readonly alias")
_CLOSERS = names("then elif else fi do done esac }")
_REDIRECTS = ("&>>", "<<<", "<<-", "&>", ">>", ">|", ">&", "<<", "<>", "<&", ">", "<")


def parse(text: str) -> Script:
    """The structure of a script; Unfollowable if there is anything it does not understand."""
    return Commands(text).script("")


class Commands(Words):
    """Reads commands. Here-documents are read where their line ends."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.documents: list[tuple[Redirect, str, bool, bool]] = []

    def blanks(self) -> None:
        """Step over blanks, continued lines and a comment."""
        self.run(BLANKS.__contains__)
        while self.take("\\\n"):
            self.run(BLANKS.__contains__)
        if self.peek() == "#" and self.text[self.place - 1 : self.place] in " \t\n;&|()":
            self.run(lambda c: c != "\n")

    def lines(self) -> None:
        """Step over blanks and the ends of lines, reading here-documents."""
        self.blanks()
        while self.take("\n"):
            self._read_documents()
            self.blanks()

    def reserved(self) -> str:
        """The word that comes next, if it is a plain one."""
        place = self.place
        while place < len(self.text) and self.text[place] not in META:
            place += 1
        return self.text[self.place : place]

    def near(self) -> str:
        return self.text[self.place : self.place + 12].split("\n")[0]

    def one_word(self) -> Word:
        word = self.word()
        if not word.parts:
            raise Unfollowable(f"{self.near()!r} is not expected")
        return word

    def redirect(self) -> Redirect | None:
        """A redirection, with the descriptor before it."""
        self.blanks()
        start = self.place
        if not self.run(str.isdigit) and self.peek() == "{":
            self.run(lambda c: c in NAME or c in "{}")
        op = next((o for o in _REDIRECTS if self.at(o)), "")
        process = self.text.startswith("(", self.place + len(op))
        if not op or process or (start != self.place and op.startswith("&")):
            self.place = start
            return None
        descriptor = self.text[start : self.place]
        self.place += len(op)
        self.blanks()
        target = self.one_word()
        if op not in ("<<", "<<-"):
            return Redirect(op, target, descriptor)
        quoted = any(isinstance(part, Literal) and part.quoted for part in target.parts)
        name = target.literal()
        if name is None:
            raise Unfollowable("a here-document's end is not literal")
        redirect = Redirect("<<", Word(()))
        self.documents.append((redirect, name, quoted, op == "<<-"))
        return redirect

    def _read_documents(self) -> None:
        waiting, self.documents = self.documents, []
        for redirect, end, quoted, tabs in waiting:
            lines: list[str] = []
            while not lines or lines[-1] != end:
                if self.place >= len(self.text):
                    raise Unfollowable(f"a here-document has no end {end}")
                stop = self.text.find("\n", self.place)
                line = self.text[self.place :] if stop < 0 else self.text[self.place : stop]
                self.place += len(line) + (stop >= 0)
                lines.append(line.lstrip("\t") if tabs else line)
            body = "".join(f"{line}\n" for line in lines[:-1])
            expanded = [] if quoted else Commands(body).double_quoted(end="")
            redirect.target = Word((Literal(body, quoted=True),) if quoted else tuple(expanded))

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
        items: list[Node] = []
        while True:
            self.lines()
            if not self.peek() or self.peek() in ");&|" or self.reserved() in _CLOSERS:
                return Script(tuple(items))
            items.append(self._chain())
            self.blanks()
            if not self.at("&&") and self.take("&"):
                items[-1] = nodes.Enclosed(items[-1], apart=True, background=True)
            elif self.peek() == ";" and not self.at(";;") and not self.at(";&"):
                self.place += 1
            elif self.peek() not in ("\n", ""):
                return Script(tuple(items))

    def _chain(self) -> Node:
        items = [self._pipeline()]
        self.blanks()
        while self.take("&&") or self.take("||"):
            self.lines()
            items.append(self._pipeline())
            self.blanks()
        return items[0] if len(items) == 1 else nodes.Chain(tuple(items))

    def _pipeline(self) -> Node:
        while (word := self.reserved()) in ("!", "time"):
            self.place += len(word)
            self.blanks()
            if word == "time" and self.reserved() == "-p":
                self.place += 2
                self.blanks()
        items = [self._command()]
        self.blanks()
        while not self.at("||") and (self.take("|&") or self.take("|")):
            self.lines()
            while self.reserved() == "!":
                self.place += 1
                self.blanks()
            items.append(self._command())
            self.blanks()
        return items[0] if len(items) == 1 else nodes.Pipe(tuple(items))

    def _command(self) -> Node:
        body = self._compound()
        if body is None:
            return self._simple()
        redirects = tuple(iter(self.redirect, None))
        return nodes.Enclosed(body, redirects=redirects) if redirects else body

    def _compound(self) -> Node | None:
        """A compound command, or None where a simple one stands."""
        if self.at("((") and (inner := self.arithmetic()) is not None:
            return nodes.Test((inner,))
        if self.take("("):
            return nodes.Enclosed(self.script(")"), apart=True)
        word = self.reserved()
        if word == "coproc":
            raise Unfollowable("coproc is not understood")
        reader = _COMPOUNDS.get(word)
        if reader is None:
            return None
        self.place += len(word)
        return reader(self)

    def group(self) -> Node:
        """`{ ...; }`"""
        body = self._list()
        self._keyword("}")
        return nodes.Enclosed(body)

    def test(self) -> Node:
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

    def conditional(self) -> Node:
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

    def loop(self) -> Node:
        """`while ...; do ...; done`"""
        return nodes.While(self._list(), self._do())

    def _do(self) -> Script:
        self._keyword("do")
        body = self._list()
        self._keyword("done")
        return body

    def each(self) -> Node:
        """`for name in words; do ...; done`, or `for ((...)); do ...; done`"""
        self.blanks()
        if self.at("(("):
            inner = self.arithmetic()
            if inner is None:
                raise Unfollowable("for (( has no ))")
            self._separator()
            return nodes.While(nodes.Test((inner,)), self._do())
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
        self.take(";")
        self.lines()

    def case(self) -> Node:
        """`case word in pattern) ...;; esac`"""
        self.blanks()
        words, bodies = [self.one_word()], []
        self.lines()
        self._keyword("in")
        self.lines()
        while self.reserved() != "esac":
            self.take("(")
            while True:
                self.blanks()
                words.append(self.word(stop=META - {"<", ">"}))
                self.blanks()
                if not self.take("|"):
                    break
            self.expect(")")
            bodies.append(self._list())
            self.blanks()
            if not any(map(self.take, (";;&", ";;", ";&"))):
                break
            self.lines()
        self._keyword("esac")
        return nodes.Branch(tuple(words), tuple(bodies))

    def _keyword(self, word: str) -> None:
        self.lines()
        if self.reserved() != word:
            raise Unfollowable(f"{word} is missing")
        self.place += len(word)

    def function(self) -> Node:
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

    def _function(self, name: str) -> Node:
        self.lines()
        body = self._compound()
        if body is None:
            raise Unfollowable(f"the function {name} has no body")
        return nodes.Function(name, body)

    def _simple(self) -> Node:
        assigns: list[nodes.Assign] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
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
        if name and self.take("["):
            index = checked_index(self.until("]")) if "]" in self.text[self.place :] else ""
        adds = self.at("+=")
        if not name or not (adds or self.at("=")):
            self.place = start
            return None
        self.place += 2 if adds else 1
        array = self.take("(")
        values = [] if array else [self.word()]
        if array:
            self.lines()
            while not self.take(")"):
                values.append(self.one_word())
                self.lines()
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
}
