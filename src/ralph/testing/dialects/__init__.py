"""How each CLI speaks: a voice gives the lines to print for whatever a script tells it to do."""

from ralph.testing.commandline import Arguments
from ralph.testing.dialects.amp import Amp
from ralph.testing.dialects.claude import Claude, ClaudeText
from ralph.testing.dialects.codex import Codex
from ralph.testing.dialects.plain import LastWord, Voice
from ralph.testing.script import Turn

STREAMS: dict[str, type[Voice]] = {"claude": Claude, "codex": Codex, "amp": Amp}
TEXTS: dict[str, type[Voice]] = {"claude": ClaudeText, "codex": LastWord, "amp": LastWord}


def voice_for(arguments: Arguments, turn: Turn) -> Voice:
    """The voice of a CLI called with these arguments."""
    voices = STREAMS if arguments.streams else TEXTS
    return voices.get(arguments.kind, Voice)(turn)
