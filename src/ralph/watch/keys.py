"""The keys of a watched run, for both front ends and for their help."""

from ralph.kernel.value import value
from ralph.text.plain import columns
from ralph.ui.style import Style, Tone
from ralph.watch.model import View


@value
class Key:
    """Keys that do the same, and the words for it; those of `short` ones stand at the bottom."""

    keys: tuple[str, ...]
    deed: str
    words: str
    short: str = ""
    shown: str = ""  # the key, where its name is not what people call it

    @property
    def name(self) -> str:
        return self.shown or self.keys[0]


KEYS = (
    Key(("q",), "leave", "Leave; the run goes on as it is", "leave"),
    Key(("?",), "help", "Show or hide this help", "help"),
    Key(("p",), "pause", "Pause before the next turn, or go on", "pause"),
    Key(("s",), "stop", "Stop the run: asks how", "stop"),
    Key(("m",), "note", "Write a note for the next prompt", "note"),
    Key(("a",), "answer", "Answer the question of a task", "answer"),
    Key(("/",), "search", "Search the log", "search"),
    Key(("n",), "next", "Find the next place"),
    Key(("N",), "previous", "Find the place before"),
    Key(("v",), "filter", "Show all lines, or the agent's, Ralph's, problems", "filter"),
    Key(("w",), "worker", "Show the lines of one worker, of the next, of all"),
    Key(("f",), "follow", "Follow the end of the log, or stay here", "follow"),
    Key(("up", "k"), "up", "Go up a line", shown="Up k"),
    Key(("down", "j"), "down", "Go down a line", shown="Down j"),
    Key(("pageup", "b"), "page-up", "Go up a page", shown="PgUp b"),
    Key(("pagedown", " ", "space"), "page-down", "Go down a page", shown="PgDn Space"),
    Key(("home", "g"), "home", "Go to the beginning", shown="Home g"),
    Key(("end", "G"), "end", "Go to the end, and follow it", shown="End G"),
    Key(("l",), "list", "List the runs of this machine", "list"),
)
DEEDS = {key: each.deed for each in KEYS for key in each.keys}
STEERING = ("pause", "stop", "note")  # of a run that lives
STOPS = {"f": False, "n": True}  # what is asked after s: now?
_STOP = "Stop this run?  f finish the turn first   n now   c cancel"
PLAIN = ("leave", "pause", "stop")  # what the plain redraw knows too


def stop_question(style: Style, width: int) -> str:
    """The second step before a run is stopped."""
    return style.paint(_STOP[:width], Tone.NOTICE)


def footer(view: View, style: Style, width: int, *, of_all: bool = True) -> str:
    """The keys that people need most, as many as fit, and none that can do nothing now."""
    text, used = "", 0
    for key in KEYS:
        idle = key.deed in STEERING and not view.report.live
        idle = idle or (key.deed == "answer" and not view.asks)
        if idle or not key.short or not (of_all or key.deed in PLAIN):
            continue
        size = columns(f" {key.name} {key.short} ")
        if used + size > width:
            break
        text += f" {style.paint(key.name, Tone.HEAD)} {style.paint(key.short, Tone.FAINT)} "
        used += size
    return text


def help_lines(style: Style) -> list[str]:
    width = max(columns(key.name) for key in KEYS)
    rows = [f"  {style.paint(f'{key.name:<{width}}', Tone.HEAD)}  {key.words}" for key in KEYS]
    return ["", *rows, "", "  Nothing here changes the run, but p, s, m and a."]
