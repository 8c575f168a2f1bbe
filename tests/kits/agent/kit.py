"""The conformance kit: what every agent adapter must do, tried with the scripted agent of its kind.

    python -m kits.agent.kit [--json] [KIND ...]

prints a table. As a library: `CHECKS` are functions of a `Bench`; one raises AssertionError where
the adapter is wrong, and `NotApplicable` where the adapter's row says that its CLI cannot do
this. So the kit needs no list of kinds, and no test runner.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import TextIO

from kits.agent.bench import Bench, NotApplicable, Tells
from ralph.agents.clis import Request
from ralph.agents.kinds import KINDS, split_flags
from ralph.agents.streams.dialects import parser_for
from ralph.kernel.events import Todo, ToolEnd, ToolStart, Usage
from ralph.kernel.turn import Ending, Role
from ralph.kernel.value import value

DONE = "<response>DONE</response>"
LONG = 200_000
USAGE = {"input": 70, "output": 6, "cache_read": 5}


def _arrives(bench: Bench, prompt: str) -> None:
    played = bench.play({"text": "ok"}, prompt)
    assert not played.turn.failed, played.story()
    assert played.prompt == prompt, f"the agent was given {played.prompt[:200]!r}"


def short_prompt(bench: Bench) -> None:
    """A prompt of some words arrives as it is."""
    _arrives(bench, "do it now")


def dashed_prompt(bench: Bench) -> None:
    """A prompt that looks like an option is a prompt."""
    for prompt in ("-x --help", "--", "- a list"):
        _arrives(bench, prompt)


def odd_prompt(bench: Bench) -> None:
    """Quotation marks, newlines, shell characters and any script of the world arrive."""
    _arrives(bench, 'say "it\'s"\n\n\t$(id) `id` \\n %s {} 中文 é 🙂 &&')


def long_prompt(bench: Bench) -> None:
    """200 KB arrive, or are refused with what to do."""
    prompt = "x" * LONG
    refusal = bench.refusal(Request((bench.kind,), prompt))
    if refusal is not None:
        assert str(LONG) in refusal.message, refusal.message
        assert "agent.promptVia" in refusal.remedy, refusal.remedy
        raise NotApplicable("it is refused with what to do: the CLI reads arguments only")
    _arrives(bench, prompt)


def claim_found(bench: Bench) -> None:
    """A claim in the assistant's own words is found, and the turn is a success."""
    played = bench.play({"text": ["I work.", "It is done."], "response": "DONE"})
    assert not played.turn.failed, played.story()
    assert [claim.raw for claim in played.turn.claims] == [DONE], played.story()
    assert played.turn.unknown == 0, played.story()


def claim_in_tool_output(bench: Bench) -> None:
    """A claim that a tool printed is not the assistant's (ADR 3)."""
    tool = {"name": "read_file", "input": {"path": "x"}, "output": DONE}
    played = bench.play({"text": ["I look.", "Not yet."], "tools": [tool]})
    assert not played.turn.failed, played.story()
    assert not played.turn.claims, played.story()


def claim_in_echo(bench: Bench) -> None:
    """A claim in the prompt is not the assistant's, if the CLI repeats the prompt (ADR 3)."""
    turn = {"text": "Not yet.", "echo_prompt": True}
    played = bench.play(turn, f"Work until the tests pass, then say {DONE}")
    assert not played.turn.claims, played.story()
    assert "Not yet." in played.said()


def claim_of_others(bench: Bench) -> None:
    """What a sub-agent or a hook says completes nothing (ADR 3)."""
    played = bench.play({"text": "Not yet.", "subagent_text": DONE, "hook_text": DONE})
    assert not played.turn.claims, played.story()


def tools_counted(bench: Bench) -> None:
    """Tool calls are counted, each start has its end, and a failed one is told apart."""
    bench.needs(Tells.TOOLS)
    good = {"name": "read_file", "input": {"path": "x"}, "output": "fine"}
    bad = {"name": "read_file", "input": {"path": "y"}, "output": "broken", "is_error": True}
    played = bench.play({"text": "ok", "tools": [good, bad]})
    starts = [event.id for event in played.events if isinstance(event, ToolStart)]
    ends = [event.id for event in played.events if isinstance(event, ToolEnd)]
    assert starts == ends, played.story()
    assert (played.turn.tools, played.turn.tool_errors) == (2, 1), played.story()


