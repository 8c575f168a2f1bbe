"""Plain text: every word is the assistant's, except a verbatim echo of the prompt (ADR 3)."""

import re
from typing import ClassVar

from ralph.agents.streams.framing import Framer
from ralph.kernel.events import AgentEvent, Speaker, Text

_TAG = re.compile(r"<(?:response|promise|result)>", re.IGNORECASE)
_UNMISTAKABLE = 40  # nobody says so many characters of a prompt by chance
_HEAD = 64  # enough of a prompt to find where an echo may begin

# CSI, OSC, the shorter sequences, and an ESC that begins nothing. None of them contains a
# newline, so whole lines hold whole escapes.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]*[0-~])?")


class TextParser:
    """Understands plain text. Lines come out whole, each with its newline. Echoes of the prompt are
    told apart, unless it is short and shows no completion tag: such an echo is harmless, and a
    short prompt must not eat the agent's words."""

    has_result: ClassVar[bool] = False

    def __init__(self, prompt: str = "") -> None:
        # As the output will be decoded: a prompt may hold bytes that never were UTF-8.
        seen = _decoded(prompt.encode("utf-8", "surrogateescape")).strip()
        self._prompt = seen if _TAG.search(seen) or len(seen) >= _UNMISTAKABLE else ""
        self.lines = Framer()
        self._held = ""  # whole lines in which an echo may have begun

    def feed(self, chunk: bytes) -> list[AgentEvent]:
        """The text of whole lines in one event, unless the prompt is echoed in it."""
        events, text = self._split(self._held + _decoded(self.lines.feed(chunk)))
        begin = text.rfind("\n", 0, self._possible_echo(text)) + 1
        self._held = text[begin:]
        return events + _said(text[:begin])

    def end(self) -> list[AgentEvent]:
        """The last line, and what might have become an echo but did not."""
        events, text = self._split(self._held + _decoded(self.lines.rest()))
        self._held = ""
        return events + _said(text)

    def _split(self, text: str) -> tuple[list[AgentEvent], str]:
        """The events up to the end of the last echo, and the text after it."""
        *before, rest = text.split(self._prompt) if self._prompt else (text,)
        echo = Text(self._prompt, Speaker.PROMPT)
        return [event for piece in before for event in (*_said(piece), echo)], rest

    def _possible_echo(self, text: str) -> int:
        """The place from which the text may be the beginning of an echo; else its length."""
        first = max(0, len(text) - len(self._prompt) + 1)
        begin = text.find(self._prompt[:_HEAD], first)
        while begin != -1:
            if self._prompt.startswith(text[begin:]):
                return begin
            begin = text.find(self._prompt[:_HEAD], begin + 1)
        short = range(max(first, len(text) - _HEAD + 1), len(text))
        return next((i for i in short if self._prompt.startswith(text[i:])), len(text))


def _said(text: str) -> list[AgentEvent]:
    return [Text(text)] if text else []


def _decoded(lines: bytes) -> str:
    text = lines.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    return text.replace("\r\n", "\n").replace("\0", "\ufffd")
