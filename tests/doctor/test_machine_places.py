"""What `ralph doctor` finds in git, namespaces, Claude Code's files, terminals, the state."""

import ctypes
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kits.sandbox.stage import overlay_is_usable
from ralph.doctor import sandbox
from ralph.doctor import state as machine_state
from ralph.doctor.checks import Check, CheckState
from ralph.doctor.claude import claude_hooks, claude_session, plugin
from ralph.doctor.git import GIT, git_forge, git_hooks, git_identity, git_program, git_repository
from ralph.doctor.machine import Machine, Screen, terminal_checks
from ralph.doctor.sandbox import SANDBOX, backends
from ralph.doctor.state import STATE, file_system_of
from ralph.sandbox.names import BACKENDS
from ralph.sandbox.namespace import client

MOUNTS = """\
22 1 254:0 / / rw - ext4 /dev/vda rw
23 22 0:20 / /home/me rw - nfs4 server:/ rw
24 22 0:21 / /mnt/my\\040disk rw,relatime shared:1 - cifs //x/y rw
25 22 0:22 / /tmp rw - ext4 /dev/vdb rw
26 25 0:23 / /tmp rw - tmpfs tmpfs rw
"""


def here(directory: Path, **environ: str) -> Machine:
    return Machine(str(directory), {**os.environ, **environ})


def script(directory: Path, name: str, text: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"#!/bin/sh\n{text}\n")
    (directory / name).chmod(0o755)


def test_git_in_a_repository_that_is_in_order(repo: Path) -> None:
    checks = [check(here(repo)) for check in GIT if check is not git_forge]
    assert all(check and check.state is CheckState.OK for check in checks)
    assert [check.found for check in checks if check][1:] == [
        "Ralph tests <tests@ralph.invalid>",
        os.path.realpath(repo),
    ]


def test_without_git_there_is_one_warning_and_no_more(workspace: Path) -> None:
    checks = [check(here(workspace, PATH="/nowhere")) for check in (*GIT, git_hooks)]
    assert [check.state if check else None for check in checks] == [
        CheckState.WARNING,
        *(None, None, None, None),
    ]


@pytest.mark.parametrize(
    ("check", "words", "remedy"),
    [
        (git_identity, "user.name and user.email are not both set", "git config --global"),
        (git_repository, "is in none", "git init"),
    ],
)
def test_what_git_lacks_has_a_remedy(
    workspace: Path, check: Callable[[Machine], Check | None], words: str, remedy: str
) -> None:
    found = check(here(workspace))
    assert found is not None
    assert found.state is CheckState.WARNING
    assert words in found.found
    assert remedy in found.remedy


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo git version 2.17.1", "cannot tell where a worktree's hooks are"),
        ("exit 1", "exit code 1"),
    ],
)
def test_a_git_that_is_old_or_broken(workspace: Path, text: str, words: str) -> None:
    script(workspace / "bin", "git", text)
    found = git_program(here(workspace, PATH=f"{workspace}/bin:{os.environ['PATH']}"))
    assert found.state is CheckState.WARNING
    assert words in found.found


@pytest.mark.parametrize(
    ("said", "words", "remedy"),
    [
        ("fatal: detected dubious ownership in repository", "somebody else", "safe.directory"),
        ("fatal: bad config line 1", "git: exit code 128: fatal: bad config", "Try: git"),
    ],
)
def test_a_repository_that_git_refuses(workspace: Path, said: str, words: str, remedy: str) -> None:
    script(workspace / "bin", "git", f"echo '{said}' >&2; exit 128")
    machine = here(workspace, PATH=f"{workspace}/bin:{os.environ['PATH']}")
    found = git_repository(machine)
    assert found is not None
    assert words in found.found
    assert remedy in found.remedy


@pytest.mark.parametrize(
    ("origin", "environ", "words"),
    [
        (
            "git@github.com:o/r.git",
            {"GH_TOKEN": "t"},
            "o/r at GitHub, with the token from GH_TOKEN",
        ),
        (
            "git@github.com:o/r.git",
            {},
            "no token for GitHub at github.com; --pr needs it. Type: gh",
        ),
        ("git@work:o/r.git", {}, "origin is at work, which may be a GitHub or a GitLab"),
        ("/srv/git/r.git", {"GH_TOKEN": "t"}, None),
        ("", {"GH_TOKEN": "t"}, None),
    ],
)
def test_the_forge_and_where_its_token_is_from(
    repo: Path, origin: str, environ: dict[str, str], words: str | None
) -> None:
    """That there is none is worth knowing, and no trouble."""
    if origin:
        subprocess.run(["git", "remote", "add", "origin", origin], check=True)
    script(repo / "bin", "gh", "exit 1")
    path = f"{repo}/bin:{os.environ['PATH']}"
    found = git_forge(here(repo, PATH=path, **environ))
    assert (found and found.state) == (None if words is None else CheckState.OK)
    assert words is None or words in _found(found)


