"""`ralph plugin`: hooks in an agent's own settings, and out of them again."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest
from prd_support import contents, git
from run_support import RALPH, Here, assert_clear, program, ralph

from ralph.files.state_dir import write_atomically
from ralph.hosts import files
from ralph.hosts.hosts import HOSTS
from ralph.hosts.stop_cap import CAP

ROOT = Path(__file__).resolve().parents[3]
FILES = {name: host.file for name, host in HOSTS.items()}
AGENTS = pytest.mark.parametrize("agent", list(HOSTS))
THEIRS = {"hooks": [{"type": "command", "command": "make lint"}]}
CLAUDES = ("ralph-loop", "ulw-loop", "cancel-ralph", "ralph-status")


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], workspace: Path) -> Here:
    return Here(capsys)


def write(workspace: Path, path: str, text: str) -> Path:
    place = workspace / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text.encode())
    return place


def hooks(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text("utf-8-sig"))["hooks"]
    assert isinstance(found, dict)
    return found


@AGENTS
def test_install_puts_every_event_in_once(here: Here, workspace: Path, agent: str) -> None:
    """ "exactly once", also when it is done twice."""
    done = here("plugin", "install", "--agent", agent, "--json")
    assert (done.code, done.err) == (0, "")
    told = done.objects[0]
    path = workspace / FILES[agent]
    assert (told["agent"], told["scope"], told["file"]) == (agent, "project", str(path))
    assert list(hooks(path)) == told["events"] == list(HOSTS[agent].events.values())
    for (hook, _), groups in zip(HOSTS[agent].events.items(), hooks(path).values(), strict=True):
        ((command,),) = (group["hooks"] for group in groups)
        if agent == "claude":  # whose file is the person's own
            assert command["command"].startswith(f"{shlex.quote(sys.executable)} -I -S -c ")
            assert f'main("{agent}", "{hook}")' in command["command"]
        else:
            assert f"ralph hook {hook} {agent} " in command["command"]
    before = contents(workspace)
    again = here("plugin", "install", "--agent", agent, "--json").objects[0]
    assert (told["changed"], again["changed"]) == (True, False)
    assert contents(workspace) == before


@AGENTS
def test_uninstall_leaves_nothing_in_a_fresh_project(
    here: Here, workspace: Path, agent: str
) -> None:
    here("plugin", "install", "--agent", agent)
    done = here("plugin", "uninstall", "--agent", agent)
    assert done.code == 0
    assert "are gone from" in done.out
    assert os.listdir(workspace) == []
    assert "were not in" in here("plugin", "uninstall", "--agent", agent).out


SETTINGS = [
    "{}",
    '{"hooks": {}}',
    '{\r\n\t"model": "opus"\r\n}\r\n',
    '\ufeff{"a": 1.0, "b": "\\u00e4"}',
    json.dumps({"z": 1, "hooks": {"Stop": [THEIRS], "AfterAgent": [THEIRS]}, "a": 2}, indent=4),
    '{"enabledPlugins": {"other@x": true}, "permissions": {"allow": ["Bash(ls)",   "Read"]}}',
]


@AGENTS
@pytest.mark.parametrize("text", SETTINGS)
def test_what_is_there_stays_to_the_byte(
    here: Here, workspace: Path, agent: str, text: str
) -> None:
    """ "never loses or reorders what is there"; "uninstall restores byte for byte"."""
    path = write(workspace, FILES[agent], text)
    path.chmod(0o600)
    before = contents(workspace)
    assert here("plugin", "install", "--agent", agent).code == 0
    assert set(HOSTS[agent].events.values()) <= set(hooks(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert here("plugin", "uninstall", "--agent", agent).code == 0
    assert contents(workspace) == before


@AGENTS
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "line 1, column 2"),
        ("[]", "it holds no JSON object"),
        ('{"hooks": []}', '"hooks" is not an object'),
        ("\x00\x01", "line 1, column 1"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_broken_file_is_left_alone(
    here: Here, workspace: Path, agent: str, text: str, why: str
) -> None:
    """ "a broken file: 2, nothing written"."""
    write(workspace, FILES[agent], text)
    before = contents(workspace)
    assert_clear(here("plugin", "install", "--agent", agent), 2, why)
    assert contents(workspace) == before
    states = here("plugin", "status", "--json").objects[0][agent]["project"]
    assert states["state"] == ("absent" if text == '{"hooks": []}' else "broken")


def test_what_is_no_text_is_left_alone(here: Here, workspace: Path) -> None:
    path = write(workspace, FILES["claude"], "")
    path.write_bytes(b'{"a": "\xff"}')
    assert_clear(here("plugin", "install"), 2, "is not UTF-8 (byte 8)")
    with path.open("wb") as file:
        file.truncate(11 << 20)
    assert_clear(here("plugin", "uninstall"), 2, "is larger than 10 MB")
    path.unlink()
    path.mkdir()
    assert_clear(here("plugin", "install"), 2, "cannot be read")
    path.rmdir()
    os.mkfifo(path)
    assert_clear(here("plugin", "install"), 2, "cannot be read")


@pytest.mark.parametrize("text", ["", " \n", "\ufeff"])
def test_an_empty_file_is_as_good_as_none(here: Here, workspace: Path, text: str) -> None:
    path = write(workspace, FILES["claude"], text)
    assert here("plugin", "install").code == 0
    assert "Stop" in hooks(path)


def test_a_link_stays_a_link(here: Here, workspace: Path) -> None:
    target = write(workspace, "dotfiles/claude.json", '{"model": "opus"}')
    (workspace / ".claude").mkdir()
    link = workspace / FILES["claude"]
    link.symlink_to(target)
    here("plugin", "install")
    assert link.is_symlink()
    assert "Stop" in hooks(target)
    here("plugin", "uninstall")
    assert target.read_text() == '{"model": "opus"}'


def test_a_file_that_is_read_only_stays_so(here: Here, workspace: Path) -> None:
    path = write(workspace, FILES["claude"], '{"model": "opus"}')
    path.chmod(0o444)
    before = contents(workspace)
    assert_clear(here("plugin", "install"), 2, "is read only")
    assert contents(workspace) == before


@pytest.mark.parametrize("fails", [1, 3, 5])
def test_what_cannot_be_written_to_its_end_is_put_back(
    here: Here, workspace: Path, monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    write(workspace, FILES["claude"], '{"model": "opus"}')
    before = contents(workspace)
    written: list[str] = []

    def write_some(path: str, text: str) -> None:
        written.append(path)
        if len(written) == fails:
            raise OSError(28, "No space left on device", path)
        write_atomically(path, text)

    monkeypatch.setattr(files, "write_atomically", write_some)
    assert_clear(here("plugin", "install"), 2, "No space left on device")
    assert contents(workspace) == before
    assert os.listdir(workspace / ".claude") == ["settings.local.json"]


def test_a_file_in_a_folders_place(here: Here, workspace: Path) -> None:
    write(workspace, ".claude", "mine")
    assert_clear(here("plugin", "install"), 2, "cannot be read: Not a directory")
    (workspace / ".claude").unlink()
    write(workspace, ".claude/commands", "mine")
    assert_clear(here("plugin", "install"), 2, "Not a directory")
    assert contents(workspace) == {".claude/commands": b"mine"}


def test_commands_by_their_bare_names(here: Here, workspace: Path) -> None:
    """ "so that `/ralph-loop` works without the namespace"."""
    told = here("plugin", "install", "--json").objects[0]
    assert told["commands"] == [f".claude/commands/{name}.md" for name in CLAUDES]
    for path in told["commands"]:
        assert (workspace / path).read_text().startswith("---\ndescription: ")


def test_a_command_of_somebody_elses_is_kept(here: Here, workspace: Path) -> None:
    mine = write(workspace, ".claude/commands/ralph-loop.md", "My own loop.\n")
    done = here("plugin", "install")
    assert ".claude/commands/ralph-loop.md is not Ralph's" in done.out
    here("plugin", "uninstall")
    assert mine.read_text() == "My own loop.\n"
    assert os.listdir(mine.parent) == ["ralph-loop.md"]


def test_an_older_command_of_ours_is_renewed(here: Here, workspace: Path) -> None:
    here("plugin", "install")
    path = workspace / ".claude/commands/ulw-loop.md"
    text = path.read_text()
    path.write_text(f"{text}older\n")
    assert here("plugin", "install", "--json").objects[0]["changed"]
    assert path.read_text() == text


def test_claude_installs_plugins_itself(here: Here, workspace: Path) -> None:
    """ "prints the two `claude plugin …` lines …, or runs nothing"."""
    told = here("plugin", "install", "--user", "--json").objects[0]
    adds = f"claude plugin marketplace add {shlex.quote(str(ROOT))}"
    assert told["run"] == [adds, "claude plugin install ralph@ralph"]
    assert adds in here("plugin", "install", "--user").out
    assert "claude plugin uninstall ralph@ralph" in here("plugin", "uninstall", "--user").out
    assert os.listdir(workspace) == []


def test_a_package_without_the_plugin_has_the_hooks_for_all_projects(
    here: Here, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The issue: "`--user` works after a pip install"."""
    monkeypatch.setattr("ralph.cli.plugin.SOURCE", str(tmp_path / "site-packages"))
    claude = Path(os.environ["HOME"]) / ".claude"
    told = here("plugin", "install", "--user", "--json").objects[0]
    assert told["file"] == str(claude / "settings.json")
    assert list(hooks(claude / "settings.json")) == list(HOSTS["claude"].events.values())
    assert told["commands"] == [str(claude / "commands" / f"{name}.md") for name in CLAUDES]
    assert "user: installed" in here("plugin", "status").out
    twice = here("plugin", "install")
    assert_clear(twice, 2, "would run twice", "ralph plugin uninstall --agent claude --user")
    assert "are gone from" in here("plugin", "uninstall", "--user").out
    assert (claude.exists(), os.listdir(workspace)) == (False, [])


