"""The screen of one run."""

from collections.abc import Callable

from textual import events
from textual.app import ComposeResult
from textual.containers import Container, Horizontal
from textual.screen import Screen
from textual.widgets import Input

from ralph.journal.runs import Run
from ralph.text.plain import plain
from ralph.ui.style import Style, Tone
from ralph.watch import controls, draw, keys
from ralph.watch.app.widgets import LogView, Painted
from ralph.watch.controls import Reply
from ralph.watch.follow import RunFollower
from ralph.watch.model import View
from ralph.watch.pager import Pager

PACE = 0.25  # seconds between two drawings
_READ, _BREATHE = 0.08, 0.02  # seconds, while a long log is read
_STAYS = 24  # drawings for which the answer to a key is shown
_WIDE = 120  # columns from which the log stands beside the rest


class RunScreen(Screen[None]):
    """A run above its log; in a wide terminal beside it."""

    CSS = """
    #body { layout: vertical; height: 1fr; }
    #foot { height: 1; }
    #ask { height: 1; display: none; }
    #words { width: auto; }
    #field { height: 1; width: 1fr; border: none; padding: 0; background: ansi_default; }
    RunScreen.wide #body { layout: horizontal; }
    RunScreen.wide #head { width: 42%; height: 1fr; padding-right: 2; }
    RunScreen.asking #ask { display: block; }
    RunScreen.asking #foot { display: none; }
    """
    AUTO_FOCUS = ""

    def __init__(self, run: Run, style: Style, leave: Callable[[], None]) -> None:
        super().__init__()
        self._style, self._leave_run = style, leave
        self.follower = RunFollower(run, style)
        self.pager = Pager(self.follower.lines, style)
        self._frame = self._stays = 0
        self._reply: Reply | None = None
        self._stopping = self._helping = False
        self._on_words: Callable[[str], Reply | None] | None = None
        self.last: View | None = None

    def compose(self) -> ComposeResult:
        with Container(id="body"):
            yield Painted(id="head")
            yield LogView(self.pager, self._style, id="log")
        with Horizontal(id="ask"):
            yield Painted(id="words")
            yield Input(id="field", compact=True, select_on_focus=False)
        yield Painted(id="foot")

    def on_mount(self) -> None:
        self.set_interval(PACE, self.tick)
        self._read_on()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= _WIDE, "wide")
        self.call_after_refresh(self.draw)

    def on_unmount(self) -> None:
        self.follower.close()

    def _read_on(self) -> None:
        """Read a long log in pieces: keys are heard between them."""
        self.follower.read(_READ)
        self.tick()
        if not self.follower.caught_up:
            self.set_timer(_BREATHE, self._read_on)

    def tick(self) -> None:
        """Take in what is new and draw what has changed."""
        if self.follower.caught_up:
            self.follower.read(_READ)
        self._frame += 1
        self._stays = max(0, self._stays - 1)
        self.last = self.follower.view()
        self.draw()

    def draw(self) -> None:
        if self.last is None or not self.size.width:
            return
        head = self.query_one("#head", Painted)
        wide = self.size.width >= _WIDE
        width = head.size.width or self.size.width
        most = self.size.height - 2 if wide else self.size.height // 2
        if self._helping:
            lines = keys.help_lines(self._style)[: self.size.height - 3]
        else:
            lines = draw.head(self.last, self._style, width, most, self._frame, airy=wide)
        head.show(lines)
        self.query_one(LogView).look()
        self.query_one("#foot", Painted).show([self._foot()])

    def _foot(self) -> str:
        width, paint = self.size.width, self._style.paint
        if self._stopping:
            return keys.stop_question(self._style, width)
        if self._reply is not None and self._stays:
            tone = Tone.GOOD if self._reply.ok else Tone.BAD
            return paint(plain(self._reply.words, width), tone)
        return keys.footer(self.last, self._style, width) if self.last else ""

    # ------------------------------------------------------------ keys

    def on_key(self, event: events.Key) -> None:
        key = event.character if event.character and event.is_printable else event.key
        if self._on_words is not None and key != "escape":
            return  # the field's own
        event.stop()
        self._stays = 0
        if self._on_words is not None:
            self._hide_field()
        elif self._stopping:
            self._stopping = False
            if key in keys.STOPS:
                self._say(controls.stop(self.follower.run, now=keys.STOPS[key]))
        elif deed := keys.DEEDS.get(key):
            self._do(deed)
        elif key == "escape":
            self._helping = False
            self.pager.sought = ""
        self.draw()

    def _do(self, deed: str) -> None:
        pager = self.pager
        moves: dict[str, Callable[[], object]] = {
            "up": lambda: pager.scroll(-1),
            "down": lambda: pager.scroll(1),
            "page-up": lambda: pager.page(-1),
            "page-down": lambda: pager.page(1),
            "home": pager.home,
            "end": lambda: setattr(pager, "follows", True),
            "follow": lambda: setattr(pager, "follows", not pager.follows),
            "filter": pager.next_kind,
            "worker": pager.next_task,
            "next": lambda: self._found(pager.sought),
            "previous": lambda: self._found(pager.sought, back=True),
            "help": lambda: setattr(self, "_helping", not self._helping),
            "search": lambda: self._ask("/", self._found),
            "note": lambda: self._ask("Note for the next prompt: ", self._note),
            "answer": self._answer,
            "stop": lambda: setattr(self, "_stopping", True),
            "pause": lambda: self._say(controls.pause(self.follower.run)),
            "list": self._leave_run,
            "leave": lambda: self.app.exit(self.last),
        }
        moves[deed]()

    def _say(self, reply: Reply | None) -> None:
        self._reply, self._stays = reply, _STAYS
        self.follower.look_soon()

    def _found(self, words: str, *, back: bool = False) -> Reply | None:
        if not words:
            self._say(Reply("Nothing was searched for yet: / asks for it", ok=False))
        elif not self.pager.seek(words, back=back):
            self._say(Reply(f"Not found: {plain(words)}", ok=False))
        return None

    def _note(self, words: str) -> Reply:
        return controls.note(self.follower.run, words)

    def _answer(self) -> None:
        asks = self.last.asks if self.last else ()
        if not asks:
            self._say(Reply("No task asks anything", ok=False))
            return
        task = asks[0].task

        def answer(words: str) -> Reply:
            reply = controls.answer(self.follower.run, task, words)
            if reply.ok:
                self.follower.model.answered(task)
            return reply

        self._ask(f"Answer for {plain(task, 30)}: ", answer)

    # ------------------------------------------------------------ a line of text

    def _ask(self, words: str, then: Callable[[str], Reply | None]) -> None:
        self._on_words = then
        label, field = self.query_one("#words", Painted), self.query_one("#field", Input)
        label.styles.width = len(words)
        label.show([self._style.paint(words, Tone.HEAD)])
        field.value = ""
        self.add_class("asking")
        field.focus()

    def _hide_field(self) -> None:
        self._on_words = None
        self.remove_class("asking")
        self.set_focus(None)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        then, words = self._on_words, event.value.strip()
        self._hide_field()
        if then is not None and words and (reply := then(words)) is not None:
            self._say(reply)
        self.draw()
