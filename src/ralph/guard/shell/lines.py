"""Reading lines of a shell script: blanks, comments, redirections and here-documents."""

from ralph.guard.shell.nodes import Redirect, Text, Unfollowable, Word
from ralph.guard.shell.words import BLANKS, META, NAME, Words

_REDIRECTS = ("&>>", "<<<", "<<-", "&>", ">>", ">|", ">&", "<<", "<>", "<&", ">", "<")


class Lines(Words):
    """Reads what stands between commands; here-documents are read where their line ends."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.documents: list[tuple[Redirect, str, bool, bool]] = []

    def blanks(self) -> None:
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

    def lines(self) -> None:
        """Step over blanks and the ends of lines, reading here-documents."""
        self.blanks()
        while self.peek() == "\n":
            self.place += 1
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
        quoted = any(isinstance(part, Text) and part.quoted for part in target.parts)
        name = target.literal()
        if name is None:
            raise Unfollowable("a here-document's end is not literal")
        redirect = Redirect("<<", Word(()))
        self.documents.append((redirect, name, quoted, op == "<<-"))
        return redirect

    def _read_documents(self) -> None:
        waiting, self.documents = self.documents, []
        for redirect, end, quoted, tabs in waiting:
            body = self._body(end, tabs=tabs)
            if quoted:
                redirect.target = Word((Text(body, quoted=True),))
            else:
                redirect.target = Word(tuple(self.reader(body).double_quoted(end="")))

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
