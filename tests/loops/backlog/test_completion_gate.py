"""What a task itself names as its proof (B §Completion Detection)."""

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ralph.gates.guardrail import GatePlace
from ralph.kernel.case import Case
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits, Spent
from ralph.kernel.state import RunState
from ralph.kernel.tasks.completion import Completion, parse
from ralph.kernel.tasks.task import Assignment, Backlog, Task
from ralph.kernel.turn import Turn
from ralph.kernel.verdict import Boundary
from ralph.kernel.world import Signals
from ralph.loops.backlog.gates import scripts
from ralph.loops.backlog.gates.completion import (
    CompletionCheck,
    claimed_evidence,
    evidence_file,
    kept_evidence,
)


def closing(limits: Limits = Limits(), seconds: float = 0.0) -> Case:
    task = Task("T-1", check="something holds", limits=limits)
    state = RunState(
        iteration=3, assignment=Assignment("T-1"), turn=Turn(), spent=Spent(seconds=seconds)
    )
    return Case(Boundary.CLOSING, state, 0.0, backlog=Backlog((task,)))


def gate(
    tmp_path: Path, rule: Mapping[str, Any], terms: Mapping[str, Any] = {}, **env: str
) -> CompletionCheck:
    workspace, store = tmp_path / "project", tmp_path / "run"
    workspace.mkdir(exist_ok=True)
    store.mkdir(exist_ok=True)
    known = {"PATH": os.environ["PATH"], **env}
    place = GatePlace(str(workspace), str(store), known, 5000, Signals)
    parsed: Completion = parse(rule, "T-1")
    return CompletionCheck(place, lambda _: parsed, str(store), **terms)


def checked(
    check: CompletionCheck, case: Case | None = None
) -> tuple[list[Finding], dict[str, Any]]:
    found = list(check.check(case or closing()))
    evidence = kept_evidence(check.store, 3, "T-1")
    assert evidence is not None
    return found, evidence


def test_a_command_that_exits_with_0_is_proof(tmp_path: Path) -> None:
    """ "Evidence (command, exit code, output hash, tree hash) is stored on the task"."""
    rule = {"type": "test_passing", "command": "echo $RALPH_TASK_ID; echo err >&2"}
    found, evidence = checked(gate(tmp_path, rule))
    assert found == []
    assert {**evidence, "outputSha256": ""} == {
        "kind": "test_passing",
        "command": "echo $RALPH_TASK_ID; echo err >&2",
        "exitCode": 0,
        "outputSha256": "",
    }
    both = {hashlib.sha256(out).hexdigest() for out in (b"T-1\nerr\n", b"err\nT-1\n")}
    assert evidence["outputSha256"] in both


def test_a_command_that_fails_is_told_to_the_agent(tmp_path: Path) -> None:
    rule = {"type": "test_passing", "command": "echo 1 test failed; exit 3"}
    (finding,), evidence = checked(gate(tmp_path, rule))
    assert (finding.gate, finding.code, evidence["exitCode"]) == ("completion", 3, 3)
    assert "exited with code 3" in finding.text
    assert finding.text.endswith("1 test failed\n")
    assert finding.log == ".ralph/completion_003.log"
    assert (tmp_path / "project" / finding.log).read_bytes() == b"1 test failed\n"


def test_grep_names_the_tests_of_the_task(tmp_path: Path) -> None:
    """B: `npm test -- --grep "RALPH-001"`."""
    terms = {"test_command": "echo npm test -- --grep"}
    for rule, grep in (({"grep": "a b; exit 1"}, "'a b; exit 1'"), ({}, "T-1")):
        found, evidence = checked(gate(tmp_path, {"type": "test_passing", **rule}, terms))
        assert found == []
        assert evidence["command"] == f"echo npm test -- --grep {grep}"


