"""`ralph run` from end to end: H's loop, guardrails, completion and SCM, with a scripted agent."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from run_support import (
    FINISH,
    Here,
    assert_clear,
    assert_replays,
    journals,
    prepare,
    prompts,
    turns,
)

from ralph.testing.scripted_agent.install import calls

DONE = {"response": "DONE"}
BUSY = {"text": "still busy"}


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


# ------------------------------------------------------------------ completion


@pytest.mark.parametrize("kind", ["claude", "codex", "amp", "text"])
@pytest.mark.parametrize(
    ("said", "completes"),
    [
        ("<response>DONE</response>", True),
        ("All is well. <response>done</response> Bye.", True),
        ("<RESPONSE> Done\n</RESPONSE>", True),
        ("<response>\nDONE\n</response>", True),
        ("DONE", False),
        ("<response>NOT DONE</response>", False),
        ("<response>DONE!</response>", False),
        ("<response>no</response> <response>DONE</response>", False),
        ("<response>DONE</response> <response>no</response>", True),
        ("<response>DONE", False),
    ],
)
def test_completion_response_detection(
    here: Here, workspace: Path, kind: str, said: str, completes: bool
) -> None:
    """H Testing Requirements; H §Completion Detection: first match, case-insensitive, exact."""
    prepare(workspace, {"text": said}, kind=kind)
    assert here("-p", "x", "-m", "1").code == (0 if completes else 1)


def test_another_completion_response(here: Here, workspace: Path) -> None:
    prepare(workspace, DONE, {"response": "all good"})
    assert_clear(here("-p", "x", "-c", "All Good"), 0, "2 iterations")


def test_a_response_in_tool_output_or_in_the_prompt_completes_nothing(
    here: Here, workspace: Path
) -> None:
    """ADR 3: "never the prompt or its echo, tool input or output"."""
    said = "<response>DONE</response>"
    turn = {"tools": [{"name": "Bash", "run": f"echo '{said}'"}], "text": "hm", "echo_prompt": True}
    prepare(workspace, turn)
    done = here("-p", f"say {said}", "-m", "1")
    assert_clear(done, 1, "only in tool output")


def test_exit_code_0_alone_completes_nothing(here: Here, workspace: Path) -> None:
    """ADR 5: "0 never completes anything"."""
    prepare(workspace, BUSY)
    assert_clear(here("-p", "x", "-m", "2"), 1, "2 iterations used up")


def test_a_failed_turn_is_not_believed(here: Here, workspace: Path) -> None:
    """ADR 4: a non-zero exit is a failure, whatever was said."""
    agent = prepare(workspace, {**DONE, "exit": 3, "stderr": "disk on fire"}, DONE)
    assert_clear(here("-p", "x"), 0, "2 iterations", "exited with code 3", "disk on fire")
    told = prompts(agent)[1]
    assert told == "x\n\nThe previous iteration failed: exit code 3: disk on fire"


# ------------------------------------------------------------------ the prompt


def test_the_prompt_file_is_read_again_in_each_iteration(here: Here, workspace: Path) -> None:
    """H §Loop Behavior 1."""
    (workspace / "p.md").write_text("first")
    agent = prepare(workspace, {"files": {"p.md": "second"}}, DONE)
    assert here("-f", "p.md").code == 0
    assert prompts(agent) == ["first", "second"]


def test_the_iteration_line_stands_in_front(here: Here, workspace: Path) -> None:
    """H §Loop Behavior 3, and the issue: "the iteration line is put in front last"."""
    guardrail = {"command": "test -e ok", "failAction": "PREPEND"}
    agent = prepare(
        workspace,
        BUSY,
        {"files": {"ok": ""}, **DONE},
        includeIterationCountInPrompt=True,
        guardrails=[guardrail],
    )
    assert here("-p", "do it", "-m", "3").code == 0
    first, second = prompts(agent)
    assert first == "Iteration 1 of 3, 2 remaining.\n\ndo it"
    assert second.startswith('Iteration 2 of 3, 1 remaining.\n\nGuardrail "test -e ok" failed')
    assert second.endswith("\n\ndo it")


@pytest.mark.parametrize("prompt", ["-x", "--help", "-- -p", "-"])
@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_a_prompt_that_begins_with_a_dash(
    here: Here, workspace: Path, prompt: str, kind: str
) -> None:
    """Bad input: a prompt beginning with `-`."""
    agent = prepare(workspace, DONE, kind=kind)
    assert_clear(here("-p", prompt), 0)
    assert prompts(agent) == [prompt]


# ------------------------------------------------------------------ guardrails


def failure(command: str, slug: str, output: str = "", iteration: int = 1) -> str:
    """H §Failure Message Format."""
    return (
        f'Guardrail "{command}" failed with exit code 1.\n'
        f"Output file: .ralph/guardrail_{iteration:03d}_{slug}.log\n"
        f"Output (truncated):\n{output}"
    )


A = failure("echo A; exit 1", "echo_A_exit_1", "A\n")
B = failure("echo B; exit 1", "echo_B_exit_1", "B\n")


@pytest.mark.parametrize(
    ("actions", "prompt"),
    [
        (("APPEND",), f"do it\n\n{A}"),
        (("append",), f"do it\n\n{A}"),
        (("PREPEND",), f"{A}\n\ndo it"),
        (("REPLACE",), A),
        (("APPEND", "APPEND"), f"do it\n\n{A}\n\n{B}"),
        (("APPEND", "PREPEND"), f"{B}\n\ndo it\n\n{A}"),
        (("PREPEND", "PREPEND"), f"{B}\n\n{A}\n\ndo it"),
        (("APPEND", "REPLACE"), B),
        (("REPLACE", "APPEND"), f"{A}\n\n{B}"),
        (("Replace", "prepend"), f"{B}\n\n{A}"),
    ],
)
def test_guardrail_fail_action_application(
    here: Here, workspace: Path, actions: tuple[str, ...], prompt: str
) -> None:
    """H Testing Requirements; the issue: "each to the prompt the previous one produced"."""
    commands = ("echo A; exit 1", "echo B; exit 1")
    rails = [{"command": c, "failAction": a} for c, a in zip(commands, actions, strict=False)]
    agent = prepare(workspace, BUSY, guardrails=rails)
    assert here("-p", "do it", "-m", "2").code == 1
    assert prompts(agent) == ["do it", prompt]


def test_feedback_does_not_pile_up(here: Here, workspace: Path) -> None:
    """H §Loop Behavior 2: only what failed in the previous iteration."""
    agent = prepare(workspace, BUSY, guardrails=[{"command": "echo A; exit 1"}])
    assert here("-p", "do it", "-m", "3").code == 1
    later = failure("echo A; exit 1", "echo_A_exit_1", "A\n", iteration=2)
    assert prompts(agent)[2] == f"do it\n\n{later}"


def test_all_guardrails_run_even_if_the_first_fails(here: Here, workspace: Path) -> None:
    rails = [{"command": c} for c in ("false", "echo ran >> log", "exit 7")]
    prepare(workspace, DONE, guardrails=rails)
    assert_clear(here("-p", "x", "-m", "1"), 1, "code 1", "code 0", "code 7")
    assert Path("log").read_text() == "ran\n"


def test_a_claim_is_believed_only_when_the_guardrails_pass(here: Here, workspace: Path) -> None:
    """H: "Completion detection occurs only after guardrails pass for that iteration"."""
    agent = prepare(
        workspace, DONE, {**DONE, "files": {"ok": ""}}, guardrails=[{"command": "test -e ok"}]
    )
    done = here("-p", "x")
    assert_clear(done, 0, "Proof      test -e ok passed", "2 iterations")
    assert len(calls(agent)) == 2


def test_a_hint_is_told(here: Here, workspace: Path) -> None:
    agent = prepare(workspace, BUSY, guardrails=[{"command": "false", "hint": "Fix {it} only."}])
    here("-p", "x", "-m", "2")
    assert "failed with exit code 1.\nHint: Fix {it} only.\nOutput file:" in prompts(agent)[1]


def test_output_truncation(here: Here, workspace: Path) -> None:
    """H Testing Requirements: "Test output truncation"; the log keeps all of it."""
    (workspace / "output").write_text("äöü" * 10)
    rails = [{"command": "cat output; exit 1"}]
    agent = prepare(workspace, BUSY, guardrails=rails, outputTruncateChars=4)
    here("-p", "x", "-m", "2")
    assert prompts(agent)[1].endswith("Output (truncated):\näöüä... [truncated]")
    log = workspace / ".ralph" / "guardrail_001_cat_output_exit_1.log"
    assert log.read_text() == "äöü" * 10


def test_a_truncation_of_0_is_none(here: Here, workspace: Path) -> None:
    (workspace / "output").write_text("x" * 20_000)
    rails = [{"command": "cat output; exit 1"}]
    agent = prepare(workspace, BUSY, guardrails=rails, outputTruncateChars=0)
    here("-p", "x", "-m", "2")
    assert prompts(agent)[1].endswith("\n" + "x" * 20_000)


@pytest.mark.parametrize(
    ("command", "words", "told"),
    [
        ("kill -9 $$", "exited with code 137", "failed with exit code 137."),
        ('test -z "$(cat)"; exit 9', "exited with code 9", "code 9."),
        ("printf 'a\\0\\377b'; exit 3", "exited with code 3", "a\ufffd\ufffdb"),
        ("head -c 50000000 /dev/zero; exit 3", "code 3", "\ufffd" * 5000 + "... [truncated]"),
        ("no-such-command", "exited with code 127", "not found"),
    ],
)
def test_a_guardrail_that_behaves_badly(
    here: Here, workspace: Path, command: str, words: str, told: str
) -> None:
    """Bad input: "a guardrail that is killed, reads stdin or prints binary", or 50 MB."""
    agent = prepare(workspace, DONE, guardrails=[{"command": command}])
    assert_clear(here("-p", "x", "-m", "2"), 1, words)
    assert told in prompts(agent)[1]
    assert len(turns()) == 2


def test_a_guardrail_that_takes_too_long(here: Here, workspace: Path) -> None:
    agent = prepare(workspace, DONE, guardrails=[{"command": "sleep 60", "timeout": 0.2}])
    assert_clear(here("-p", "x", "-m", "2"), 1, "exited with code 124")
    assert "failed with exit code 124 (timed out after 0.2s)." in prompts(agent)[1]


def test_a_protected_file_is_put_back_and_the_agent_told(here: Here, workspace: Path) -> None:
    """ADR 12: the agent may not weaken its own settings."""
    evil = {"files": {".ralph/settings.json": "{}"}, **DONE}
    agent = prepare(workspace, evil, DONE)
    before = (workspace / ".ralph" / "settings.json").read_text()
    assert_clear(here("-p", "x"), 0, "Protected path .ralph/settings.json was changed")
    assert (workspace / ".ralph" / "settings.json").read_text() == before
    assert "Leave it alone." in prompts(agent)[1]


# ------------------------------------------------------------------ SCM


def test_an_iteration_that_passes_is_committed_with_the_agents_message(
    here: Here, repo: Path
) -> None:
    """H §SCM Tasks: a message turn, then `commit -am MESSAGE`, new files included."""
    agent = prepare(
        repo,
        {**DONE, "files": {"new.txt": "x"}, "cost": 0.5},
        {"text": "Add new.txt", "cost": 0.25},
        guardrails=[{"command": "true"}],
        scm={"command": "git", "tasks": ["commit", "tag v1"]},
    )
    done = here("-p", "x")
    assert_clear(done, 0, "Committed: Add new.txt", "SCM task tag v1 done", ", $0.75.")
    assert git("log", "-1", "--format=%s", "v1") == "Add new.txt"
    assert "new.txt" in git("ls-files").split()
    assert not [name for name in git("ls-files").split() if name.endswith(".log")]
    ask = "Provide a short imperative commit message for the changes. Output only the message, "
    first, _, changes = prompts(agent)[1].partition("\n\nThe changes:\n")
    assert first == f"{ask}no explanation."
    assert "+++ b/new.txt" in changes, "it has no tools to look"
    assert "--tools=" in calls(agent)[1]["argv"]


@pytest.mark.parametrize(
    ("answer", "subject"),
    [
        ("<response>Add it</response>", "Add it"),
        ("\n\n  Add it\nmore", "Add it"),
        ("Sure! <response>Add it</response> and <response>no</response>", "Add it"),
    ],
)
def test_the_commit_message(here: Here, repo: Path, answer: str, subject: str) -> None:
    """H §SCM Tasks 2."""
    prepare(repo, {**DONE, "files": {"new": "x"}}, {"text": answer}, scm={"tasks": ["commit"]})
    assert here("-p", "x").code == 0
    assert git("log", "-1", "--format=%s") == subject


@pytest.mark.parametrize("answer", ["", '{"type":"system"}', "<response></response>"])
def test_no_message_is_no_commit_and_a_warning(here: Here, repo: Path, answer: str) -> None:
    """The issue: "never a JSON line; none → no commit and a warning"."""
    prepare(repo, {**DONE, "files": {"new": "x"}}, {"text": answer}, scm={"tasks": ["commit"]})
    assert_clear(here("-p", "x"), 0, "No commit: the agent gave no commit message")
    assert git("rev-list", "--count", "HEAD") == "1"


def test_a_clean_tree_takes_no_message_turn(here: Here, repo: Path) -> None:
    """ADR 8: "A clean tree skips SCM without a message turn"."""
    agent = prepare(repo, DONE, scm={"tasks": ["commit"]})
    git("add", "--all")
    git("commit", "--quiet", "--message", "settings")
    assert here("-p", "x").code == 0
    assert len(calls(agent)) == 1
    assert git("rev-list", "--count", "HEAD") == "2"


@pytest.mark.parametrize(
    ("turn", "settings"),
    [
        ({"files": {"new": "x"}}, {"guardrails": [{"command": "false"}]}),
        ({"files": {"new": "x"}, "error": {"status": 400}}, {}),
    ],
)
def test_what_is_not_good_is_not_committed(
    here: Here, repo: Path, turn: dict[str, Any], settings: dict[str, Any]
) -> None:
    """H: "If guardrails fail, SCM tasks do not run"; nor after a turn that failed."""
    prepare(repo, turn, scm={"tasks": ["commit"]}, **settings)
    assert here("-p", "x", "-m", "1").code == 1
    assert git("rev-list", "--count", "HEAD") == "1"


def test_an_scm_failure_is_reported_and_the_run_goes_on(here: Here, workspace: Path) -> None:
    """The issue: "Failure is reported, the run goes on"."""
    agent = prepare(workspace, BUSY, DONE, scm={"tasks": ["commit", "push"]})
    assert_clear(here("-p", "x"), 0, "not a git repository", "2 iterations")
    assert len(calls(agent)) == 2, "no message was asked for"


def test_a_claim_in_other_words_is_answered_with_the_exact_tag(here: Here, workspace: Path) -> None:
    turns = ({"text": "<promise>COMPLETE</promise>"}, {"text": "All is well.\nDONE"}, DONE)
    agent = prepare(workspace, *turns)
    assert_clear(here("-p", "make it so"), 0, "3 iterations")
    first, second, third = (call["prompt"] for call in calls(agent))
    assert first == f"make it so\n\n{FINISH}"
    assert "<promise>COMPLETE</promise> is not <response>DONE</response>." in second
    assert "The bare word DONE does not count; the tag <response>DONE</response> does." in third


RED, FIXED = {"text": "Hm."}, {"text": "Fixed it.", "files": {"ok": "1"}}
UNTIL: dict[str, Any] = {"guardrails": [{"command": "test -e ok"}], "scm": {"tasks": ["commit"]}}


@pytest.mark.parametrize("settings", [{}, {"untilGreen": True}])
def test_until_green_needs_no_word_of_the_agents(
    repo: Path, here: Here, settings: dict[str, Any]
) -> None:
    agent = prepare(repo, RED, FIXED, {"text": "Add ok"}, **UNTIL, **settings)
    arguments = () if settings else ("--until-green",)
    done = here("-p", "Make the tests pass", *arguments)
    assert_clear(done, 0, "not every guardrail passes yet", "2 iterations", "Committed: Add ok")
    assert calls(agent)[0]["prompt"].endswith("the work is done; you need not say so.")
    assert_replays()


def test_what_is_green_already_costs_nothing(here: Here, workspace: Path) -> None:
    agent = prepare(workspace, DONE, **UNTIL)
    (workspace / "ok").touch()
    done = here("-p", "Make the tests pass", "--until-green", "--json")
    assert_clear(done, 0, "Before the first turn: every guardrail passes", "0 iterations")
    assert (done.objects[-1]["exit"], calls(agent)) == (0, [])


def test_until_green_without_a_guardrail_says_what_to_type(here: Here, workspace: Path) -> None:
    agent = prepare(workspace, DONE)
    words = ("--until-green needs a guardrail", "ralph init", '[{"command": "make test"}]')
    assert_clear(here("-p", "Make the tests pass", "--until-green"), 2, *words)
    assert (calls(agent), journals()) == ([], [])