def test_what_teammates_get_names_nothing_of_this_machine(
    here: Here, repo: Path, tmp_path: Path
) -> None:
    """The issue: "hooks that work for teammates (no absolute paths in a committed file)"."""
    for words in (("--shared",), ("--agent", "codex"), ("--agent", "gemini")):
        done = here("plugin", "install", *words)
        assert "They may be committed" in done.out
    new = git(repo, "status", "--porcelain", "--untracked-files=all").splitlines()
    for path in (line[3:] for line in new):
        text = (repo / path).read_text()
        assert not [place for place in (sys.executable, str(ROOT), str(repo)) if place in text]
    command = hooks(repo / ".claude" / "settings.json")["UserPromptSubmit"][0]["hooks"][0][
        "command"
    ]
    event = json.dumps({"prompt": "/ralph-status", "session_id": "s", "cwd": str(repo)}).encode()

    def called(path: str) -> "subprocess.CompletedProcess[bytes]":
        env = {**os.environ, "PATH": path}
        return subprocess.run(
            ("/bin/sh", "-c", command), input=event, env=env, capture_output=True, check=False
        )

    without = called("/nowhere")
    assert (without.returncode, without.stdout) == (0, b"")
    assert b"ralph is not on PATH" in without.stderr
    program(tmp_path / "ralph", f'exec "{sys.executable}" -m ralph "$@"')
    assert b"no Ralph loop" in called(f"{tmp_path}:{os.environ['PATH']}").stdout
    assert here("plugin", "status", "--json").objects[0]["claude"]["shared"]["state"] == "installed"
    assert_clear(here("plugin", "install"), 2, "--shared")  # they would run twice
    assert here("plugin", "uninstall").code == 0  # wherever they are here
    assert not (repo / ".claude").exists()


