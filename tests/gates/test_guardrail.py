"""Guardrails (H §Guardrails): logs, slugs, truncation, the message, and ill-behaved commands."""

import os
import subprocess
from pathlib import Path

import pytest

from kits.adapters import closing, has_ended, nobody_asks
from ralph.gates.guardrail import GatePlace, Guardrail, slugs
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Spent
from ralph.kernel.value import replace
from ralph.kernel.verdict import Placement
from ralph.kernel.world import Signals


def place(workspace: Path, truncate: int = 5000) -> GatePlace:
    fallback = workspace.parent / "run"
    fallback.mkdir(exist_ok=True)
    return GatePlace(str(workspace), str(fallback), os.environ, truncate, nobody_asks)


def guardrail(command: str, workspace: Path, truncate: int = 5000) -> Guardrail:
    return Guardrail(command, place(workspace, truncate), slugs((command,))[0])


def found(command: str, workspace: Path, truncate: int = 5000) -> Finding:
    """The one finding of a guardrail that fails."""
    findings = tuple(guardrail(command, workspace, truncate).check(closing()))
    assert len(findings) == 1
    return findings[0]


def output_of(finding: Finding) -> str:
    return finding.text.partition("Output (truncated):\n")[2]


def log_of(finding: Finding, workspace: Path) -> bytes:
    return (workspace / finding.log).read_bytes()


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("command", "slug"),
    [
        ("./mvnw clean install -T 2C", "mvnw_clean_install_T_2C"),
        ("make test", "make_test"),
        ("make   test && echo 'ok'", "make_test_echo_ok"),
        ("  npm run lint  ", "npm_run_lint"),
        ("x" * 80, "x" * 50),
        ("a_b__c", "a_b_c"),
        ("prüfe ñ", "pr_fe"),
        ("…", "command"),
    ],
)
def test_the_slug_of_a_command(command: str, slug: str) -> None:
    """H §Log File Naming, and the issue: runs become one `_`, ends stripped, 50 characters."""
    assert slugs((command,)) == (slug,)


@pytest.mark.parametrize(
    ("commands", "names"),
    [
        (("make", "make", "make"), ("make", "make_1", "make_2")),
        (("make test", "make  test"), ("make_test", "make_test_1")),
        (("a", "a 1", "a"), ("a", "a_1", "a_2")),
        (("x" * 60, "x" * 70), ("x" * 50, "x" * 50 + "_1")),
    ],
)
def test_a_slug_used_again_gets_a_number(commands: tuple[str, ...], names: tuple[str, ...]) -> None:
    """The issue: "a slug used again in the iteration gets `_1`"; none overwrites another."""
    assert slugs(commands) == names


def test_the_log_is_named_for_iteration_and_command(workspace: Path) -> None:
    """The issue: "Log `guardrail_001_make_test.log`"."""
    list(guardrail("echo hello", workspace).check(closing(iteration=12)))
    assert (workspace / ".ralph/guardrail_012_echo_hello.log").read_text() == "hello\n"


def test_the_log_of_a_guardrail_that_passes_is_kept_too(workspace: Path) -> None:
    """H §Loop Behavior 6: "Save each guardrail output"."""
    assert list(guardrail("echo out; echo err >&2", workspace).check(closing())) == []
    logs = list((workspace / ".ralph").glob("*.log"))
    assert [log.read_text() for log in logs] == ["out\nerr\n"]


def test_the_first_log_brings_the_gitignore_that_hides_it(repo: Path) -> None:
    """ADR 9: "The first write into `.ralph/` also writes `.ralph/.gitignore`"."""
    list(guardrail("echo x", repo).check(closing()))
    status = subprocess.run(["git", "status", "--porcelain"], check=True, capture_output=True)
    assert status.stdout == b""


# ------------------------------------------------------------------ the message


def test_the_message_is_that_of_the_specification(workspace: Path) -> None:
    """H §Failure Message Format."""
    assert found("echo broken; exit 2", workspace).text == (
        'Guardrail "echo broken; exit 2" failed with exit code 2.\n'
        "Output file: .ralph/guardrail_001_echo_broken_exit_2.log\n"
        "Output (truncated):\n"
        "broken\n"
    )


