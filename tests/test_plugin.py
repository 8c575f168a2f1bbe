"""The repository is the plugin: its manifests, and its hooks from a clone, nothing installed."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ralph

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "plugin" / "hooks" / "scripts"
EVENTS = {"Stop", "StopFailure", "UserPromptSubmit", "PostToolUse", "PreToolUse", "SessionStart"}
STORY = {"id": "A", "title": "t", "acceptanceCriteria": ["c"], "priority": 1, "passes": True}
STORY |= {"reviewStatus": None, "reviewCount": 0, "reviewFeedback": "", "notes": "n"}
WRONG = {"project": "", "branchName": "", "description": "", "userStories": [STORY]}


def manifest(name: str) -> dict[str, Any]:
    found = json.loads((ROOT / ".claude-plugin" / name).read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def command_of(event: str) -> str:
    hooks = json.loads((ROOT / "plugin" / "hooks" / "hooks.json").read_text("utf-8"))["hooks"]
    ((entry,),) = [one["hooks"] for one in hooks[event]]
    assert entry["type"] == "command"
    return str(entry["command"])


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a marketplace has: the files that git knows, in a folder with a blank in its name."""
    place = tmp_path_factory.mktemp("market") / "a clone"
    for name in (".claude-plugin", "plugin", "src"):
        shutil.copytree(
            ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "testing")
        )
    return place


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH with a real python3 and git, and nothing else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("git", "sh"):
        (folder / name).symlink_to(shutil.which(name) or "/nowhere")
    (folder / "python3").symlink_to(os.path.realpath(sys.executable))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the marker of a run, and a list that is not legal."""
    place = tmp_path / "project"
    (place / "ralph").mkdir(parents=True)
    (place / "ralph" / "tasks.json").write_text(json.dumps(WRONG))
    (place / ".ralph-active").write_text('{"mode": "direct"}')
    return place


def fire(
    event: str, root: Path, tools: Path, project: Path, sent: object = None, **environ: str
) -> "subprocess.CompletedProcess[str]":
    """Run a hook as the host does: by sh, with an environment of its own."""
    usual = {"session_id": "s", "cwd": str(project), "hook_event_name": event}
    raw = json.dumps({**usual, **(sent if isinstance(sent, dict) else {})})
    env = {"PATH": str(tools), "HOME": str(tools.parent), "CLAUDE_PLUGIN_ROOT": str(root)}
    shell = ["/bin/sh", "-c", command_of(event)]
    return subprocess.run(
        shell,
        input=raw,
        env={**env, **environ},
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_manifests_name_one_plugin_of_this_version() -> None:
    plugin, market = manifest("plugin.json"), manifest("marketplace.json")
    (entry,) = market["plugins"]
    assert (market["name"], plugin["name"], entry["name"]) == ("ralph", "ralph", "ralph")
    assert plugin["version"] == entry["version"] == ralph.__version__
    assert entry["source"] == "./"
    assert plugin["author"] == {"name": "The Ralph authors"}


def test_the_manifest_points_to_files_that_exist() -> None:
    plugin = manifest("plugin.json")
    assert (ROOT / plugin["hooks"]).is_file()
    assert (ROOT / plugin["skills"] / "ralph-plan" / "SKILL.md").is_file()
    commands = {path.stem for path in (ROOT / plugin["commands"]).glob("*.md")}
    assert commands == {"ralph-loop", "ulw-loop", "cancel-ralph", "ralph-status"}
    hooks = json.loads((ROOT / plugin["hooks"]).read_text("utf-8"))["hooks"]
    assert set(hooks) == EVENTS
    assert hooks["PostToolUse"][0]["matcher"] == ".*"
    assert hooks["PreToolUse"][0]["matcher"] == "Bash"
    for event in EVENTS:
        script = command_of(event).split('"')[1].removeprefix("${CLAUDE_PLUGIN_ROOT}/")
        assert (ROOT / script).is_file(), event


def test_the_skill_has_both_modes_and_its_trigger_phrases() -> None:
    """R §11."""
    text = (ROOT / "plugin" / "skills" / "ralph-plan" / "SKILL.md").read_text("utf-8")
    _, head, body = text.split("---\n", 2)
    assert "name: ralph-plan" in head
    phrases = ["/ralph-plan", "plan this feature for ralph", "create a ralph prd"]
    assert all(phrase in head for phrase in [*phrases, "generate tasks for ralph"])
    for words in ("## Mode 1", "## Mode 2", "ralph prd init", "verifyCommands", "dependsOn"):
        assert words in body
    example = json.loads(body.split("```json\n")[1].split("```")[0])
    from ralph.review.law import malformed

    assert malformed(example) == []


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.name)
def test_old_pythons_can_read_the_scripts(path: Path) -> None:
    """So that they can say that they are too old."""
    source = path.read_text("utf-8")
    ast.parse(source, feature_version=(3, 4))
    assert not [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.JoinedStr)]


def test_from_a_clone_with_nothing_installed_a_stop_is_held(
    clone: Path, tools: Path, project: Path
) -> None:
    done = fire("Stop", clone, tools, project)
    assert done.returncode == 0, done.stderr
    assert "not 'approved'" in json.loads(done.stdout)["reason"]


def test_from_a_clone_the_context_is_told_and_armed_anew(
    clone: Path, tools: Path, project: Path
) -> None:
    (project / "t").write_bytes(b"x" * 440_000)
    sent = {"transcript_path": str(project / "t")}
    told = [fire("PostToolUse", clone, tools, project, sent).stdout for _ in range(2)]
    assert "NOTICE: about 55%" in told[0]
    assert told[1] == ""
    armed = fire("SessionStart", clone, tools, project)
    assert (armed.returncode, armed.stdout, armed.stderr) == (0, "", "")
    assert fire("PostToolUse", clone, tools, project, sent).stdout == told[0]


def test_from_a_clone_the_guard_refuses(clone: Path, tools: Path, project: Path) -> None:
    call = {"tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}
    done = fire("PreToolUse", clone, tools, project, call)
    assert (done.returncode, done.stdout) == (2, "")
    assert "guard: refused (file-system)" in done.stderr
    (project / ".ralph-active").unlink()
    assert fire("PreToolUse", clone, tools, project, call).returncode == 0


def test_from_a_clone_prompts_pass(clone: Path, tools: Path, project: Path) -> None:
    done = fire("UserPromptSubmit", clone, tools, project, {"prompt": "hello"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


BROUGHT = "stop,prompt,pre-tool,post-tool,session-start"


@pytest.mark.parametrize("event", sorted(EVENTS))
def test_beside_a_run_the_plugin_is_silent(
    event: str, clone: Path, tools: Path, project: Path
) -> None:
    """ "Installed beside `prd run`, each hook runs once": the run brings its own."""
    call = {"tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}
    done = fire(event, clone, tools, project, call, RALPH_HOOKS=BROUGHT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("event", sorted(EVENTS))
@pytest.mark.parametrize("missing", ["plugin", "plugin/hooks/scripts/launch.py", "src/ralph/hooks"])
def test_a_missing_file_lets_the_agent_go_on_and_says_why(
    event: str, missing: str, clone: Path, tools: Path, project: Path
) -> None:
    """`python3 missing.py` exits with 2, which would hold a stop and refuse a call."""
    broken = tools.parent / "broken"
    shutil.copytree(clone, broken)
    gone = broken / missing
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    done = fire(event, broken, tools, project, RALPH_GUARD="1")
    assert (done.returncode, done.stdout) == (0, "")
    assert "the hook did not run" in done.stderr


@pytest.mark.parametrize("event", sorted(EVENTS))
def test_without_python_the_agent_goes_on(
    event: str, clone: Path, tools: Path, project: Path
) -> None:
    (tools / "python3").unlink()
    done = fire(event, clone, tools, project)
    assert (done.returncode, done.stdout) == (0, "")
    assert "the hook did not run" in done.stderr


def make_old(tools: Path) -> None:
    """A python3 that says it is 3.9, as far as a script can see."""
    real = os.path.realpath(sys.executable)
    lie = "import sys; sys.version_info = (3, 9, 2); sys.argv[:] = sys.argv[1:]; "
    play = "import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"
    script = (
        f'#!/bin/sh\nif [ "$3" = -c ]; then exec false; fi\nexec {real} -I -c "{lie}{play}" "$3"\n'
    )
    (tools / "python3").unlink()
    (tools / "python3").write_text(script)
    (tools / "python3").chmod(0o755)


@pytest.mark.parametrize("event", sorted(EVENTS))
def test_an_old_python_lets_the_agent_go_on_and_says_why(
    event: str, clone: Path, tools: Path, project: Path
) -> None:
    make_old(tools)
    (tools / "false").symlink_to("/bin/false")
    done = fire(event, clone, tools, project, RALPH_GUARD="1")
    assert (done.returncode, done.stdout) == (0, "")
    assert "the hook did not run: Python is 3.9, and 3.11 is needed" in done.stderr


def test_an_old_python_finds_a_newer_one(clone: Path, tools: Path, project: Path) -> None:
    """A shim that only looks like one is passed over."""
    make_old(tools)
    (tools / "python3.14").write_text("#!/bin/sh\nexit 127\n")
    (tools / "python3.14").chmod(0o755)
    (tools / "python3.12").symlink_to(os.path.realpath(sys.executable))
    done = fire("Stop", clone, tools, project)
    assert "not 'approved'" in json.loads(done.stdout)["reason"]


def test_a_python_of_the_project_is_not_run(clone: Path, tools: Path, project: Path) -> None:
    """An empty or relative entry of PATH leads there."""
    make_old(tools)
    (project / "python3.14").write_text("#!/bin/sh\n: > ran\n")
    (project / "python3.14").chmod(0o755)
    (tools / "false").symlink_to("/bin/false")
    done = fire("Stop", clone, tools, project, PATH=f"{tools}::.")
    assert "3.11 is needed" in done.stderr
    assert not (project / "ran").exists()
