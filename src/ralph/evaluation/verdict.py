"""The verdict of a trial, by the facts of its run: what the host's check said, and what the agent
claimed. Nothing that an agent says makes a trial pass."""

import json
from collections.abc import Iterable

from ralph.kernel import facts
from ralph.kernel.contracts import CompleteClaim, Contract, ResponseTag
from ralph.kernel.facts import Fact
from ralph.kernel.findings import Finding
from ralph.kernel.rules import describe_failure
from ralph.kernel.state import NEW, RunState, fold
from ralph.kernel.turn import Ending, Turn
from ralph.kernel.value import replace, value
from ralph.kernel.verdict import Reason
from ralph.text.plain import first_line

PASSED, FAILED, ERROR = "passed", "failed", "error"
_NOT_RUN = ("It could not be run:", "(the disk is full)")  # what gates say of the host
_OUTPUT = "Output (truncated):\n"  # what stands before it in a finding
_LONGEST_WORDS = 600
_BY_ITSELF = (Reason.CONFIG, Reason.BUG, Reason.INTERRUPTED)  # ends that are no agent's doing


@value
class Verdict:
    """What became of a trial. An error is nobody's failure: the trial has no result."""

    outcome: str  # passed, failed, error
    why: str = ""
    claimed: bool = False  # the agent said done in a turn that was checked
    false_claim: bool = False  # the check failed when it said so first
    tampered: tuple[str, ...] = ()  # what it changed although it is protected
    iterations: int = 0
    seconds: float = 0.0  # of the agent's turns
    cost_usd: float | None = None  # None: some turn did not tell
    input_tokens: int = 0
    output_tokens: int = 0
    said: str = ""  # the agent's last words
    output: str = ""  # of the check that failed last


@value
class _Tried:
    """A turn, and what the check found after it; None: it did not run."""

    turn: Turn
    found: tuple[Finding, ...] | None = None

    @property
    def passed(self) -> bool:
        return self.found == ()


def verdict_of(told: Iterable[Fact], check: str) -> Verdict:
    """The verdict by the journal of a run with one task, whose gate `check` is the truth."""
    state, tried, tampered, contract = NEW, list[_Tried](), list[str](), _contract(None)
    for fact in told:
        state = fold(state, fact)
        match fact:
            case facts.Started():
                contract = _contract(fact)
            case facts.Ended(turn=turn):
                tried.append(_Tried(turn))
            case facts.Checked(gate=gate) if gate == check and tried:
                tried[-1] = replace(tried[-1], found=fact.findings)
            case facts.Checked(gate="protect"):
                tampered += [first_line(finding.text) for finding in fact.findings]
            case _:
                pass
    found = _with_claim(_judged(state, tried), tried, contract)
    return replace(found, tampered=tuple(dict.fromkeys(tampered)))


def _contract(started: facts.Started | None) -> Contract:
    """The words by which the agent of that run says that it is done."""
    if started is None:
        return ResponseTag()
    if started.profile == "tasks":
        return CompleteClaim()
    word = json.loads(started.settings).get("completionResponse")
    return ResponseTag(word) if isinstance(word, str) else ResponseTag()


def _judged(state: RunState, tried: list[_Tried]) -> Verdict:
    turns = [each.turn for each in tried]
    spent = state.spent
    verdict = Verdict(
        ERROR,
        iterations=spent.iterations,
        seconds=round(sum(turn.seconds for turn in turns), 3),
        cost_usd=None if spent.uncounted or not turns else spent.dollars,
        input_tokens=spent.usage.all_input,
        output_tokens=spent.usage.output,
    )
    if why := _error(state, tried):
        return replace(verdict, why=why)
    last = tried[-1]
    told = replace(verdict, said=_end(last.turn.text), output=_end(_printed(last)))
    if last.passed and not last.turn.failed:
        return replace(told, outcome=PASSED)
    return replace(told, outcome=FAILED, why=_why(last))


def _error(state: RunState, tried: list[_Tried]) -> str:
    """The reason why a trial has no result; "" if it has one."""
    stop = state.stop
    if stop is None:
        return "its run was cut off"
    if stop.reason in _BY_ITSELF or not tried:
        return stop.why or f"its run ended: {stop.reason}"
    last, failure = tried[-1], tried[-1].turn.failure
    if last.turn.ending is Ending.UNSTARTABLE:
        return last.turn.why
    if failure is not None and (failure.refused or failure.passes):
        return f"the agent's provider: {describe_failure(last.turn)}"
    texts = "\n".join(finding.text for finding in last.found or ())
    if any(words in texts for words in _NOT_RUN):
        return f"the check could not be run: {_end(texts)}"
    return ""


def _why(last: _Tried) -> str:
    if last.turn.failed:
        return f"agent: {first_line(describe_failure(last.turn))}"
    if not last.found:
        return "the check did not run"
    finding, printed = last.found[0], _printed(last).splitlines()
    about = f"exit code {finding.code}" if finding.code is not None else first_line(finding.text)
    return f"check: {about}" + (f": {printed[-1]}" if printed else "")


def _printed(last: _Tried) -> str:
    """The output of the check, which a finding holds behind its own words."""
    text = last.found[0].text if last.found else ""
    return text.partition(_OUTPUT)[2].strip()


def _with_claim(verdict: Verdict, tried: list[_Tried], contract: Contract) -> Verdict:
    """The verdict with the first claim, which alone decides. One that the host could not check,
    since the turn was cut off, is neither true nor false."""
    claims = [
        each for each in tried if each.found is not None and contract.met_by(each.turn) is not None
    ]
    if not claims or verdict.outcome == ERROR:
        return verdict
    return replace(verdict, claimed=True, false_claim=not claims[0].passed)


def _end(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONGEST_WORDS else f"…{text[-_LONGEST_WORDS:]}"