def todo_shown(bench: Bench) -> None:
    """The agent's own list is shown."""
    bench.needs(Tells.TODO)
    played = bench.play({"text": "ok", "todo": [("Write", "completed"), ("Test", "pending")]})
    lists = [event for event in played.events if isinstance(event, Todo)]
    assert lists, played.story()
    told = [(item.text, item.status.value) for item in lists[-1].items]
    assert told == [("Write", "completed"), ("Test", "pending")], played.story()


def usage_reported(bench: Bench) -> None:
    """Tokens are those the CLI counts, if its row says that it reports any."""
    if not bench.cli.reports:
        raise NotApplicable("it reports neither tokens nor cost")
    turn = bench.play({"text": "ok", "tools": [{"output": "x"}], "usage": USAGE, "cost": 0.25}).turn
    # Whether what is cached counts as input, too, differs between the CLIs.
    expected = Usage(USAGE["input"], USAGE["output"], USAGE["cache_read"])
    inclusive = Usage(USAGE["input"] - USAGE["cache_read"], USAGE["output"], USAGE["cache_read"])
    assert turn.usage in (expected, inclusive), turn.usage


def cost_reported(bench: Bench) -> None:
    """The cost is the CLI's own, if its row says that it reports one; else it has none."""
    turn = bench.play({"text": "ok", "cost": 0.25}).turn
    if bench.cli.reports != "cost":
        assert turn.cost_usd is None, turn.cost_usd
        raise NotApplicable("it reports no cost")
    assert turn.cost_usd == 0.25, turn.cost_usd


def failing_exit(bench: Bench) -> None:
    """A failing exit code is a failed turn, whatever was said (ADR 4)."""
    played = bench.play({"response": "DONE", "exit": 3})
    assert (played.turn.exit_code, played.turn.failed) == (3, True), played.story()


def killed(bench: Bench) -> None:
    """An agent that is killed half-way has a failed turn."""
    turn = {"text": [DONE, "never"], "tools": [{"run": "kill -9 $PPID"}]}
    played = bench.play(turn)
    assert (played.turn.ending, played.turn.failed) == (Ending.EXITED, True), played.story()


def broken_off(bench: Bench) -> None:
    """A stream that stops in the middle is a failed turn, also with exit code 0 (ADR 4)."""
    dialect = bench.cli.launch(Request((bench.kind,), "do it")).dialect
    if not parser_for(dialect).has_result:
        raise NotApplicable("its output has no end of its own")
    played = bench.play({"response": "DONE", "no_result": True})
    assert played.turn.exit_code == 0, played.story()
    assert played.turn.failed, played.story()


def rate_limited(bench: Bench) -> None:
    """A 429 is recognised as a limit (ADR 11)."""
    bench.needs(Tells.STATUS)
    played = bench.play({"error": {"status": 429, "message": "slow down"}})
    assert played.turn.failure is not None, played.story()
    assert played.turn.failure.limited, played.story()


def refused(bench: Bench) -> None:
    """A 401 is recognised as a refused credential (ADR 11)."""
    bench.needs(Tells.STATUS)
    played = bench.play({"error": {"status": 401, "message": "wrong key"}})
    assert played.turn.failure is not None, played.story()
    assert played.turn.failure.refused, played.story()


def words_are_no_failure(bench: Bench) -> None:
    """An agent that talks about limits and keys has none (ADR 11)."""
    said = "I mended the code for 429 Too Many Requests, rate limit reached and 401 Unauthorized."
    played = bench.play({"text": said, "tools": [{"output": "429 rate limit"}], "stderr": said})
    assert played.turn.failure is None, played.story()


