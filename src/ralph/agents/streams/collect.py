"""From events to a turn: counts, claims and the last words; memory stays flat."""

from collections.abc import Iterable

from ralph.kernel import events
from ralph.kernel.claims import Claim, ClaimScanner, find_claims
from ralph.kernel.turn import Ending, Turn
from ralph.kernel.value import replace

_KEEP_OVERHEARD = 8
_KEEP_PERMISSIONS = 50
# Tools that write files, by the names that the known CLIs have for them, in lower case.
_WRITERS = frozenset(
    {"write", "edit", "multiedit", "notebookedit", "write_file", "replace", "patch", "apply_patch"}
    | {"create_file", "edit_file", "str_replace_based_edit_tool"}
)
_SERVERS = "mcp__"  # what a tool of somebody's server does, nobody knows


class Tail:
    """The last characters of a long text."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._pieces: list[str] = []
        self._kept = 0  # characters in the pieces

    @property
    def text(self) -> str:
        return "".join(self._pieces)[-self._size :]

    def add(self, piece: str) -> None:
        self._pieces.append(piece)
        self._kept += len(piece)
        if self._kept > 2 * self._size:  # else each piece would copy all of it
            self._pieces = [self.text]
            self._kept = self._size


class Collector:
    """Takes events one by one; `turn()` is what they amount to."""

    def __init__(self) -> None:
        self._scanner = ClaimScanner()
        self._tail = Tail(64 * 1024)
        self._newline_due = False
        self._overheard: list[Claim] = []
        self._stray = Tail(4096)
        self._writing: set[str] = set()  # calls that may write, by id
        self._wrote = False
        self._tools = self._tool_errors = self._unknown = 0
        self._question: str | None = None
        self._permissions: list[events.Permission] = []
        self._asked = 0
        self._limited: events.RateLimited | None = None
        self._used = events.Used()
        self.result: events.Result | None = None
        self.finished = False  # the result was the last word so far: an agent may go on after one

    def add(self, some: Iterable[events.AgentEvent]) -> None:
        for event in some:
            self._take(event)

    def turn(self, *, has_result: bool) -> Turn:
        """The turn so far. Where the dialect has a final result, its absence is a failure."""
        result, limited = self.result, self._limited
        failure = result.failure if result else None
        if result is None and has_result and limited:
            failure = events.Failure(limited.why, 429, resets_at=limited.resets_at)
        elif result is None and has_result:
            failure = events.Failure("the stream ended without a final result")
        is_hopeless = result is not None and result.unstartable
        return Turn(
            ending=Ending.UNSTARTABLE if is_hopeless else Ending.EXITED,
            why=failure.message if is_hopeless and failure else "",
            failure=failure,
            claims=self._scanner.claims(),
            overheard=tuple(self._overheard),
            question=self._question,
            text=self._tail.text,
            tools=self._tools,
            tool_errors=self._tool_errors,
            wrote=self._wrote,
            stray="" if result else self._stray.text,
            unknown=self._unknown,
            denied=result.denied if result else (),
            permissions=tuple(self._permissions),
            asked=self._asked,
            cost_usd=self.used.cost_usd,
            usage=self.used.usage,
        )

    @property
    def used(self) -> events.Used:
        """Tokens and cost of the turn so far: by its result, else by the steps that told."""
        if self.result is None:
            return self._used
        usage, cost = self.result.usage, _not_negative(self.result.cost_usd)
        return events.Used(
            self._used.usage if usage == events.Usage() else usage,
            self._used.cost_usd if cost is None else cost,
        )

    def _take(self, event: events.AgentEvent) -> None:
        match event:  # the most frequent first
            case events.ToolStart():
                self.finished = False
                self._tools += 1
                self._question = None
                tool = event.name.lower()
                writes = tool in _WRITERS or tool.startswith(_SERVERS)
                self._writing.update({event.id} if writes else ())
            case events.ToolEnd(output=output, is_error=is_error):
                self._tool_errors += is_error
                self._wrote |= event.id in self._writing and not is_error
                self._writing.discard(event.id)
                self._overhear(output)
            case events.Text(text=text, speaker=events.Speaker.ASSISTANT):
                self._said(text)
            case events.Text(text=text) | events.Thinking(text=text):
                # In a prompt Ralph itself names the tag.
                self._overhear("" if event == events.Text(text, events.Speaker.PROMPT) else text)
            case events.Question() | events.RateLimited() | events.Permission():
                self._told(event)
            case events.Used():
                self._used += replace(event, cost_usd=_not_negative(event.cost_usd))
            case events.Result():
                self.result, self.finished = event, True
            case events.Unknown(raw=raw):
                self._unknown += 1
                self._stray.add("" if raw.lstrip().startswith("{") else f"{raw}\n")

    def _said(self, text: str) -> None:
        """Assistant text: blocks are joined by newlines (a tag may span lines)."""
        if not text:
            return
        self.finished = False
        joined = f"\n{text}" if self._newline_due else text
        self._newline_due = not text.endswith("\n")
        self._tail.add(joined)
        if self._scanner.feed(joined):
            self._question = None  # it asked, went on all the same, and says where it stands

    def _told(self, event: events.Question | events.RateLimited | events.Permission) -> None:
        if isinstance(event, events.Question):
            self._question = event.text
        elif isinstance(event, events.RateLimited):
            self._limited = event
        else:
            self._answered(event)

    def _answered(self, event: events.Permission) -> None:
        """Keep an answer. A turn is small: what was refused matters more."""
        self._asked += 1
        kept = self._permissions
        if len(kept) == _KEEP_PERMISSIONS:
            allowed = next((i for i, one in enumerate(kept) if one.allowed), None)
            if event.allowed or allowed is None:
                return
            del kept[allowed]
        kept.append(event)

    def _overhear(self, text: str) -> None:
        room = _KEEP_OVERHEARD - len(self._overheard)
        if room > 0:
            self._overheard.extend(find_claims(text)[:room])


def _not_negative(cost: float | None) -> float | None:
    """Nobody is paid for working: a negative cost would buy more turns."""
    return None if cost is None else max(0.0, cost)