def test_only_active_git_hooks_are_named(repo: Path) -> None:
    hooks = repo / ".git" / "hooks"
    assert _found(git_hooks(here(repo))) == "none is active"
    script(hooks, "pre-commit", "true")
    script(hooks, "commit-msg.sample", "true")
    (hooks / "pre-push").write_text("not executable")
    assert _found(git_hooks(here(repo))).startswith("pre-commit in ")


def _found(check: Check | None) -> str:
    assert check is not None
    return check.found


def by_name(machine: Machine) -> dict[str, Check]:
    return {check.name: check for check in (look(machine) for look in SANDBOX)}


def test_the_sandbox_is_really_tried_and_never_a_problem(workspace: Path) -> None:
    temporary = workspace / "tmp"
    temporary.mkdir()
    checks = by_name(here(workspace, TMPDIR=str(temporary)))
    assert all(check.state is not CheckState.PROBLEM for check in checks.values())
    assert all(check.remedy for check in checks.values() if check.state is CheckState.WARNING)
    assert list(temporary.iterdir()) == [], "nothing is left behind"


def test_without_unshare_nothing_is_claimed(workspace: Path) -> None:
    checks = by_name(here(workspace, PATH="/nowhere"))
    assert "not tried" in checks["user namespaces"].found


def test_every_backend_is_shown_with_what_it_does_or_why_not(workspace: Path) -> None:
    """Issue: "each backend with the three properties and the reason it is or is not usable"."""
    auto, *found = backends(here(workspace, PATH="/nowhere"))
    assert auto.name == "sandbox: auto"
    assert [check.name for check in found] == list(BACKENDS)
    told = {check.name: check.found for check in found}
    assert told["srt"].startswith("not usable: not installed")
    assert told["worktree"].startswith("not usable: ")
    assert told["direct"] == "none of the three; works in place, with your rights"
    if overlay_is_usable():
        assert told["overlay"].startswith("contain, rollback, egress; ")
        assert "takes overlay" in auto.found


@pytest.mark.parametrize(
    ("program", "text", "state", "words"),
    [
        ("bwrap", "echo bubblewrap 0.8.0", CheckState.OK, "0.8.0 at"),
        ("bwrap", "echo bubblewrap 0.8.0", CheckState.OK, "without overlays"),
        ("bwrap", "echo bubblewrap 0.11.0", CheckState.OK, "and mount overlays"),
        ("bwrap", "[ $1 = --version ]", CheckState.WARNING, "exit code 1"),
    ],
)
def test_other_sandboxes(
    workspace: Path, program: str, text: str, state: CheckState, words: str
) -> None:
    script(workspace / "bin", program, text)
    check = by_name(here(workspace, PATH=f"{workspace}/bin"))[program]
    assert check.state is state
    assert words in check.found


def test_the_remedy_names_the_switch_that_forbids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        client, "read_or_nothing", lambda name: b"0\n" if "userns_clone" in name else b""
    )
    remedy = client.namespace_remedy()
    assert remedy == "sudo sysctl kernel.unprivileged_userns_clone=1"


def test_a_machine_without_these_system_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """ADR 16: macOS has neither."""
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    machine = Machine("/", {})
    assert sandbox.subreaper(machine).state is CheckState.WARNING
    assert sandbox.pidfd(machine).state is CheckState.WARNING


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        (None, "", "not installed"),
        ("settings.json", {"enabledPlugins": {"ralph@here": True}}, "ralph@here is turned on"),
        ("settings.json", {"enabledPlugins": {"ralph@here": False}}, "ralph@here is turned off"),
        ("settings.json", {"enabledPlugins": {"other@here": True}}, "not installed"),
        ("settings.json", {"enabledPlugins": 5}, "not installed"),
        ("plugins/installed_plugins.json", {"plugins": {"ralph@m": []}}, "ralph@m is installed"),
    ],
)
def test_the_plugin(workspace: Path, file: str | None, content: object, words: str) -> None:
    home = Path(os.environ["HOME"])
    if file:
        (home / ".claude" / file).parent.mkdir(parents=True)
        (home / ".claude" / file).write_text(json.dumps(content))
    found = plugin(here(workspace))
    assert found.state is CheckState.OK
    assert words in found.found


def test_without_home_the_plugin_is_not_known(workspace: Path) -> None:
    assert "not known" in plugin(Machine(str(workspace), {})).found


@pytest.mark.parametrize(
    ("text", "state", "words"),
    [
        (None, CheckState.OK, "none in"),
        ("{}", CheckState.OK, "none in"),
        (
            '{"hooks": {"Stop": [{"hooks": [{}, {}]}], "X": 1}}',
            CheckState.OK,
            "settings.json: Stop 2;",
        ),
        ('{"hooks": []}', CheckState.OK, "none in"),
        ("[]", CheckState.WARNING, "holds no JSON object"),
        ("{", CheckState.WARNING, "is not JSON"),
        ("\0" * 10, CheckState.WARNING, "is not JSON"),
        ("[" * 100_000, CheckState.WARNING, "is not JSON"),
    ],
)
def test_hooks_of_the_workspace(
    workspace: Path, text: str | None, state: CheckState, words: str
) -> None:
    (workspace / ".claude").mkdir()
    if text is not None:
        (workspace / ".claude" / "settings.json").write_text(text)
    found = claude_hooks(here(workspace))
    assert found.state is state
    assert words in found.found