def test_what_is_yours_alone_stays_out_of_git(here: Here, repo: Path) -> None:
    assert here("plugin", "install").code == 0
    assert git(repo, "status", "--porcelain") == ""
    git(repo, "add", "--force", FILES["claude"])
    assert here("plugin", "uninstall").code == 0
    done = here("plugin", "install")
    assert_clear(done, 2, "would name paths of this machine", "--shared", "git rm --cached")


@pytest.mark.parametrize(
    ("agent", "environ", "file"),
    [
        ("codex", {}, "home/.codex/hooks.json"),
        ("codex", {"CODEX_HOME": "elsewhere"}, "elsewhere/hooks.json"),
        ("gemini", {}, "home/.gemini/settings.json"),
        ("gemini", {"GEMINI_CLI_HOME": "elsewhere"}, "elsewhere/.gemini/settings.json"),
    ],
)
def test_for_all_projects(
    workspace: Path, tmp_path: Path, agent: str, environ: dict[str, str], file: str
) -> None:
    home = {"HOME": str(tmp_path / "home")}
    env = home | {name: str(tmp_path / place) for name, place in environ.items()}
    words = ("plugin", "install", "--agent", agent, "--user", "--json")
    told = ralph(*words, env=env).objects[0]
    assert (told["file"], told["commands"]) == (str(tmp_path / file), [])
    assert set(hooks(tmp_path / file)) == set(HOSTS[agent].events.values())
    twice = ralph("plugin", "install", "--agent", agent, env=env)
    assert_clear(twice, 2, "and would run twice")
    assert f"ralph plugin uninstall --agent {agent} --user" in twice.err
    assert ralph("plugin", "uninstall", "--agent", agent, "--user", env=env).code == 0
    assert not (tmp_path / file).exists()
    assert os.listdir(workspace) == []