def test_a_hint_has_a_line_of_its_own_and_is_never_cut(workspace: Path) -> None:
    """H: "Hints are literal strings (no templating) and are never truncated"."""
    hint = "Read {this} %s. " * 20
    gate = Guardrail("echo long; false", place(workspace, truncate=3), "slug", hint=hint)
    (finding,) = gate.check(closing())
    lines = finding.text.splitlines()
    assert lines[1] == f"Hint: {hint}"
    assert lines[-1] == "lon... [truncated]"


def test_a_finding_carries_placement_code_and_log(workspace: Path) -> None:
    gate = Guardrail("exit 4", place(workspace), "slug", Placement.REPLACE)
    (finding,) = gate.check(closing())
    assert (finding.gate, finding.placement, finding.code) == ("exit 4", Placement.REPLACE, 4)
    assert finding.log == ".ralph/guardrail_001_slug.log"


def test_the_same_failure_again_is_the_same_finding(workspace: Path) -> None:
    """Progress = a changed set of findings; the log's number is no progress."""
    gate = guardrail("echo same; false", workspace)
    first, second = (next(iter(gate.check(closing(iteration=n)))) for n in (1, 2))
    assert first.text != second.text
    assert first.identity == second.identity


def test_key_shaped_values_reach_neither_the_agent_nor_the_log(workspace: Path) -> None:
    """ADR 13: "One redactor stands before every sink"."""
    key = "sk-ant-" + "a1" * 12
    finding = found(f"echo {key} | tr b b; false", workspace)
    assert key not in finding.text
    assert log_of(finding, workspace) == b"[redacted]\n"


# ------------------------------------------------------------------ truncation


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("12345", 5, "12345"),
        ("123456", 5, "12345... [truncated]"),
        ("é" * 5, 5, "é" * 5),
        ("é" * 6, 5, "é" * 5 + "... [truncated]"),
        ("😀" * 9, 5, "😀" * 5 + "... [truncated]"),
        ("e\u0301" * 3, 5, "e\u0301e\u0301e... [truncated]"),
        ("x" * 9000, 0, "x" * 9000),
        ("", 5, ""),
    ],
)
def test_output_truncation_counts_characters(
    workspace: Path, text: str, most: int, shown: str
) -> None:
    """H Testing Requirements: "Test output truncation"; the indicator only when cut; 0 = whole."""
    (workspace / "output").write_text(text, "utf-8")
    finding = found("cat output; false", workspace, most)
    assert output_of(finding) == shown
    assert log_of(finding, workspace) == text.encode()


def test_nul_and_invalid_utf_8_are_replaced_for_the_agent_and_kept_in_the_log(
    workspace: Path,
) -> None:
    """The issue: "NUL and invalid UTF-8 become U+FFFD in the prompt, the log keeps the bytes"."""
    data = b"a\0b\xff\xfec\xc3"
    (workspace / "output").write_bytes(data)
    finding = found("cat output; false", workspace)
    assert output_of(finding) == "a\ufffdb\ufffd\ufffdc\ufffd"
    assert log_of(finding, workspace) == data


def test_fifty_megabytes_are_logged_and_cut(workspace: Path) -> None:
    finding = found("head -c 50000000 /dev/zero | tr '\\0' x; false", workspace)
    assert (workspace / finding.log).stat().st_size == 50_000_000
    assert output_of(finding) == "x" * 5000 + "... [truncated]"


# ------------------------------------------------------------------ ill-behaved commands


@pytest.mark.parametrize(
    ("command", "code"),
    [("kill -9 $$", 137), ("kill -15 $$", 143), ("no-such-command", 127), ("exit 255", 255)],
)
def test_the_exit_code_of_a_command_that_ends_badly(
    workspace: Path, command: str, code: int
) -> None:
    assert found(command, workspace).code == code


def test_a_guardrail_that_removes_its_own_log_is_heard_all_the_same(workspace: Path) -> None:
    """`git clean -dfx` takes `.ralph/*.log` along."""
    finding = found("echo before; rm -r .ralph; exit 1", workspace)
    assert output_of(finding) == "before\n"