@pytest.mark.parametrize(
    ("terms", "case", "why"),
    [
        ({"timeout": 0.2}, closing(), "timed out after 0.2s"),
        ({}, closing(Limits(seconds=0.2)), "the task's time is used up"),
        (
            {"limits": Limits(seconds=5.0)},
            closing(seconds=4.9),
            "the task's time is used up",
        ),
    ],
)
def test_a_check_that_hangs_is_ended(
    tmp_path: Path, terms: Mapping[str, Any], case: Case, why: str
) -> None:
    """ "Completion checks run under what is left of the task's time"; "a check that hangs"."""
    rule = {"type": "test_passing", "command": "echo begun; sleep 600"}
    (finding,), evidence = checked(gate(tmp_path, rule, terms), case)
    assert f"exited with code 124 ({why})" in finding.text
    assert evidence["exitCode"] == 124


def test_a_rule_may_have_a_timeout_of_its_own(tmp_path: Path) -> None:
    rule = {"type": "test_passing", "command": "sleep 600", "timeout": 0.1}
    (finding,), _ = checked(gate(tmp_path, rule))
    assert "timed out after 0.1s" in finding.text


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"x", None), (b"", None), (None, "is not there (No such file or directory)")],
)
def test_a_file_must_be_there_and_may_be_empty(
    tmp_path: Path, content: bytes | None, problem: str | None
) -> None:
    """B §Artifact Exists; the issue: "`file_exists` accepts directories and empty files"."""
    check = gate(tmp_path, {"type": "file_exists", "path": "out/it.txt"})
    (tmp_path / "project" / "out").mkdir()
    if content is not None:
        (tmp_path / "project" / "out" / "it.txt").write_bytes(content)
    found, evidence = checked(check)
    assert [f.text for f in found] == (
        [f"Not complete yet: out/it.txt {problem}."] if problem else []
    )
    assert evidence["exitCode"] == (1 if problem else 0)
    assert evidence["outputSha256"] == hashlib.sha256(content or b"").hexdigest()


def test_a_directory_is_there_too_a_pipe_and_a_link_that_leads_out_are_not(tmp_path: Path) -> None:
    """The issue: "`file_exists` accepts directories and empty files"."""
    check = gate(tmp_path, {"type": "file_exists", "path": "it"})
    path = tmp_path / "project" / "it"
    path.mkdir()
    (path / "a").touch()
    found, evidence = checked(check)
    assert (found, evidence["artifacts"]) == ([], ["it"])
    assert evidence["outputSha256"] == hashlib.sha256(b"a").hexdigest()
    (path / "a").unlink()
    path.rmdir()
    os.mkfifo(path)
    assert "is neither a file nor a directory" in checked(check)[0][0].text
    path.unlink()
    path.symlink_to(sys.executable)
    assert "leads out of the project" in checked(check)[0][0].text


SCRIPTS = [
    ("check.py", "import os; print(os.environ['RALPH_TASK_ID'] + '.txt')\nprint(' b.txt ')", 0o644),
    ("check.sh", "echo $RALPH_TASK_ID.txt; echo b.txt; echo noise >&2", 0o644),
    ("check", "#!/bin/sh\necho $RALPH_TASK_ID.txt; echo; echo b.txt", 0o755),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "mode"), SCRIPTS, ids=[name for name, _, _ in SCRIPTS])
def test_a_script_of_any_language_validates(
    tmp_path: Path, name: str, text: str, mode: int
) -> None:
    """ "Python and TypeScript by extension; `RALPH_TASK_ID` set; stdout lines are artifacts"."""
    check = gate(tmp_path, {"type": "validate", "script": f"./{name}"})
    script = tmp_path / "project" / name
    script.write_text(text)
    script.chmod(mode)
    found, evidence = checked(check)
    assert found == []
    assert evidence["artifacts"] == ["T-1.txt", "b.txt"]


