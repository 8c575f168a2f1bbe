"""A run in a sandbox sees no credentials but its agent's own, and neither do its guardrails."""

import os
from pathlib import Path
from typing import Any

import pytest
from backlog_support import COMPLETE, Project
from run_support import Done, assert_clear, ralph
from story_support import IN_OVERLAY

LOOK = "for f in .ssh/id .netrc .claude/.credentials.json; do test -e ~/$f && echo $f; done"
DONE = {  # what an agent of a kind says at the end
    "claude": (
        '{"type":"assistant","message":{"content":[{"type":"text","text":"SAID"}]}}',
        '{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":0.01}',
    ),
    "codex": (
        '{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"SAID"}}',
        '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}',
    ),
}
A = {"id": "A", "title": "Look around"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    home = Path(os.environ["HOME"])
    for name in (".ssh/id", ".netrc", ".claude/.credentials.json"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("secret\n")
    (tmp_path / "project").mkdir()
    project = Project(tmp_path / "project", monkeypatch)
    project.tasks(A)
    return project


def worked(project: Project, *words: str, kind: str = "codex", **settings: Any) -> Done:  # noqa: ANN401
    """A run whose agent and guardrail write down what they see."""
    lines = "\n".join(DONE[kind]).replace("SAID", "<promise>COMPLETE</promise>")
    agent = project.agent(f"({LOOK}) > seen\ncat <<'END'\n{lines}\nEND")
    project.settings(
        agent={"command": agent, "kind": kind, "probe": False},
        guardrails=[{"command": f"({LOOK}) > checked; true"}],
        **settings,
    )
    return ralph("tasks", "run", "-m", "1", *words)


def seen(project: Project) -> tuple[list[str], list[str]]:
    """By the agent, and by its guardrail."""
    found = [(project.path / name).read_text().split() for name in ("seen", "checked")]
    return found[0], found[1]


@IN_OVERLAY
@pytest.mark.parametrize(
    ("kind", "words", "settings", "shown"),
    [
        ("codex", (), {}, []),
        ("claude", (), {}, [".claude/.credentials.json"]),
        ("codex", ("--sandbox-show", "~/.ssh"), {}, [".ssh/id"]),
        ("codex", (), {"sandboxShow": ["~/.ssh", "~/.netrc"]}, [".ssh/id", ".netrc"]),
    ],
)
def test_agent_and_guardrails_see_the_same(
    project: Project, kind: str, words: tuple[str, ...], settings: dict[str, Any], shown: list[str]
) -> None:
    """Issue: "hidden in the overlay sandbox, with a setting to show one"; "Guardrails in the
    sandbox see the same"."""
    assert_clear(worked(project, "--sandbox=overlay", *words, kind=kind, **settings), 0)
    assert seen(project) == (shown, shown)


@IN_OVERLAY
def test_the_first_lines_name_what_is_hidden(project: Project) -> None:
    done = worked(project, "--sandbox=overlay")
    assert "; hidden: ~/.ssh, ~/.netrc, ~/.claude/.credentials.json\n" in done.err
    done = worked(project, "--no-sandbox")
    assert "hidden:" not in done.err


@IN_OVERLAY
def test_workers_see_no_more(project: Project) -> None:
    project.tasks(A, {"id": "B", "title": "Look too"})
    agent = project.agent(f"({LOOK}) > seen.$id; {COMPLETE}")
    done = ralph("tasks", "run", "--agent", agent, "--sandbox=overlay", "--parallel", "2")
    assert_clear(done, 0)
    for name in ("A", "B"):
        assert (project.path / f"seen.{name}").read_text() == ".claude/.credentials.json\n"


@pytest.mark.parametrize(
    ("words", "settings", "said"),
    [
        (("--sandbox-show", "~/.shh"), {}, "sandboxShow: '~/.shh' is nothing that a sandbox hides"),
        ((), {"sandboxShow": ["~/.shh"]}, "sandboxShow: '~/.shh' is nothing that a sandbox hides"),
        ((), {"sandboxShow": "~/.ssh"}, 'sandboxShow: found "~/.ssh"'),
        ((), {"sandboxShow": [""]}, 'sandboxShow[0]: found ""'),
    ],
)
def test_what_is_wrong_is_refused(
    project: Project, words: tuple[str, ...], settings: dict[str, Any], said: str
) -> None:
    """Issue: "bad values refused with exit 2"."""
    assert_clear(worked(project, "--sandbox=worktree", *words, **settings), 2, said)


def test_a_flag_without_a_sandbox_is_refused(workspace: Path) -> None:
    done = ralph("run", "-p", "x", "--agent", "true", "--sandbox-show", "~/.ssh")
    assert_clear(done, 2, "--sandbox-show is for a sandbox, and there is none", "Add --sandbox.")


@IN_OVERLAY
def test_a_persons_own_command_sees_as_little(project: Project) -> None:
    done = ralph("sandbox", "run", "--discard", "--", "sh", "-c", LOOK)
    assert done.out == ".claude/.credentials.json\n"
    assert "Sandbox: overlay; network off; hidden: ~/.ssh, ~/.netrc\n" in done.err
    words = ("--discard", "--sandbox-show", "~/.netrc", "--", "sh", "-c", LOOK)
    assert ralph("sandbox", "run", *words).out == ".netrc\n.claude/.credentials.json\n"
    assert_clear(ralph("sandbox", "run", "--sandbox-show", "x", "--", "true"), 2, "sandboxShow")