def test_a_guardrail_that_reads_its_input_finds_none(workspace: Path) -> None:
    assert list(guardrail('test -z "$(cat)"', workspace).check(closing())) == []


def test_a_guardrail_that_takes_too_long_fails_with_124_and_says_so(
    workspace: Path, tmp_path: Path
) -> None:
    command = f"echo begun; echo $$ > {tmp_path}/pid; sleep 60"
    gate = Guardrail(command, place(workspace), "slug", timeout=0.2)
    (finding,) = gate.check(closing())
    assert finding.code == 124
    assert "failed with exit code 124 (timed out after 0.2s)." in finding.text
    assert output_of(finding) == "begun\n"
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_a_guardrail_that_is_cut_and_says_that_all_is_well_has_not_passed(workspace: Path) -> None:
    """A test runner that is interrupted may exit with 0."""
    command = "trap 'exit 0' INT TERM; sleep 60 & wait"
    (finding,) = Guardrail(command, place(workspace), "slug", timeout=0.2).check(closing())
    assert finding.code == 124


def test_a_guardrail_has_what_is_left_of_the_runs_time(workspace: Path) -> None:
    here = replace(place(workspace), max_time=2.0)
    case = closing()
    spent = replace(case, now=5.0, state=replace(case.state, spent=Spent(seconds=1.9)))
    (finding,) = Guardrail("sleep 60", here, "slug", timeout=1.0).check(spent)
    assert (finding.code, "the run's time is used up" in finding.text) == (124, True)


def test_the_second_signal_ends_a_guardrail(workspace: Path) -> None:
    """ADR 7: "Second, or SIGHUP: end the tree now"."""
    here = place(workspace)
    asked = GatePlace(here.workspace, here.fallback, here.env, 5000, lambda: Signals(cancels=2))
    (finding,) = Guardrail("sleep 60", asked, "slug").check(closing())
    assert "asked to stop at once" in finding.text


def test_the_first_signal_lets_a_guardrail_finish(workspace: Path) -> None:
    """H §Signal Handling 3: "If guardrail is running: allow it to finish, then exit"."""
    here = place(workspace)
    asked = GatePlace(here.workspace, here.fallback, here.env, 5000, lambda: Signals(cancels=1))
    assert list(Guardrail("sleep 0.4; true", asked, "slug").check(closing())) == []


def test_a_guardrail_gets_the_whole_environment_and_the_workspace(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADR 13: "Guardrails get everything"."""
    monkeypatch.setenv("MY_API_KEY", "mine")
    assert (
        list(guardrail('test "$MY_API_KEY $PWD" = "mine $(pwd)"', workspace).check(closing())) == []
    )


def test_what_a_guardrail_leaves_running_is_ended(workspace: Path, tmp_path: Path) -> None:
    list(guardrail(f"sleep 60 & echo $! > {tmp_path}/pid", workspace).check(closing()))
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_a_ralph_directory_that_cannot_be_made_sends_the_log_beside_the_journal(
    workspace: Path,
) -> None:
    (workspace / ".ralph").write_text("a file in the way")
    finding = found("echo x; false", workspace)
    log = workspace.parent / "run" / "guardrail_001_echo_x_false.log"
    assert finding.log == str(log)
    assert f"Output file: {log}\n" in finding.text
    assert log.read_text() == "x\n"


@pytest.mark.parametrize(
    ("command", "why"), [("nul\0", "embedded null byte"), ("\ud800", "encode")]
)
def test_a_command_that_no_system_can_run_is_a_finding(
    workspace: Path, command: str, why: str
) -> None:
    finding = found(command, workspace)
    assert (finding.code, why in output_of(finding)) == (126, True)


def test_a_workspace_that_is_gone_is_a_finding(workspace: Path) -> None:
    gate = guardrail("true", workspace)
    workspace.rmdir()
    (finding,) = gate.check(closing())
    assert finding.code == 126
    assert "It could not be run: " in finding.text
