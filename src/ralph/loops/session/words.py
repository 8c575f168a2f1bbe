"""The words of a loop inside one session (P): a person's command, and the agent's instructions.

The text comes as it was typed, through no shell: flags are taken out of it, and the rest is the
task, in its own spelling and spacing.
"""

import re

from ralph.hosts.stop_cap import CAP
from ralph.kernel.claims import find_claims
from ralph.kernel.value import value
from ralph.text.words import counted

SLASH = "RALPH_SLASH"  # `plugin` or `bare`: how the commands are called where a hook runs
POLICIES = ("reject", "warn", "accept")
_NUMBERS = ("--max-iterations", "--min-tool-calls")
_WORDS = ("--completion-promise", "--on-promise-no-work", "--gate")
FLAGS = (*_NUMBERS, *_WORDS, "--ulw")
_MOST_DIGITS = 9
_LONGEST_TOKEN = 1000
_QUOTES = "\"'"
_BLANKS, _WORD = re.compile(r"\s+"), re.compile(r"\S+")
_END_OF_FLAGS = re.compile(r"--(?!\S)")  # whatever follows is the task
_LONG_DASHES = "\N{EM DASH}\N{EN DASH}"  # what some keyboards make of two short ones


@value
class Wish:
    """A loop that somebody asks for."""

    task: str
    promise: str = "DONE"
    max_iterations: int = 50  # 0 is none, which must be asked for
    min_tool_calls: int = 1
    on_promise_no_work: str = "reject"
    gates: tuple[str, ...] = ()
    ulw: bool = False

    @property
    def marker(self) -> str:
        """The promise as the agent must say it, literally."""
        return f"<promise>{self.promise}</promise>"


class UnusableLoop(ValueError):  # noqa: N818  it says what happened
    """There will be no loop; the words say why, and what to type instead."""


def parse(text: str, *, ulw: bool = False) -> Wish:
    """Parse what a person typed after the command. Raises UnusableLoop if that is no loop."""
    task, flags = _Reader(text).read()
    return wished(task, flags, ulw=ulw or "--ulw" in dict(flags))


def wished(task: str, flags: list[tuple[str, str]], *, ulw: bool = False) -> Wish:
    """A wish from a task and flags with their values, in order; the last of a name counts."""
    given = dict(flags)
    if not task.strip():
        raise UnusableLoop(
            'there is no task: type it behind the command, such as "make the tests pass"'
        )
    policy = given.get("--on-promise-no-work", "reject")
    if policy not in POLICIES:
        raise UnusableLoop(f"--on-promise-no-work is {', '.join(POLICIES)}, not {policy!r}")
    gates = tuple(words for name, words in flags if name == "--gate")
    if not all(gate.strip() for gate in gates):
        raise UnusableLoop('--gate needs a command, such as --gate "make test"')
    return Wish(
        task,
        _token(given.get("--completion-promise", "DONE")),
        number("--max-iterations", given.get("--max-iterations", "50")),
        number("--min-tool-calls", given.get("--min-tool-calls", "1")),
        policy,
        gates,
        ulw,
    )


def number(name: str, text: str) -> int:
    """A whole number, 0 or more; leading zeros mean nothing. Raises UnusableLoop for all else."""
    if not (text.isascii() and text.isdigit()):
        raise UnusableLoop(f"{name} is a whole number, 0 or more, not {text!r}")
    if len(text.lstrip("0")) > _MOST_DIGITS:
        raise UnusableLoop(f"{name}: {text[:20]}... is too large")
    return int(text)


def _token(text: str) -> str:
    """Check a promise: it must be one that can be found again as it is."""
    if not text.strip():
        raise UnusableLoop("--completion-promise needs a word, such as DONE")
    marker = f"<promise>{text}</promise>"
    found = [claim.raw for claim in find_claims(marker)]
    if found != [marker] or len(text) > _LONGEST_TOKEN or not text.isprintable():
        raise UnusableLoop(
            "--completion-promise is the word between the tags, such as DONE, in one line "
            f"and without tags, not {text[:80]!r}"
        )
    return text