def test_typescript_goes_to_the_projects_own_runner_first(tmp_path: Path) -> None:
    check = gate(tmp_path, {"type": "validate", "script": "check.ts"})
    (tmp_path / "project" / "check.ts").write_text("let answer: number = 42\n")
    runner = tmp_path / "project" / "node_modules" / ".bin" / "tsx"
    runner.parent.mkdir(parents=True)
    runner.write_text('#!/bin/sh\necho "ran $(basename "$1")"\n')
    runner.chmod(0o755)
    assert checked(check)[1]["artifacts"] == ["ran check.ts"]


@pytest.mark.parametrize(
    ("answer", "reads"),
    [
        ("echo v22.6.0", True),
        ("echo v22.5.9", False),
        ("printf '\\377'", False),
        ("exec /bin/sleep 600", False),
    ],
)
def test_node_is_asked_what_it_can_and_never_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, *, reads: bool
) -> None:
    """ "TypeScript by extension": newer ones want to be told that they may read it, older ones
    cannot."""
    monkeypatch.setattr(scripts, "_MOMENT", 0.5)
    node = tmp_path / "bin" / "node"
    node.parent.mkdir()
    node.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then {answer}\nfi\n')
    node.chmod(0o755)
    check = gate(tmp_path, {"type": "validate", "script": "check.ts"}, PATH=str(node.parent))
    (tmp_path / "project" / "check.ts").touch()
    found, evidence = checked(check)
    if reads:
        flags = "--experimental-strip-types --no-warnings"
        assert (found, evidence["command"]) == ([], f"node {flags} check.ts")
    else:
        assert "nothing to run check.ts with is installed: tsx, ts-node" in found[0].text
        assert "node 22.6 or later" in found[0].text


@pytest.mark.parametrize(
    ("name", "mode", "words"),
    [
        ("gone.py", None, "the script gone.py cannot be run: No such file"),
        ("check.xyz", 0o644, "is not executable (chmod +x check.xyz)"),
    ],
)
def test_a_script_that_cannot_run_says_why(
    tmp_path: Path, name: str, mode: int | None, words: str
) -> None:
    check = gate(tmp_path, {"type": "validate", "script": name})
    if mode is not None:
        (tmp_path / "project" / name).touch(mode)
    (finding,), evidence = checked(check)
    assert words in finding.text
    assert evidence["exitCode"] == 127


def test_without_an_interpreter_it_says_which(tmp_path: Path) -> None:
    check = gate(tmp_path, {"type": "validate", "script": "check.py"}, PATH=str(tmp_path))
    (tmp_path / "project" / "check.py").touch()
    assert (
        "nothing to run check.py with is installed: python3, python." in checked(check)[0][0].text
    )


UNCHECKED = replace(closing(), backlog=Backlog((Task("T-1"),)))


def named(tmp_path: Path, command: str, *changed: str) -> CompletionCheck:
    """The gate of a project whose tests are run by that command; so much has changed."""
    terms = {"tests_of": lambda task: f"{command} {task}", "changed": lambda _state, _tree: changed}
    return gate(tmp_path, {"type": "explicit"}, terms)


def test_tests_named_after_a_task_are_its_proof(tmp_path: Path) -> None:
    """B §Completion Detection, 2: "If task has associated tests"."""
    check = named(tmp_path, "echo 1 passed:")
    assert check.executes(UNCHECKED)
    found, evidence = checked(check, UNCHECKED)
    assert found == []
    assert {**evidence, "outputSha256": ""} == {
        "kind": "test_passing",
        "command": "echo 1 passed: T-1",
        "exitCode": 0,
        "outputSha256": "",
        "named": "T-1",
        "written": [],
    }
    assert check.passed_as(UNCHECKED) == "the tests named T-1"
    assert check.passed_as(closing()) == "completion"