def message_is_text(bench: Bench) -> None:
    """A message turn gives the agent's last words, and is not shown (H §SCM Tasks, ADR 8)."""
    played = bench.play({"text": "Add the thing"}, role=Role.MESSAGE)
    assert played.turn.text.strip() == "Add the thing", played.story()
    assert played.events == (), played.story()
    assert played.prompt == "do it", played.prompt
    if not bench.declared.tells:
        return  # its text may be all that it said
    looks = {"text": ["I look.", "Add the thing"], "tools": [{"output": "x"}]}
    said = bench.play(looks, role=Role.MESSAGE).turn.text
    assert said.strip() == "Add the thing", said


def message_is_counted(bench: Bench) -> None:
    """What a message turn costs is told as that of any turn, also if the display shows none."""
    if not bench.cli.reports:
        raise NotApplicable("it reports neither tokens nor cost")
    turn = bench.play({"text": "ok", "cost": 0.25}, role=Role.MESSAGE, stream=False).turn
    assert turn.usage != Usage(), turn
    assert turn.cost_usd == (0.25 if bench.cli.reports == "cost" else None), turn.cost_usd


def message_without_tools(bench: Bench) -> None:
    """A message turn can change nothing, if it is declared that the CLI can be told so."""
    flags = bench.cli.permission_hint.split('"')[1::2]  # what grants everything
    flags = [flag for flag in flags if flag.startswith("-") and "..." not in flag]
    tool = {"name": "shell", "run": "touch written", "output": ""}
    turn = {"text": ["I write.", "Add the thing"], "tools": [tool]}
    granted = split_flags(tuple(flags[:1]))
    played = bench.play(turn, role=Role.MESSAGE, flags=granted, help_text=bench.help)
    assert not played.turn.failed, played.story()
    if not bench.declared.bars_tools:
        raise NotApplicable("nothing that its CLI documents takes the tools away")
    assert not bench.wrote("written"), played.argv


def model_flag(bench: Bench) -> None:
    """The model is an argument of its own, and the prompt still arrives."""
    refusal = bench.refusal(Request((bench.kind,), "do it", model="large"))
    if refusal is not None:
        assert "agent.flags" in refusal.remedy, refusal.remedy
        raise NotApplicable("it is refused with what to do: no model flag is known")
    played = bench.play({"text": "ok"}, model="large")
    assert "large" in played.argv, played.argv
    assert played.prompt == "do it", played.prompt


def flags_kept(bench: Bench) -> None:
    """The user's flags are passed in their order, and the prompt still arrives."""
    flags = ("--one", "--two=2", "--three")
    played = bench.play({"text": "ok"}, flags=flags)
    where = played.argv.index("--one") if "--one" in played.argv else 0
    assert played.argv[where : where + len(flags)] == flags, played.argv
    assert played.prompt == "do it", played.prompt


def no_permission_added(bench: Bench) -> None:
    """Ralph grants nothing by itself beyond H's table (ADR 15)."""
    argv = bench.play({"text": "ok"}).argv
    granted = re.compile(r"--(yolo|auto|force|trust|skip-trust|allow-all.*|.*skip-permissions)$")
    assert not [word for word in argv if granted.match(word)], argv


def denied_named(bench: Bench) -> None:
    """A tool whose permission was denied is named, and there is something to say about it."""
    bench.needs(Tells.DENIED)
    tool = {"name": "write_file", "input": {"file_path": "x"}, "denied": True}
    played = bench.play({"text": ["I write.", "ok"], "tools": [tool]})
    assert played.turn.denied == ("write_file",), played.story()
    assert bench.cli.permission_hint


def noise_survived(bench: Bench) -> None:
    """Lines that nobody understands cost nothing (docs/facts.md §2)."""
    raw = {"base64": "//4AgYIKe30KWzEsMl0KeyJ0eXBlIjoibmV3In0K"}  # bytes, {}, [1,2], a new type
    played = bench.play({"raw": raw, "text": "ok", "response": "DONE"})
    assert not played.turn.failed, played.story()
    assert [claim.raw for claim in played.turn.claims] == [DONE], played.story()