def test_in_a_project_and_for_all_is_refused_the_other_way_round(here: Here) -> None:
    here("plugin", "install", "--agent", "codex")
    done = here("plugin", "install", "--agent", "codex", "--user")
    assert_clear(done, 2, "and would run twice")
    assert "ralph plugin uninstall --agent codex --project" in done.err


def test_hooks_in_the_home_directory_itself(here: Here) -> None:
    """There a project's settings of claude are a person's."""
    home = os.environ["HOME"]
    assert here("plugin", "install", "--shared", "-C", home).code == 0
    os.makedirs(os.path.join(home, "project"))
    done = here("plugin", "install", "-C", os.path.join(home, "project"))
    assert_clear(done, 2, "and would run twice")
    assert "ralph plugin uninstall --agent claude --user" in done.err


def test_beside_the_plugin_that_is_said(here: Here) -> None:
    home = Path(os.environ["HOME"]) / ".claude"
    write(home, "settings.json", '{"enabledPlugins": {"ralph@ralph": true}}')
    write(home, "plugins/installed_plugins.json", '{"plugins": {"ralph@ralph": [{}]}}')
    assert "The plugin ralph@ralph is on" in here("plugin", "install").out
    assert here("plugin", "status", "--json").objects[0]["claude"]["plugin"] is True


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("claude", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"),
        ("codex", "--dangerously-bypass-hook-trust"),
        ("gemini", "GEMINI_CLI_TRUST_WORKSPACE"),
    ],
)
def test_what_people_must_do_besides_is_said(here: Here, agent: str, words: str) -> None:
    """ "says that untrusted hooks are skipped and how to trust them"."""
    assert words in here("plugin", "install", "--agent", agent).out


def test_the_cap_of_held_stops_is_lifted_and_as_it_was_again(here: Here, workspace: Path) -> None:
    """The issue: "`plugin install` offers to lift the host's cap of eight holds"."""
    raw = '{"env": {"A": "1"}}'
    path = write(workspace, FILES["claude"], raw)
    assert "--lift-cap" in here("plugin", "install").out
    done = here("plugin", "install", "--lift-cap")
    assert (done.code, "Claude may be held as often as it takes" in done.out) == (0, True)
    assert json.loads(path.read_text())["env"][CAP] == "0"
    again = here("plugin", "install")  # nothing said: nothing changed
    assert "as before" in again.out
    assert "as often as it takes" in again.out
    assert "--lift-cap" in here("plugin", "install", "--no-lift-cap").out
    assert CAP not in path.read_text()
    here("plugin", "install", "--lift-cap")
    here("plugin", "uninstall")
    assert path.read_text() == raw
    path.write_text('{"env": 5}')
    assert_clear(here("plugin", "install", "--lift-cap"), 2, '"env" is not an object')
    assert path.read_text() == '{"env": 5}'


@pytest.mark.parametrize(("typed", "lifts"), [("perhaps\ny", True), ("", False)])
def test_a_person_is_offered_it(workspace: Path, typed: str, *, lifts: bool) -> None:
    child = pexpect.spawn(RALPH[0], [*RALPH[1:], "plugin", "install"], timeout=30)
    for answer in typed.split("\n"):
        child.expect_exact("Lift that in this project? (y/N): ")
        child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert (CAP in (workspace / FILES["claude"]).read_text()) is lifts


def test_who_goes_away_has_written_nothing(workspace: Path) -> None:
    child = pexpect.spawn(RALPH[0], [*RALPH[1:], "plugin", "install"], timeout=30)
    child.expect_exact("(y/N): ")
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    assert (child.exitstatus, os.listdir(workspace)) == (130, [])


def test_status_tells_all(here: Here, workspace: Path) -> None:
    here("plugin", "install")
    older = json.dumps({"hooks": {"Stop": [hooks(workspace / FILES["claude"])["Stop"][0]]}})
    write(workspace, FILES["codex"], older)
    write(workspace, FILES["gemini"], '{ // mine\n  "a": 1 /* "hooks" */\n}')
    told = here("plugin", "status", "--json").objects[0]
    states = {name: told[name]["project"]["state"] for name in HOSTS}
    assert states == {"claude": "installed", "codex": "outdated", "gemini": "absent"}
    assert told["claude"]["commands"] == [f".claude/commands/{name}.md" for name in CLAUDES]
    said = here("plugin", "status").out
    assert f"codex   project: outdated: {workspace / FILES['codex']} (Stop)" in said
    assert "claude  plugin: ralph@ralph is not on" in said
    before = contents(workspace)
    here("plugin", "install", "--agent", "codex")
    assert len(hooks(workspace / FILES["codex"])["Stop"]) == 1
    here("plugin", "install", "--agent", "gemini")
    here("plugin", "uninstall", "--agent", "gemini")
    assert contents(workspace)[FILES["gemini"]] == before[FILES["gemini"]]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("install", "--project", "--user"), "exclude each other"),
        (("install", "--agent", "opencode"), "'opencode' is not one of"),
        (("install", "extra"), "extra"),
        (("install", "--agent", "codex", "--lift-cap"), "--lift-cap is about claude"),
        (("install", "--user", "--no-lift-cap"), "--lift-cap is about claude"),
        (("mount",), "No such command 'mount'"),
    ],
)
def test_usage(here: Here, workspace: Path, words: tuple[str, ...], why: str) -> None:
    assert_clear(here("plugin", *words), 2, why)
    assert os.listdir(workspace) == []