def test_who_wrote_the_tests_is_in_the_evidence(tmp_path: Path) -> None:
    """Files that name the task, in their text or their path, and are other than when it began."""
    changed = ("a.py", "tests/t-1_test.py", "b.py", "gone_t-1.py")
    check = named(tmp_path, "echo 1 passed:", *changed)
    project = tmp_path / "project"
    (project / "tests").mkdir()
    (project / "a.py").write_text("print(1)\n")
    (project / "tests" / "t-1_test.py").touch()
    (project / "b.py").write_bytes(b"\xff# for t-1")
    _, evidence = checked(check, UNCHECKED)
    assert evidence["written"] == ["b.py", "gone_t-1.py", "tests/t-1_test.py"]
    assert check.passed_as(UNCHECKED) == (
        "the tests named T-1, written or changed in this task: b.py, gone_t-1.py, tests/t-1_test.py"
    )


def test_tests_named_after_a_task_that_fail_are_told_to_the_agent(tmp_path: Path) -> None:
    check = named(tmp_path, "echo 1 failed; exit 1; echo")
    (finding,), evidence = checked(check, UNCHECKED)
    assert (finding.gate, finding.code, evidence["exitCode"]) == ("completion", 1, 1)
    assert "Not complete yet: `echo 1 failed; exit 1; echo T-1` exited with code 1" in finding.text
    assert "1 failed\n" in finding.text


@pytest.mark.parametrize("command", ["exit 5; echo", "echo 0 passing; echo"])
def test_without_such_tests_there_is_nothing_to_look_at(tmp_path: Path, command: str) -> None:
    """Also if there were some a moment ago, on another tree."""
    check = named(tmp_path, "echo 1 passed:")
    assert list(check.check(UNCHECKED)) == []
    none = named(tmp_path, command)
    assert list(none.check(UNCHECKED)) == []
    assert none.passed_as(UNCHECKED) == ""
    assert kept_evidence(none.store, 3, "T-1") is None


def test_the_summary_may_stand_at_the_end_of_a_long_output(tmp_path: Path) -> None:
    check = named(tmp_path, "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo 0 passing; echo")
    assert list(check.check(UNCHECKED)) == []
    assert check.passed_as(UNCHECKED) == ""


def test_tests_named_after_a_task_may_not_hang(tmp_path: Path) -> None:
    """`loop.checkTimeout` is theirs too."""
    check = replace(named(tmp_path, "sleep 600; echo"), timeout=0.2)
    (finding,), evidence = checked(check, UNCHECKED)
    assert "exited with code 124 (timed out after 0.2s)" in finding.text
    assert evidence["exitCode"] == 124


def test_a_task_without_a_check_is_not_looked_at(tmp_path: Path) -> None:
    check = gate(tmp_path, {"type": "explicit"})
    assert not check.executes(UNCHECKED)
    assert list(check.check(UNCHECKED)) == []
    assert check.passed_as(UNCHECKED) == ""
    assert kept_evidence(check.store, 3, "T-1") is None


def test_output_without_end_is_cut_and_hashed_whole(tmp_path: Path) -> None:
    rule = {"type": "test_passing", "command": "head -c 3000000 /dev/zero; exit 1"}
    (finding,), evidence = checked(gate(tmp_path, rule))
    assert len(finding.text) < 6000
    assert finding.text.endswith("... [truncated]")
    assert evidence["outputSha256"] == hashlib.sha256(bytes(3_000_000)).hexdigest()


def test_a_claim_is_evidence_of_its_own_kind() -> None:
    evidence = claimed_evidence("<promise>COMPLETE</promise>")
    assert (evidence["kind"], evidence["command"], evidence["exitCode"]) == ("explicit", None, None)


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_evidence_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    Path(evidence_file(str(tmp_path), 3)).write_text(text)
    assert kept_evidence(str(tmp_path), 3, "T-1") is None
    kept = {"task": "T-1", "evidence": {"kind": "x"}}
    Path(evidence_file(str(tmp_path), 3)).write_text(json.dumps(kept))
    assert kept_evidence(str(tmp_path), 3, "T-1") == {"kind": "x"}
    assert kept_evidence(str(tmp_path), 3, "T-2") is None
