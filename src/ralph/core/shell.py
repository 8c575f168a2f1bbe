"""A shell parser: the text of a command in, its structure out. It runs and expands nothing.

It reads what bash reads, less what hardly anybody writes (`coproc`, `$[...]`, `for ...; { }`).
What it cannot follow is `Unfollowable`, never a guess.
"""

from ralph.core.shell_nodes import (
    Assign,
    Background,
    Block,
    Branch,
    Chain,
    For,
    Function,
    Loop,
    Pipe,
    Redirect,
    Redirected,
    Script,
    Simple,
    Test,
    Text,
    Unfollowable,
    Word,
)
from ralph.core.shell_words import BLANKS, META, NAME, NAME_START, Words, checked_index, is_name

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.core.shell_nodes import Node

DECLARES = frozenset({"declare", "typeset", "local", "export", "readonly", "alias"})
_REDIRECTS = ("&>>", "<<<", "<<-", "&>", ">>", ">|", ">&", "<<", "<>", "<&", ">", "<")
_CLOSERS = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})


def parse(text: str) -> Script:
    """The structure of a script; Unfollowable if there is anything it does not understand."""
    return Commands(text).script("")


class Commands(Words):
    """Reads commands; here-documents are read where their line ends."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.documents: list[tuple[Redirect, str, bool, bool]] = []

    def reader(self, text: str) -> "Commands":
        return Commands(text)

    def script(self, end: str) -> Script:
        """Commands up to the closing mark, which is stepped over; no mark is the end of all."""
        script = self._list()
        if end:
            self._lines()
            self.expect(end)
        elif self.peek():
            raise Unfollowable(f"{self._near()!r} is not expected")
        elif self.documents:
            raise Unfollowable("a here-document has no end")
        return script

    def _near(self) -> str:
        return self.text[self.place : self.place + 12].split("\n")[0]

    def _list(self) -> Script:
        """Commands, until something comes that begins none."""
        items: list[Node] = []
        while True:
            self._lines()
            if not self.peek() or self.peek() in ");&|" or self._reserved() in _CLOSERS:
                return Script(tuple(items))
            node = self._chain()
            self._blanks()
            ends = self.peek() in ("\n", "")
            if self.peek() == "&" and not self.at("&&"):
                node = Background(node)
                self.place += 1
                ends = True
            elif self.peek() == ";" and not self.at(";;") and not self.at(";&"):
                self.place += 1
                ends = True
            items.append(node)
            if not ends:
                return Script(tuple(items))

    def _blanks(self) -> None:
        """Step over blanks, continued lines and a comment."""
        while True:
            self.run(BLANKS.__contains__)
            if self.at("\\\n"):
                self.place += 2
            elif self.peek() == "#" and self.text[self.place - 1 : self.place] in (
                *("", " ", "\t", "\n", ";", "&", "|", "(", ")"),
            ):
                self.run(lambda c: c != "\n")
            else:
                return

    def _lines(self) -> None:
        """Step over blanks and the ends of lines, reading here-documents."""
        self._blanks()
        while self.peek() == "\n":
            self.place += 1
            self._read_documents()
            self._blanks()

    def _reserved(self) -> str:
        """The word that comes next, if it is a plain one."""
        place = self.place
        while place < len(self.text) and self.text[place] not in META:
            place += 1
        return self.text[self.place : place]

    def _chain(self) -> "Node":
        items = [self._pipeline()]
        self._blanks()
        while self.at("&&") or self.at("||"):
            self.place += 2
            self._lines()
            items.append(self._pipeline())
            self._blanks()
        return items[0] if len(items) == 1 else Chain(tuple(items))

    def _pipeline(self) -> "Node":
        while (word := self._reserved()) in ("!", "time"):
            self.place += len(word)
            self._blanks()
            if word == "time" and self._reserved() == "-p":
                self.place += 2
                self._blanks()
        items = [self._command()]
        self._blanks()
        while self.peek() == "|" and not self.at("||"):
            self.place += 2 if self.at("|&") else 1
            self._lines()
            items.append(self._command())
            self._blanks()
        return items[0] if len(items) == 1 else Pipe(tuple(items))

    def _command(self) -> "Node":
        body = self._compound()
        if body is None:
            return self._simple()
        redirects = []
        while (redirect := self._redirect()) is not None:
            redirects.append(redirect)
        return Redirected(body, tuple(redirects)) if redirects else body

    def _compound(self) -> "Node | None":
        """A compound command, or None where a simple one stands."""
        if self.at("(("):
            start = self.place
            inner = self.arithmetic()
            if inner is not None:
                return Test((inner,))
            self.place = start
        if self.peek() == "(":
            self.place += 1
            return Block(self.script(")"), apart=True)
        word = self._reserved()
        reader = _COMPOUNDS.get(word)
        if reader is None:
            return None
        self.place += len(word)
        return reader(self)

    def group(self) -> "Node":
        """`{ ...; }`"""
        body = self._list()
        self._keyword("}")
        return Block(body, apart=False)

    def test(self) -> "Node":
        """`[[ ... ]]`"""
        words: list[Word] = []
        while True:
            self._lines()
            if self._reserved() == "]]":
                self.place += 2
                return Test(tuple(words))
            if self.peek() in ("(", ")", "<", ">", "&", "|"):
                self.place += 1
            elif not self.peek():
                raise Unfollowable("there is no closing ]]")
            else:
                words.append(self.word(stop=frozenset(" \t\n;&)"), pattern=True))
                if self.peek() == ";":
                    raise Unfollowable("; within [[ ]]")

    def conditional(self) -> "Node":
        """`if ...; then ...; elif ...; else ...; fi`"""
        bodies = [self._list()]
        self._keyword("then")
        bodies.append(self._list())
        while self._reserved() in ("elif", "else"):
            is_elif = self._reserved() == "elif"
            self.place += 4
            bodies.append(self._list())
            if is_elif:
                self._keyword("then")
                bodies.append(self._list())
        self._keyword("fi")
        return Branch((), tuple(bodies))

    def loop(self) -> "Node":
        """`while ...; do ...; done`"""
        head = self._list()
        return Loop(head, self._do())

    def _do(self) -> Script:
        self._keyword("do")
        body = self._list()
        self._keyword("done")
        return body

    def each(self) -> "Node":
        """`for name in words; do ...; done`, or `for ((...)); do ...; done`"""
        self._blanks()
        if self.at("(("):
            inner = self.arithmetic()
            if inner is None:
                raise Unfollowable("for (( has no ))")
            self._separator()
            return Loop(Test((inner,)), self._do())
        name = self.run(NAME.__contains__)
        if not is_name(name):
            raise Unfollowable("for without a name")
        self._lines()
        words = self._in() if self._reserved() == "in" else None
        self._separator()
        return For(name, words, self._do())

    def _in(self) -> tuple[Word, ...]:
        self.place += 2
        words = []
        self._blanks()
        while self.peek() not in (";", "\n", ""):
            words.append(self._one_word())
            self._blanks()
        return tuple(words)

    def _one_word(self) -> Word:
        word = self.word()
        if not word.parts:
            raise Unfollowable(f"{self._near()!r} is not expected")
        return word

    def _separator(self) -> None:
        self._blanks()
        if self.peek() == ";":
            self.place += 1
        self._lines()

    def case(self) -> "Node":
        """`case word in pattern) ...;; esac`"""
        self._blanks()
        words, bodies = [self._one_word()], []
        self._lines()
        self._keyword("in")
        self._lines()
        while self._reserved() != "esac":
            if self.peek() == "(":
                self.place += 1
            words += self._patterns()
            bodies.append(self._list())
            self._blanks()
            for mark in (";;&", ";;", ";&"):
                if self.at(mark):
                    self.place += len(mark)
                    break
            else:
                break
            self._lines()
        self._keyword("esac")
        return Branch(tuple(words), tuple(bodies))

    def _patterns(self) -> list[Word]:
        found = []
        while True:
            self._blanks()
            found.append(self.word(stop=META - {"<", ">"}, pattern=False))
            self._blanks()
            if self.peek() == "|":
                self.place += 1
                continue
            self.expect(")")
            return found

    def _keyword(self, word: str) -> None:
        self._lines()
        if self._reserved() != word:
            raise Unfollowable(f"{word} is missing")
        self.place += len(word)

    def function(self) -> "Node":
        """`function name { ...; }`"""
        self._blanks()
        name = self.run(lambda c: c not in META)
        self._blanks()
        if self.at("("):
            self._parentheses()
        return self._function(name)

    def _parentheses(self) -> None:
        self.expect("(")
        self._blanks()
        self.expect(")")

    def _function(self, name: str) -> "Node":
        self._lines()
        body = self._compound()
        if body is None:
            raise Unfollowable(f"the function {name} has no body")
        return Function(name, body)

    def coproc(self) -> "Node":
        """Hardly anybody writes it."""
        raise Unfollowable("coproc is not understood")

    def _simple(self) -> "Node":
        assigns: list[Assign] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self._blanks()
            if (redirect := self._redirect()) is not None:
                redirects.append(redirect)
            elif (assign := self._assign(words)) is not None:
                assigns.append(assign)
            elif self.peek() == "(" and len(words) == 1 and (name := words[0].literal()):
                self._parentheses()
                return self._function(name)
            elif not self.peek() or (self.peek() in META and not self.at_process()):
                break
            else:
                words.append(self._one_word())
        if not (assigns or words or redirects):
            raise Unfollowable(f"{self._near()!r} is not expected")
        return Simple(tuple(assigns), tuple(words), tuple(redirects))

    def _assign(self, words: list[Word]) -> Assign | None:
        """An assignment, where one may stand: first, or after `export` and its like."""
        if words and words[0].literal() not in DECLARES:
            return None
        start, name = self.place, self._assigned_name(any_name=bool(words))
        index = ""
        if name and self.peek() == "[":
            self.place += 1
            index = checked_index(self.until("]")) if "]" in self.text[self.place :] else ""
        adds = self.at("+=")
        if not name or not (adds or self.at("=")):
            self.place = start
            return None
        self.place += 2 if adds else 1
        array = self.peek() == "("
        values = self._array() if array else (self.word(),)
        return Assign(name, values, adds=adds, array=array, index=index)

    def _assigned_name(self, *, any_name: bool) -> str:
        """An alias may be called by many names, a variable by few."""
        if self.peek() in NAME_START:
            return self.run(lambda c: c in NAME or (any_name and c in "-.:"))
        return ""

    def _array(self) -> tuple[Word, ...]:
        self.expect("(")
        words = []
        self._lines()
        while self.peek() != ")":
            words.append(self._one_word())
            self._lines()
        self.place += 1
        return tuple(words)

    def _redirect(self) -> Redirect | None:
        """A redirection, with the descriptor before it."""
        self._blanks()
        start = self.place
        if not self.run(str.isdigit) and self.peek() == "{":
            self.run(lambda c: c in NAME or c in "{}")
        op = next((o for o in _REDIRECTS if self.at(o)), "")
        if not op or self.text.startswith("(", self.place + len(op)):
            self.place = start
            return None
        if start != self.place and op.startswith("&"):
            self.place = start
            return None
        descriptor = self.text[start : self.place]
        self.place += len(op)
        self._blanks()
        target = self._one_word()
        if op not in ("<<", "<<-"):
            return Redirect(op, target, descriptor)
        return self._document(target, tabs=op == "<<-")

    def _document(self, end: Word, *, tabs: bool) -> Redirect:
        quoted = any(isinstance(part, Text) and part.quoted for part in end.parts)
        name = end.literal()
        if name is None:
            raise Unfollowable("a here-document's end is not literal")
        redirect = Redirect("<<", Word(()))
        self.documents.append((redirect, name, quoted, tabs))
        return redirect

    def _read_documents(self) -> None:
        waiting, self.documents = self.documents, []
        for redirect, end, quoted, tabs in waiting:
            body = self._body(end, tabs=tabs)
            if quoted:
                redirect.target = Word((Text(body, quoted=True),))
            else:
                redirect.target = Word(tuple(Commands(body).double_quoted(end="")))

    def _body(self, end: str, *, tabs: bool) -> str:
        lines: list[str] = []
        while self.place < len(self.text):
            found = self.text.find("\n", self.place)
            stop = len(self.text) if found < 0 else found
            line = self.text[self.place : stop]
            self.place = stop if found < 0 else stop + 1
            line = line.lstrip("\t") if tabs else line
            if line == end:
                return "".join(lines)
            lines.append(f"{line}\n")
        raise Unfollowable(f"a here-document has no end {end}")


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