def test_without_a_command_there_is_help(here: Here) -> None:
    done = here("plugin")
    assert done.code == 2
    assert done.out.startswith("Usage: ralph plugin ")


def test_claude_has_the_same_events_by_either_way() -> None:
    """The plugin's own file, and a project's settings."""
    plugins = json.loads((ROOT / "plugin" / "hooks" / "hooks.json").read_text())["hooks"]
    ours = HOSTS["claude"].groups()
    assert set(plugins) <= set(ours)
    for event, (group,) in plugins.items():
        assert group.get("matcher") == ours[event].get("matcher")


# ------------------------------------------------------------------ ralph mcp


@pytest.mark.parametrize(
    ("words", "file", "command"),
    [
        (("--shared",), ".mcp.json", "ralph"),
        ((), ".mcp.json", sys.executable),
        (("--agent", "gemini"), ".gemini/settings.json", "ralph"),
    ],
)
def test_ralph_mcp_is_registered_and_gone_again(
    here: Here, workspace: Path, words: tuple[str, ...], file: str, command: str
) -> None:
    done = here("plugin", "install", "--mcp", *words)
    assert_clear(done, 0)
    assert f"ralph mcp is in {workspace / file}" in done.out
    server = json.loads((workspace / file).read_text())["mcpServers"]["ralph"]
    assert (server["command"], server["args"][-1]) == (command, "mcp")
    assert f"ralph mcp is in {workspace / file}" in here("plugin", "status").out
    before = contents(workspace)
    assert here("plugin", "install", *words).code == 0  # without the flag it stays as it is
    assert contents(workspace) == before
    assert here("plugin", "uninstall", *words).code == 0
    assert not (workspace / file).exists()
    assert "ralph mcp" not in here("plugin", "status").out


@pytest.mark.parametrize("words", [("--agent", "codex"), ("--user",)])
def test_where_ralph_writes_no_servers_it_says_what_to_type(
    here: Here, workspace: Path, words: tuple[str, ...]
) -> None:
    done = here("plugin", "install", "--mcp", *words)
    assert_clear(done, 0)
    assert "mcp add" in done.out
    assert "ralph mcp" in done.out.replace("-P -m ralph", "ralph")
    assert not (workspace / ".mcp.json").exists()


def test_what_git_keeps_names_no_path_of_this_machine(here: Here, repo: Path) -> None:
    other = '{"mcpServers": {"other": {"command": "x"}}}'
    write(repo, ".mcp.json", other)
    git(repo, "add", ".mcp.json")
    assert_clear(here("plugin", "install", "--mcp"), 2, "git keeps", ".mcp.json", "--shared")
    assert (repo / ".mcp.json").read_text() == other
    assert_clear(here("plugin", "install", "--mcp", "--shared"), 0)
    assert set(json.loads((repo / ".mcp.json").read_text())["mcpServers"]) == {"other", "ralph"}


def test_a_server_of_that_name_that_is_not_ours_is_named(here: Here, workspace: Path) -> None:
    write(workspace, ".mcp.json", '{"mcpServers": {"ralph": {"command": "other"}}}')
    done = here("plugin", "install", "--mcp", "--shared")
    assert_clear(done, 2, "somebody else's", ".mcp.json")
    assert not (workspace / ".claude").exists()  # all of it, or nothing


def test_servers_that_cannot_be_read_keep_nobody_from_uninstalling(
    here: Here, workspace: Path
) -> None:
    assert here("plugin", "install").code == 0
    write(workspace, ".mcp.json", "{broken")
    assert_clear(here("plugin", "install", "--mcp"), 2, ".mcp.json")
    assert here("plugin", "uninstall").code == 0
    assert (workspace / ".mcp.json").read_text() == "{broken"