CHECKS: Mapping[str, Callable[[Bench], None]] = {
    check.__name__.replace("_", " "): check
    for check in (
        *(short_prompt, dashed_prompt, odd_prompt, long_prompt),
        *(claim_found, claim_in_tool_output, claim_in_echo, claim_of_others),
        *(tools_counted, todo_shown, usage_reported, cost_reported),
        *(failing_exit, killed, broken_off, rate_limited, refused, words_are_no_failure),
        *(message_is_text, message_is_counted, message_without_tools),
        *(model_flag, flags_kept, no_permission_added, denied_named),
        noise_survived,
    )
}


@value
class Outcome:
    """How one check went: "ok", "n/a" or "FAILED", and why."""

    result: str
    why: str = ""


def try_one(check: Callable[[Bench], None], bench: Bench) -> Outcome:
    """Run a check; whatever it raises is an outcome."""
    try:
        check(bench)
    except NotApplicable as reason:
        return Outcome("n/a", str(reason))
    except Exception as error:  # noqa: BLE001  an adapter that crashes has failed
        return Outcome("FAILED", f"{type(error).__name__}: {error}")
    return Outcome("ok")


def try_all(kind: str, environ: Mapping[str, str]) -> dict[str, Outcome]:
    """Every check of a kind, each on a bench of its own."""
    outcomes = {}
    for name, check in CHECKS.items():
        with tempfile.TemporaryDirectory(prefix="ralph-kit-") as root:
            outcomes[name] = try_one(check, Bench(kind, root, environ))
    return outcomes


def table(found: Mapping[str, Mapping[str, Outcome]]) -> str:
    """A row for each check, a column for each kind, and the reasons below."""
    widths = {kind: max(len(kind), 6) for kind in found}
    rows = ["  ".join([" " * 22, *(f"{kind:{widths[kind]}}" for kind in found)]).rstrip()]
    for name in CHECKS:
        cells = (f"{found[kind][name].result:{widths[kind]}}" for kind in found)
        rows.append("  ".join([f"{name:22}", *cells]).rstrip())
    return "\n".join([*rows, *_reasons(found)])


def _reasons(found: Mapping[str, Mapping[str, Outcome]]) -> list[str]:
    """Why a check does not apply, once; then every failure."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    failures = []
    for kind, outcomes in found.items():
        for name, outcome in outcomes.items():
            if outcome.result == "n/a":
                by_reason.setdefault((name, outcome.why), []).append(kind)
            elif outcome.why:
                failures.append(f"\nFAILED {kind}: {name}\n{outcome.why}")
    told = [f"n/a {name}: {why} ({', '.join(who)})" for (name, why), who in by_reason.items()]
    return ["", *told, *failures] if told or failures else []


def main(arguments: list[str], environ: Mapping[str, str], out: TextIO) -> int:
    """The program: 0 all right, 1 something failed; wrong arguments exit with 2."""
    wanted = _arguments(arguments)
    world = {"PATH": environ.get("PATH", os.defpath)}
    found = {kind: try_all(kind, world) for kind in wanted.kinds or KINDS}
    out.write(f"{_as_json(found) if wanted.json else table(found)}\n")
    failed = any(o.result == "FAILED" for outcomes in found.values() for o in outcomes.values())
    return int(failed)


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m kits.agent.kit",
        description="Check what every agent adapter must do, with scripted agents.",
        epilog="Examples: python -m kits.agent.kit; python -m kits.agent.kit gemini opencode",
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"one of {', '.join(KINDS)}")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    found = parser.parse_args(words)
    if wrong := [kind for kind in found.kinds if kind not in KINDS]:
        parser.error(f"unknown kind: {', '.join(wrong)}. Kinds: {', '.join(KINDS)}")
    return found


def _as_json(found: Mapping[str, Mapping[str, Outcome]]) -> str:
    return json.dumps(
        {
            kind: {name: {"result": o.result, "why": o.why} for name, o in outcomes.items()}
            for kind, outcomes in found.items()
        }
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ, sys.stdout))
