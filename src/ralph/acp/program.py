"""One turn with an ACP agent, as a program: a prompt in, the messages of the talk out."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO, NoReturn

import msgspec

from ralph.acp.peer import Peer
from ralph.acp.permission import answer, refused
from ralph.acp.talk import Answer, Json, Talk, Wishes
from ralph.agents.streams.acp import ASIDE, OURS
from ralph.agents.streams.ndjson import mended
from ralph.kernel.value import replace
from ralph.text.plain import one_line

_HANDSHAKE = 60.0  # seconds for each answer before the agent works; up to ten were measured
_CANCEL = 3.0  # seconds to say how it ended, once it is asked to stop
_LEAVE = 0.5  # seconds to exit by itself: some take two, and nothing waits for what they do then
_FOREVER = 3600.0
_MOST_SAID = 300  # characters of what it printed in place of messages
_NO_TOOLS = "this turn is for words: nothing may be changed"
_STOPPED = 130
_ASKS_TO_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> NoReturn:
    """The program: `[--model M] [--no-tools] -- COMMAND...`, with the prompt on standard input."""
    parser = argparse.ArgumentParser(prog="ralph's ACP client", allow_abbrev=False)
    parser.add_argument("--model")
    parser.add_argument("--no-tools", action="store_true")
    parser.add_argument("--handshake", type=float, default=_HANDSHAKE)
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    wishes = Wishes(prompt, os.path.realpath(os.getcwd()), given.model, not given.no_tools)
    out, environ = sys.stdout.buffer, dict(os.environ)
    sys.exit(take_turn(given.command, wishes, environ, out, handshake=given.handshake))


def take_turn(
    command: Sequence[str],
    wishes: Wishes,
    environ: Mapping[str, str],
    out: BinaryIO,
    *,
    handshake: float = _HANDSHAKE,
) -> int:
    """Take a turn with the agent; the exit code. It is 0 wherever the outcome is told, the agent's
    own where that ended before, and 130 where a signal ended the turn."""

    def say(message: object) -> None:
        out.write(msgspec.json.encode(message) + b"\n")
        out.flush()

    def tell(kind: str, **fields: object) -> None:
        say({"method": f"{OURS}{kind}", "params": fields})

    signals = _listen_for_signals()
    try:
        peer = Peer(command, wishes.workspace, environ, signals)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        tell("ended", error={"message": f"agent command {command[0]!r}: {why}"}, unstartable=True)
        return 0
    turn = _Turn(peer, say, tell)
    try:
        # The guard is loaded while the agent starts.
        return turn.take(Talk(wishes, judge_of(wishes, environ), tell), handshake)
    except BrokenPipeError:  # nobody listens any more
        return _STOPPED
    finally:
        peer.close(0.0 if turn.is_hurried else _LEAVE)


def judge_of(wishes: Wishes, environ: Mapping[str, str]) -> Callable[[object, object], Answer]:
    """Answers requests by the guard, if it is on for this run."""
    from ralph.hooks.pre_tool import guarded
    from ralph.own_agent.actions import guard_of

    workspace = wishes.workspace
    guard = guard_of(workspace, environ) if guarded(workspace, environ)[0] else None
    if guard is not None:
        guard("git status")  # so that the first request need not wait for what this loads

    def judge(params: object, call: object) -> Answer:
        began = time.perf_counter()
        if wishes.has_tools:
            found = answer(params, call, workspace, guard)
        else:
            found = refused(params, call, _NO_TOOLS)
        return replace(found, seconds=round(time.perf_counter() - began, 4))

    return judge


class _Turn:
    """A talk on its way between the agent and whoever reads what we print."""

    def __init__(
        self, peer: Peer, say: Callable[[object], None], tell: Callable[..., None]
    ) -> None:
        self._peer, self._say, self._tell = peer, say, tell
        self._printed = ""  # the last that was no message
        self._dropped = 0
        self._stop_at: float | None = None
        self.is_hurried = False

    def take(self, talk: Talk, handshake: float) -> int:
        """Talk until the turn is over, the agent is gone, or a signal ends it."""
        self._send(talk.begin())
        step, due = talk.step, time.monotonic() + handshake
        while talk.outcome is None:
            now = time.monotonic()
            if self._stop_at is not None and now >= self._stop_at:
                return _STOPPED
            if talk.step and now >= due:
                words = f"the agent did not answer {talk.step} within {handshake:g} s"
                self._tell("ended", error={"message": self._doubted(words)})
                return 0
            until = [at for at in (self._stop_at, due if talk.step else None) if at is not None]
            for line in self._peer.listen(min(until, default=now + _FOREVER) - now):
                for message in self._messages(line, talk):
                    self._send(talk.hear(message))
            if self._peer.dropped > self._dropped:
                self._dropped = self._peer.dropped
                self._tell("noise", text="a message that is too long is left out")
            self._heed(talk)
            if talk.step != step:
                step, due = talk.step, time.monotonic() + handshake
            if self._peer.is_over and talk.outcome is None:
                return self._gone(talk)
        self._tell("ended", **talk.outcome)
        return 0 if self._stop_at is None else _STOPPED

    def _messages(self, line: bytes, talk: Talk) -> list[Json]:
        """The messages of a line, one or a batch, which are printed as they were understood:
        nothing that an agent prints can pass for a line of ours."""
        try:
            found = msgspec.json.decode(mended(line))
        except (ValueError, RecursionError):
            found = None
        batch = found if isinstance(found, list) else [found]
        good = [each for each in batch if isinstance(each, dict) and _is_message(each)]
        for message in good:
            self._say(message if talk.is_about(message) else {"method": ASIDE, "params": message})
        if len(good) < len(batch) or not batch:
            self._printed = line[-_MOST_SAID:].decode("utf-8", "replace")
            self._tell("noise", text=self._printed)
        return good

    def _send(self, messages: Sequence[Json]) -> None:
        for message in messages:
            self._peer.send(msgspec.json.encode(message) + b"\n")

    def _heed(self, talk: Talk) -> None:
        """Heed signals: the first INT asks the agent to stop, whatever comes then ends it."""
        # Also the guard's own alarm rings the bell, where a command takes long to follow.
        for number in filter(_ASKS_TO_STOP.__contains__, self._peer.signals()):
            hurry = number != signal.SIGINT or self._stop_at is not None
            self.is_hurried = self.is_hurried or hurry
            if not hurry:
                self._send(talk.cancel())
            self._stop_at = time.monotonic() + (0.0 if hurry else _CANCEL)

    def _gone(self, talk: Talk) -> int:
        """The agent has ended without a word about the turn. Once it worked, its code says it."""
        code = self._peer.ended(_LEAVE)
        if talk.step:
            how = "closed its output" if code is None else f"ended with exit code {code}"
            words = self._doubted(f"the agent {how} before it answered {talk.step}")
            self._tell("ended", error={"message": words})
        return 1 if code is None else code

    def _doubted(self, words: str) -> str:
        printed = one_line(self._printed)
        return f"{words}; it printed: {printed}" if printed else f"{words}: does it speak ACP?"


def _is_message(found: Json) -> bool:
    method = found.get("method")
    if isinstance(method, str):
        return not method.startswith(OURS)
    return "id" in found and method is None


def _listen_for_signals() -> int:
    """A descriptor that has a byte for each signal that comes from now on, and not before: none of
    them ends us at once."""
    read, write = os.pipe()
    for end in (read, write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in _ASKS_TO_STOP:
        signal.signal(number, lambda *_: None)
    return read