def test_a_pipe_in_place_of_a_file_is_not_waited_for(workspace: Path) -> None:
    (workspace / ".claude").mkdir()
    os.mkfifo(workspace / ".claude" / "settings.json")
    assert "is no file" in claude_hooks(here(workspace)).found


def test_a_session_of_claude_is_told(workspace: Path) -> None:
    assert claude_session(here(workspace)) is None
    assert "inside a Claude Code session" in _found(claude_session(here(workspace, CLAUDECODE="1")))


def state_checks(root: Path) -> dict[str, Check]:
    return {check.name: check for look in STATE if (check := look(str(root)))}


def test_a_state_directory_is_made_and_left_clean(tmp_path: Path) -> None:
    checks = state_checks(tmp_path / "new" / "state")
    assert all(check.state is CheckState.OK for check in checks.values())
    assert os.listdir(tmp_path / "new" / "state") == []
    assert checks["permissions"].found.startswith("mode 0700")


def test_a_state_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    checks = state_checks(tmp_path / "file" / "state")
    assert checks["writable"].state is CheckState.PROBLEM
    assert "export RALPH_STATE_DIR=" in checks["writable"].remedy
    assert "permissions" not in checks


@pytest.mark.parametrize(
    ("limit", "state"), [("_LITTLE", CheckState.WARNING), ("_TOO_LITTLE", CheckState.PROBLEM)]
)
def test_little_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, state: CheckState
) -> None:
    monkeypatch.setattr(machine_state, limit, shutil.disk_usage(tmp_path).total + 1)
    assert state_checks(tmp_path)["room"].state is state


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701])
def test_others_can_read_the_state(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    found = state_checks(tmp_path)["permissions"]
    assert (found.state, found.remedy) == (CheckState.WARNING, f"chmod 700 {tmp_path}")


def test_runs_and_sizes_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for run in ("a", "b"):
        (tmp_path / "project" / "runs" / run).mkdir(parents=True)
        (tmp_path / "project" / "runs" / run / "journal.jsonl").write_bytes(b"x" * 1500)
    assert state_checks(tmp_path)["content"].found == "2 runs, 3.0 kB"
    monkeypatch.setattr(machine_state, "_MOST_FILES", 1)
    assert state_checks(tmp_path)["content"].found.startswith("2 runs, more than ")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/x", "ext4"),
        ("/home/me", "nfs4"),
        ("/home/me/state", "nfs4"),
        ("/home/mex", "ext4"),
        ("/mnt/my disk/x", "cifs"),
        ("/tmp/x", "tmpfs"),
    ],
)
def test_the_file_system_of_a_path(tmp_path: Path, path: str, kind: str) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTS)
    assert file_system_of(path, str(tmp_path / "mountinfo")) == kind
    assert file_system_of(path, str(tmp_path / "missing")) == ""


@pytest.mark.parametrize(
    ("kind", "state"),
    [("nfs4", CheckState.WARNING), ("ext4", CheckState.OK), ("tmpfs", CheckState.OK), ("", None)],
)
def test_locks_over_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, state: CheckState | None
) -> None:
    monkeypatch.setattr(machine_state, "file_system_of", lambda _: kind)
    found = machine_state.state_file_system(str(tmp_path))
    assert (found.state if found else None) is state


TTY = Screen(terminal=True, columns=80, rows=24, encoding="utf-8")


@pytest.mark.parametrize(
    ("out", "environ", "color", "colours"),
    [
        (TTY, {}, True, "on"),
        (TTY, {"NO_COLOR": "1"}, False, "off: NO_COLOR is set"),
        (TTY, {"TERM": "dumb"}, False, "off: TERM is dumb"),
        (TTY, {}, False, "off: the settings say so"),
        (Screen(terminal=False), {}, False, "off: stdout is no terminal"),
    ],
)
def test_why_there_are_no_colours(
    out: Screen, environ: dict[str, str], color: bool, colours: str
) -> None:
    checks = {check.name: check for check in terminal_checks(out, TTY, environ, color=color)}
    assert checks["colours"].found == colours
    assert checks["stderr"].found == "a terminal of 80 x 24"
    assert checks["encoding"].state is (CheckState.OK if out is TTY else CheckState.WARNING)


@pytest.mark.parametrize(
    ("screen", "words"),
    [
        (TTY, "a terminal of 80 x 24"),
        (Screen(terminal=True), "a terminal that does not tell its size"),
        (Screen(terminal=False), "no terminal: lines are plain"),
    ],
)
def test_the_streams_in_words(screen: Screen, words: str) -> None:
    out, err, *_ = terminal_checks(screen, screen, {}, color=False)
    assert (out.found, err.found) == (words, words)
