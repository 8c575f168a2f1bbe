"""Every agent passes the conformance kit, and the kit sees through an adapter that is wrong."""

import io
import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kits.agent.bench import Bench, Declared, NotApplicable, Tells
from kits.agent.kit import CHECKS, Outcome, main, table, try_one
from kits.thorough import dealt
from ralph.agents.clis import CLIS, Cli, Launch, Request
from ralph.agents.kinds import KINDS

WORLD = {"PATH": os.environ["PATH"]}


NO_STREAM = {
    *("tools counted", "todo shown", "usage reported", "cost reported", "broken off"),
    *("rate limited", "refused", "denied named", "message is counted"),
}
TOOLS_STAY = "message without tools"
NOT_APPLICABLE = {  # so that nothing stops to apply unseen; a new agent may wait for its line
    "claude": set(),
    "codex": {"cost reported", "denied named"},
    "amp": {"cost reported", "denied named", "rate limited", "refused", "model flag", TOOLS_STAY},
    "gemini": {"cost reported"},
    "opencode": set(),
    "copilot": NO_STREAM,
    "cursor-agent": NO_STREAM | {"long prompt", TOOLS_STAY},
    "goose": NO_STREAM,
    "ralph-agent": {"todo shown", "cost reported", "denied named"},
    "text": NO_STREAM | {"long prompt", "model flag", TOOLS_STAY},
}


@pytest.mark.parametrize(("kind", "check"), dealt(product(KINDS, CHECKS), 90))
def test_every_agent_does_what_an_agent_must(tmp_path: Path, kind: str, check: str) -> None:
    known = NOT_APPLICABLE.get(kind)
    if known is None:
        expected: AbstractContextManager[object] = suppress(NotApplicable)
    else:
        expected = pytest.raises(NotApplicable) if check in known else nullcontext()
    with expected:
        CHECKS[check](Bench(kind, str(tmp_path), WORLD))


def changed(kind: str, launch: Callable[[Launch, Request], Launch], **more: Any) -> Cli:  # noqa: ANN401  any of its fields
    """A CLI that is a little wrong."""
    right = CLIS[kind]
    return replace(right, call=lambda request: launch(right.call(request), request), **more)


def as_it_is(launch: Launch, _request: Request) -> Launch:
    return launch


def by_argument(launch: Launch, request: Request) -> Launch:
    return replace(launch, argv=(*launch.argv, request.prompt), stdin=None)


def as_text(launch: Launch, _request: Request) -> Launch:
    return replace(launch, dialect="text")


def without_flags(launch: Launch, request: Request) -> Launch:
    return replace(launch, argv=tuple(w for w in launch.argv if w not in request.flags))


def with_tools(launch: Launch, request: Request) -> Launch:
    return replace(launch, argv=("gemini", *request.flags, *launch.argv[3:]))


def granted(launch: Launch, _request: Request) -> Launch:
    return replace(launch, argv=(launch.argv[0], "--yolo", *launch.argv[1:]))


@pytest.mark.parametrize(
    ("check", "kind", "wrong"),
    [
        ("odd prompt", "opencode", changed("opencode", by_argument)),
        ("dashed prompt", "opencode", changed("opencode", by_argument)),
        ("long prompt", "opencode", changed("opencode", by_argument)),
        ("claim in tool output", "claude", changed("claude", as_text)),
        ("tools counted", "gemini", changed("gemini", as_text)),
        ("rate limited", "codex", changed("codex", as_text)),
        ("flags kept", "gemini", changed("gemini", without_flags)),
        ("no permission added", "gemini", changed("gemini", granted)),
        ("todo shown", "text", Declared(frozenset(Tells))),
        ("cost reported", "codex", changed("codex", as_it_is, reports="cost")),
        ("cost reported", "claude", changed("claude", as_it_is, reports="tokens")),
        ("denied named", "opencode", changed("opencode", as_it_is, permission_hint="")),
        ("message is counted", "claude", changed("claude", as_text)),
        ("message without tools", "gemini", changed("gemini", with_tools)),
        ("message without tools", "text", Declared(bars_tools=True)),
    ],
)
def test_what_is_wrong_is_found(
    tmp_path: Path, check: str, kind: str, wrong: Cli | Declared
) -> None:
    bench = Bench(kind, str(tmp_path), WORLD)
    if isinstance(wrong, Declared):
        bench.declared = wrong
    else:
        bench.cli = wrong
    assert try_one(CHECKS[check], bench).result == "FAILED"


def test_a_check_that_does_not_apply_says_why(tmp_path: Path) -> None:
    found = try_one(CHECKS["todo shown"], Bench("text", str(tmp_path), WORLD))
    assert found == Outcome("n/a", "its output does not tell: todo")


def test_the_program_prints_what_it_found() -> None:
    out = io.StringIO()
    assert main(["--json", "text"], WORLD, out) == 0
    found = json.loads(out.getvalue())
    assert list(found) == ["text"]
    assert found["text"]["claim found"] == {"result": "ok", "why": ""}
    assert {o["result"] for o in found["text"].values()} == {"ok", "n/a"}


def test_the_table_names_failures_and_what_does_not_apply() -> None:
    good = dict.fromkeys(CHECKS, Outcome("ok"))
    found = {
        "one": {**good, "todo shown": Outcome("n/a", "no list")},
        "two": {**good, "todo shown": Outcome("n/a", "no list"), "killed": Outcome("FAILED", "so")},
    }
    head, *rows = table(found).splitlines()
    assert head.split() == ["one", "two"]
    assert "killed                  ok      FAILED" in rows
    assert "n/a todo shown: no list (one, two)" in rows
    assert rows[-2:] == ["FAILED two: killed", "so"]
    assert len(table({"one": good}).splitlines()) == len(CHECKS) + 1


def test_an_unknown_kind_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["nosuch"], WORLD, io.StringIO())
    assert caught.value.code == 2
    assert "unknown kind: nosuch. Kinds: claude, codex" in capsys.readouterr().err
