"""The streams of each CLI: a voice prints the lines for what a script tells it to do."""

from importlib import import_module
from typing import cast

from ralph.testing.scripted_agent.commandline import Arguments
from ralph.testing.scripted_agent.dialects.plain import Voice
from ralph.testing.scripted_agent.script import ScriptedTurn

# Module and class: only the one that is played is loaded, since every call pays for it.
STREAMS = {
    "claude": ("claude", "Claude"),
    "codex": ("codex", "Codex"),
    "amp": ("amp", "Amp"),
    "gemini": ("gemini", "Gemini"),
    "opencode": ("opencode", "Opencode"),
}
TEXTS = {
    "claude": ("claude", "ClaudeText"),
    "codex": ("plain", "LastWord"),
    "amp": ("plain", "LastWord"),
    "gemini": ("gemini", "GeminiText"),
    "cursor-agent": ("plain", "LastWord"),
}


def voice_for(arguments: Arguments, turn: ScriptedTurn) -> Voice:
    """The voice of a CLI called with these arguments."""
    voices = STREAMS if arguments.streams else TEXTS
    module, name = voices.get(arguments.kind, ("plain", "Voice"))
    found = getattr(import_module(f"ralph.testing.scripted_agent.dialects.{module}"), name)
    return cast("type[Voice]", found)(turn)