class _Reader:
    """Takes a text apart into a task and flags."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._flags: list[tuple[str, str]] = []
        self._take(_BLANKS)

    def _take(self, pattern: re.Pattern[str]) -> str:
        begin, found = self._at, pattern.match(self._text, self._at)
        self._at = found.end() if found else begin
        return self._text[begin : self._at]

    def read(self) -> tuple[str, list[tuple[str, str]]]:
        """The task, and the flags with their values."""
        pieces: list[str] = []
        while self._at < len(self._text):
            if not pieces:
                if self._take(_END_OF_FLAGS):
                    return self._text[self._at :].strip(), self._flags
                if (task := self._quoted_task()) is not None:
                    return task, self._flags
            word = self._take(_WORD)
            if _is_flag(word):
                self._flag(word)
            else:
                pieces.append(word + self._take(_BLANKS))
        return "".join(pieces).strip(), self._flags

    def _flag(self, word: str) -> None:
        """Take a flag's value, and the blanks after it."""
        name, equals, _ = word.partition("=")
        if name not in FLAGS:
            raise UnusableLoop(
                f"there is no flag {name}: there is {', '.join(FLAGS)}. "
                f"If {name} belongs to the task, put the whole task in quotes."
            )
        if name == "--ulw" and equals:
            raise UnusableLoop("--ulw takes no value")
        if equals:
            self._at -= len(word) - len(name) - 1  # back to behind the sign
        else:
            self._take(_BLANKS)
        value = self._value(name, equals=bool(equals)) if name != "--ulw" else ""
        self._flags.append((name, value))
        self._take(_BLANKS)

    def _value(self, name: str, *, equals: bool) -> str:
        """A word, or the text in quotes."""
        quote = self._text[self._at : self._at + 1]
        end = self._text.find(quote, self._at + 1) if quote and quote in _QUOTES else -1
        if end >= 0:
            begin, self._at = self._at + 1, end + 1
            return self._text[begin:end]
        if not equals and (not quote or self._text.startswith("--", self._at)):
            raise UnusableLoop(f"{name} needs a value")
        return self._take(_WORD)

    def _quoted_task(self) -> str | None:
        """A task that is in quotes as a whole: nothing but flags stands behind it."""
        begin, count, quote = self._at, len(self._flags), self._text[self._at]
        end = _closing(self._text, begin)
        if end < 0:  # `"a"--max-iterations 3` would lose its limit in the task
            for flag in FLAGS if quote in _QUOTES else ():
                if f"{quote}{flag}" in self._text[begin + 1 :]:
                    raise UnusableLoop(f"put a blank between the task's closing quote and {flag}")
            return None
        self._at = end + 1
        self._take(_BLANKS)
        while self._at < len(self._text):
            word = self._take(_WORD)
            if not _is_flag(word):
                self._at = begin
                del self._flags[count:]
                return None
            self._flag(word)
        return self._text[begin + 1 : end]


def _is_flag(word: str) -> bool:
    """Two dashes and a name: a rule of dashes, or one dash, is the task's."""
    name = word.partition("=")[0]
    if name[:1] and name[0] in _LONG_DASHES and f"--{name.strip(_LONG_DASHES)}" in FLAGS:
        raise UnusableLoop(f"write --{name.strip(_LONG_DASHES)} with two short dashes, not {name}")
    return word.startswith("--") and bool(word.strip("-"))


def _closing(text: str, begin: int) -> int:
    """The end of the quote that opens here, past quotes within quotes; -1 if it has none."""
    quote = text[begin]
    if quote not in _QUOTES:
        return -1
    depth, at = 1, begin
    while (at := text.find(quote, at + 1)) >= 0:
        after = text[at + 1 : at + 2]
        if text[at - 1] == "\\":
            continue
        if not after or after.isspace():
            depth -= 1
        elif text[at - 1].isspace():
            depth += 1
        if not depth:
            return at
    return -1


def spelled(command: str, how: str) -> str:
    """A command as a person types it: in the plugin with its name before it, installed in a project
    without; where nobody knows, both."""
    both = {"plugin": f"/ralph:{command}", "bare": f"/{command}"}
    return both.get(how) or " or ".join(both.values())


def opening(wish: Wish, session: str, slash: str = "") -> str:
    """The message with which a loop begins (P §Prompt contract)."""
    from ralph.loops.session.policy import ULTRAWORK

    lead = f"{ULTRAWORK}\n\n" if wish.ulw else ""
    return f"""{lead}A Ralph loop has begun in this session: {limit_of(wish.max_iterations)}.

Task:
{wish.task}

Strict requirements, do not violate them:
- Stopping rule: only when the task is fully done, output exactly {wish.marker} in a message of \
yours. Whenever you stop without it, you are sent back to this task.
- Strictness: it must match exactly, letter by letter. No extra blanks inside the tag, no other \
case, no variants; in tool calls, their output and files it does not count.
- {_evidence(wish)}
- Safety valve: if the task is not done, do not output the promise, not even to get out of the loop.

{controls(session, slash)}"""


def limit_of(most: int) -> str:
    """The limit of a loop, in words."""
    return f"at most {counted(most, 'iteration')}" if most else "without a limit of iterations"


def _evidence(wish: Wish) -> str:
    least = counted(wish.min_tool_calls, "tool call")
    words = f"Evidence: a promise counts after {least} at least"
    if not wish.min_tool_calls or wish.on_promise_no_work == "accept":
        words = "Evidence: a promise counts also without tool calls"
    elif wish.on_promise_no_work == "warn":
        words = f"Evidence: a promise before {least} is accepted with a warning"
    gates = "".join(f"\n  {gate}" for gate in wish.gates)
    return words + (
        f", and if these commands succeed, which the host runs:{gates}" if gates else "."
    )


def controls(session: str, slash: str = "") -> str:
    """The commands for people about a running loop."""
    cancel, status = spelled("cancel-ralph", slash), spelled("ralph-status", slash)
    return (
        f"For people: {cancel} ends the loop, {status} shows it; from a terminal: "
        f"ralph loop cancel --session {session}. Claude Code lets an agent stop after 8 held "
        f"stops in a row without a tool call; {CAP}=0 in the environment in which it is "
        "started lifts that cap, another number changes it."
    )
