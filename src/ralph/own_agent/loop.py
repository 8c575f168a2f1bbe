"""The loop of Ralph's own agent: ask the model, do what it wants, until it wants nothing more."""

import time
from collections.abc import Callable

from ralph.kernel.claims import find_claims
from ralph.kernel.events import Usage
from ralph.own_agent import words
from ralph.own_agent.actions import TOOLS, Hands
from ralph.own_agent.service import Retry, Service
from ralph.own_agent.talk import Answer, Answers, Call, Entry, Reply, Talk, Tool, Trouble, Words
from ralph.own_agent.window import Window, summed_up, to_sum_up, without_old_outputs

Tell = Callable[..., None]  # tell("text", text="...") prints an event
_LONGEST_NAME = 100  # of an action that a model made up
_MOST_CUT = 3  # answers in a row that were longer than an answer may be


class Agent:
    """Works on one prompt. Everything that happens is told as it happens."""

    def __init__(
        self,
        service: Service,
        hands: Hands,
        tell: Tell,
        *,
        system: str,
        window: Window,
        longest: int | None = None,
        most_steps: int,
        has_tools: bool = True,
        session: str = "",
    ) -> None:
        self._service, self._hands, self._tell = service, hands, tell
        self._system, self._window, self._longest = system, window, longest
        self._most_steps = most_steps
        self._tools = TOOLS if has_tools else ()
        self._session = session
        self._talk: tuple[Entry, ...] = ()
        self._calls = 0
        self.usage = Usage()
        self.steps = 0

    def work(self, prompt: str) -> str:
        """Work until the model has nothing more to do; its last words. Trouble ends it."""
        self._talk = (Words(prompt),)
        cut, asked, claimed = 0, False, False
        while self.steps < self._most_steps:
            self.steps += 1
            reply = self._ask()
            self._talk += (reply,)
            claimed = claimed or bool(find_claims(reply.text))
            cut = cut + 1 if reply.is_cut else 0
            if cut == _MOST_CUT:
                return reply.text
            calls = reply.calls if self._tools else ()
            if calls:
                self._talk += (Answers(tuple(map(self._act, calls))),)
            if cut:
                self._talk += (Words(words.GO_ON),)
            if calls or cut:
                continue
            if not self._tools or not words.asks(reply.text) or claimed:
                return reply.text
            if asked:  # it cannot do without an answer
                self._tell("question", text=words.question(reply.text))
                return reply.text
            asked = True
            self._talk += (Words(words.NOBODY_ANSWERS),)
        self._tell("progress", text=f"{self._most_steps} steps are used up (--max-steps)")
        return ""

    def _ask(self) -> Reply:
        """The model's next answer. A talk that has become too long is shortened before."""
        if len(self._talk) > 1 and self._window.is_full(self._talk):
            self._shorten()
        try:
            reply = self._request(self._talk, self._tools)
        except Trouble as trouble:
            if not trouble.is_overlong or len(self._talk) < 2:
                raise
            self._shorten(by_force=True)
            reply = self._request(self._talk, self._tools)
        self._window = self._window.counted(self._talk, reply.usage.all_input)
        if reply.refusal is not None:
            raise Trouble(f"the model refused: {reply.refusal or 'it did not say why'}", 400)
        for thought in reply.thoughts:
            self._tell("thinking", text=thought)
        for text in reply.words:
            self._tell("text", text=text)
        return reply

    def _request(self, entries: tuple[Entry, ...], tools: tuple[Tool, ...]) -> Reply:
        talk = Talk(self._system, entries, tools, self._longest, self._session)
        reply = self._service.ask(talk, self._on_retry)
        self.usage += reply.usage
        self._tell("used", usage=usage_told(reply.usage))
        return reply

    def _on_retry(self, retry: Retry) -> None:
        told = {"attempt": retry.attempt, "of": retry.of, "seconds": retry.seconds}
        self._tell("retry", **told, why=retry.why)

    def _shorten(self, *, by_force: bool = False) -> None:
        """Cut old outputs; where that is not enough, have the model sum up and begin anew."""
        shorter = without_old_outputs(self._window, self._talk)
        if by_force or self._window.is_still_long(shorter):
            told = f"{words.SUM_UP}\n\n{to_sum_up(self._window, shorter)}"
            summary = self._request((Words(told),), ()).text
            shorter = summed_up(self._talk, summary)
            self._tell("progress", text="the talk was summed up: it was too long for the model")
        else:
            self._tell("progress", text="old outputs were cut: the talk was too long")
        self._talk = shorter

    def _act(self, call: Call) -> Answer:
        self._calls += 1
        name = f"a{self._calls}"
        self._tell("action", id=name, action=call.name[:_LONGEST_NAME], input=call.input or {})
        began = time.monotonic()
        answer = self._hands.act(call)
        refused = {"refused": True} if answer.is_refused else {}
        self._tell(
            "action_result",
            id=name,
            output=answer.output,
            is_error=answer.is_error,
            exit_code=answer.code,
            seconds=round(time.monotonic() - began, 3),
            **refused,
        )
        return answer


def usage_told(usage: Usage) -> dict[str, int]:
    """Tokens as a line of the stream has them."""
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    }
