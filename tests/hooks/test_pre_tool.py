"""`ralph hook pre-tool`: exit 0 lets a call pass, exit 2 refuses it; nothing else happens."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kits.thorough import dealt
from ralph.hooks import pre_tool
from ralph.hooks.pre_tool import choices, guarded, project_of, refusal

SCRIPT = Path(pre_tool.__file__)
CAPTURES = Path(__file__).parent / "captures"
ON = {"RALPH_GUARD": "1", "HOME": "/home/me"}
DANGEROUS = "rm -rf /"


def event(command: object = "ls", **changes: object) -> bytes:
    """What a host sends (docs/facts.md §4)."""
    whole: dict[str, object] = {"hook_event_name": "PreToolUse", "tool_name": "Bash"}
    whole |= {"cwd": "/home/me/project", "tool_input": {"command": command, "description": "d"}}
    return json.dumps({k: v for k, v in (whole | changes).items() if v is not None}).encode()


def run(
    raw: bytes, environ: dict[str, str], cwd: Path, *argv: str
) -> subprocess.CompletedProcess[bytes]:
    command = argv or (sys.executable, "-I", "-S", str(SCRIPT))
    return subprocess.run(
        command, input=raw, env=environ, cwd=cwd, capture_output=True, check=False
    )


@pytest.mark.parametrize("name", sorted(path.name for path in CAPTURES.glob("*.json")))
def test_calls_as_hosts_really_send_them_pass_and_are_refused(name: str) -> None:
    sent = json.loads((CAPTURES / name).read_text("utf-8"))
    assert refusal(json.dumps(sent).encode(), ON, "/") is None
    sent["tool_input"]["command"] = DANGEROUS
    assert "file-system" in (refusal(json.dumps(sent).encode(), ON, "/") or "")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        event()[:-10],
        b"\xff\xfe",
        event("ls").replace(b"ls", b"\xff"),
        b"[]",
        b"null",
        b'"Bash"',
        b"[" * 100_000,
        event(tool_name=None),
        event(tool_name=5),
        event(cwd=5),
        event(cwd="relative"),
        event(cwd="/a\0b"),
        event(None),
        event(5),
        event(["ls"]),
        event(tool_input=None),
        event(tool_input="ls"),
        event(tool_input=[]),
        event("echo 'unclosed"),
        event("rm \ud800 -rf /"),
        event(DANGEROUS),
    ],
)
def test_what_cannot_be_read_is_refused_where_the_guard_is_on(raw: bytes, tmp_path: Path) -> None:
    """Malformed, truncated, not UTF-8, no command, unreadable command: denied."""
    assert refusal(raw, ON, str(tmp_path)) is not None
    assert refusal(raw, {}, str(tmp_path)) is None


@pytest.mark.parametrize("tool", ["Read", "Write", "Edit", "WebFetch", "mcp__x__y", "bash", ""])
def test_other_tools_pass(tool: str) -> None:
    assert refusal(event(DANGEROUS, tool_name=tool), ON, "/") is None


def test_without_a_directory_the_process_has_the_say(tmp_path: Path) -> None:
    assert refusal(event("rm -rf build", cwd=None), ON, str(tmp_path / "x")) is None


@pytest.mark.parametrize(
    ("marker", "environ", "on"),
    [
        (None, {}, False),
        (None, {"RALPH_GUARD": "1"}, True),
        (None, {"RALPH_GUARD": "0"}, False),
        ('{"mode": "direct"}', {}, True),
        ('{"mode": "direct"}', {"RALPH_GUARD": "0"}, True),
        ('{"mode": "sandbox"}', {}, False),
        ('{"mode": "sandbox"}', {"RALPH_GUARD": "1"}, True),
        ('{"mode": "direct", "pid": 7, "max_iterations": 3}', {}, True),
        ("{", {}, True),
        ("[]", {}, True),
        ("{}", {}, True),
        ('{"mode": 5}', {}, True),
        ('{"mode": "direct", "run": "a"}', {"RALPH_RUN": "a"}, True),
        ('{"mode": "direct", "run": "a"}', {"RALPH_RUN": "b"}, False),
        ('{"mode": "direct", "run": "a"}', {}, False),
        ('{"mode": "direct", "run": "a"}', {"RALPH_GUARD": "1"}, True),
        ('{"mode": "direct", "run": "a"}', {"RALPH_RUN": "a", "RALPH_GUARD": "0"}, False),
        ('{"mode": "direct", "run": null}', {"RALPH_GUARD": "0"}, True),
        ('{"mode": "direct", "run": null}', {}, True),
        ('{"mode": "direct", "run": 5}', {"RALPH_RUN": "5"}, False),
    ],
)
def test_the_guard_is_on_in_direct_mode(
    tmp_path: Path, marker: str | None, environ: dict[str, str], on: bool
) -> None:
    """R §3: `.ralph-active` says the mode; one that cannot be read means the worst, and one that
    names a run acts only where RALPH_RUN matches."""
    inner = tmp_path / "project" / "sub"
    inner.mkdir(parents=True)
    if marker is not None:
        (tmp_path / "project" / ".ralph-active").write_text(marker)
    assert guarded(str(inner), environ)[0] is on
    assert (refusal(event(DANGEROUS, cwd=str(inner)), environ, "/") is not None) is on


def test_a_marker_further_down_turns_nothing_off(tmp_path: Path) -> None:
    inner = tmp_path / "sub"
    inner.mkdir()
    (tmp_path / ".ralph-active").write_text('{"mode": "direct"}')
    (inner / ".ralph-active").write_text('{"mode": "sandbox"}')
    assert guarded(str(inner), {}) == (True, str(tmp_path))


def test_the_marker_is_found_from_the_project_that_the_host_names(tmp_path: Path) -> None:
    (tmp_path / ".ralph-active").write_text('{"mode": "direct"}')
    assert guarded("/", {"CLAUDE_PROJECT_DIR": str(tmp_path)}) == (True, str(tmp_path))


def test_a_marker_that_is_a_pipe_or_a_directory_means_the_worst(tmp_path: Path) -> None:
    for name, make in (("pipe", os.mkfifo), ("directory", os.mkdir)):
        (tmp_path / name).mkdir()
        make(tmp_path / name / ".ralph-active")
        assert guarded(str(tmp_path / name), {})[0]


def test_the_project_is_the_nearest_that_somebody_marked(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert project_of(str(inner), {}) == str(inner)
    (tmp_path / ".git" / "objects").mkdir(parents=True)
    assert project_of(str(inner), {}) == str(tmp_path)
    (tmp_path / "a" / ".git").mkdir()  # a stray one, which git passes by
    assert project_of(str(inner), {}) == str(tmp_path)
    (tmp_path / "a" / ".ralph-active").touch()
    assert project_of(str(inner), {}) == str(tmp_path / "a")
    assert project_of(str(inner), {"CLAUDE_PROJECT_DIR": "/x"}) == "/x"
    assert project_of(str(inner), {"CLAUDE_PROJECT_DIR": "x"}) == str(tmp_path / "a")


@pytest.mark.parametrize(
    ("shared", "local", "allow"),
    [
        (None, None, ()),
        ('{"guard": {"allow": ["a *"]}}', None, ("a *",)),
        ('{"guard": {"allow": ["a"]}}', '{"guard": {"allow": ["b"]}}', ("b",)),
        ('{"guard": {"allow": ["a"]}}', '{"guard": {"allow": null}}', ("a",)),
        ('{"guard": {"allow": ["a"]}}', "{", ("a",)),
        ('{"guard": {"allow": "a"}}', None, ()),
        ('{"guard": {"allow": ["a", 5]}}', None, ("a",)),
        ('{"guard": []}', None, ()),
        ("[]", None, ()),
    ],
)
def test_the_settings_may_allow_commands(
    tmp_path: Path, shared: str | None, local: str | None, allow: tuple[str, ...]
) -> None:
    (tmp_path / ".ralph").mkdir()
    for name, text in (("settings.json", shared), ("settings.local.json", local)):
        if text is not None:
            (tmp_path / ".ralph" / name).write_text(text)
    assert choices(str(tmp_path))[1] == allow


def test_an_allowed_command_passes(tmp_path: Path) -> None:
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph" / "settings.json").write_text('{"guard": {"allow": ["pkill -f *"]}}')
    assert refusal(event("pkill -f vite", cwd=str(tmp_path)), ON, "/") is None
    assert refusal(event("pkill vite", cwd=str(tmp_path)), ON, "/") is not None


def test_links_are_resolved_before_paths_are_judged(tmp_path: Path) -> None:
    real = tmp_path / "deep" / "down" / "project"
    real.mkdir(parents=True)
    (tmp_path / "link").symlink_to(real)
    environ = {"RALPH_GUARD": "1", "HOME": str(tmp_path / "home")}
    named = {**environ, "CLAUDE_PROJECT_DIR": str(tmp_path / "link")}
    inner = event(f"rm -rf {tmp_path}/link/build", cwd=str(tmp_path / "link"))
    assert refusal(inner, named, "/") is None
    assert refusal(event("rm -rf ..", cwd=str(tmp_path / "link")), named, "/") is not None


@pytest.mark.parametrize(
    "argv", [(), (sys.executable, "-m", "ralph", "hook", "pre-tool")], ids=["by itself", "ralph"]
)
def test_the_program_says_it_with_its_exit_code(tmp_path: Path, argv: tuple[str, ...]) -> None:
    environ = {**os.environ, **ON}
    passed = run(event("ls"), environ, tmp_path, *argv)
    assert (passed.returncode, passed.stdout, passed.stderr) == (0, b"", b"")
    refused = run(event(DANGEROUS), environ, tmp_path, *argv)
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert b"[ralph] guard: refused (file-system): it deletes /" in refused.stderr
    off = run(event(DANGEROUS), {**environ, "RALPH_GUARD": ""}, tmp_path, *argv)
    assert (off.returncode, off.stdout, off.stderr) == (0, b"", b"")


def test_a_failure_of_its_own_is_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A crash or exit 1 would let the call pass (docs/facts.md §4)."""

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(pre_tool, "refusal", fail)
    monkeypatch.setattr(pre_tool, "sent", lambda: b"")
    assert pre_tool.main() == 2
    assert "the guard itself failed" in capfd.readouterr().err


def test_closed_streams_and_a_missing_directory_are_no_way_around(tmp_path: Path) -> None:
    hook = f'"{sys.executable}" -I -S "{SCRIPT}"'
    for closed in ("<&-", "2>&-", ">&-"):
        shell = ["sh", "-c", f"exec {hook} {closed}"]
        assert run(event(DANGEROUS), ON, tmp_path, *shell).returncode == 2
    off = {"HOME": "/home/me"}
    assert run(event(DANGEROUS), off, tmp_path, "sh", "-c", f"exec {hook} <&-").returncode == 0
    gone = "mkdir gone && cd gone && rmdir ../gone && exec "
    assert run(event(DANGEROUS), ON, tmp_path, "sh", "-c", gone + hook).returncode == 2


def test_an_endless_event_is_refused(tmp_path: Path) -> None:
    assert run(b"x" * (17 << 20), ON, tmp_path).returncode == 2


@pytest.mark.parametrize(
    "command",
    dealt(
        [
            "a;" * 190_000,
            "echo " + "{a," * 60_000,
            "awk '" + "system (" * 30_000 + "'",
            "|".join(["cat"] * 90_000),
            "x=" + "a" * 100_000 + "; echo ${x##*b}",
        ],
        2,
    ),
    ids=["commands", "braces", "awk", "pipes", "trimmed"],
)
def test_what_takes_too_long_is_refused(command: str, tmp_path: Path) -> None:
    """A host stops waiting after a while, and lets the call pass."""
    # In a process of its own: what interrupts it here would interrupt whoever measures us.
    done = run(event(command), ON, tmp_path)
    assert done.returncode == 2
    assert b"cannot follow" in done.stderr


def test_a_text_that_grows_without_end_is_refused(tmp_path: Path) -> None:
    for command in ("a=x;" + "a=$a$a;" * 200, "a=xxxxxxxx;" + "a=$(echo $a$a);" * 100):
        assert "very long text" in (refusal(event(command), ON, str(tmp_path)) or "")


def test_every_way_in_refuses_what_the_parser_cannot_follow(tmp_path: Path) -> None:
    loop = "for ((i=0;i<3;i++)); { echo $i; }"
    environ = {**os.environ, **ON}
    ralph = (sys.executable, "-m", "ralph")
    assert run(event(loop), environ, tmp_path, *ralph, "hook", "pre-tool").returncode == 2
    assert run(b"", environ, tmp_path, *ralph, "guard", "check", "--", loop).returncode == 2
    assert run(event(loop), environ, tmp_path).returncode == 2


@pytest.mark.parametrize(
    ("settings", "kept", "allowed"),
    [
        ("{}", True, True),
        ("{}", False, False),
        ('{"guard": {"level": "strict"}}', True, False),
        ('{"guard": {"level": "standard"}}', True, True),
        ('{"guard": {"level": 5}}', True, False),
    ],
)
def test_local_history_is_free_where_the_run_has_kept_what_there_was(
    tmp_path: Path, settings: str, *, kept: bool, allowed: bool
) -> None:
    """ "in place only after the run has saved uncommitted files and stashes … otherwise strict"."""
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph" / "settings.json").write_text(settings)
    environ = {**ON, **({"RALPH_START": "refs/ralph/x/start"} if kept else {})}
    told = refusal(event("git commit --amend", cwd=str(tmp_path)), environ, "/")
    assert (told is None) is allowed
    if told is not None:
        assert 'add "git commit --amend" to guard.allow in .ralph/settings.json' in told


@pytest.mark.parametrize(
    ("head", "allowed"),
    [("ref: refs/heads/mine\n", True), ("ref: refs/heads/main\n", False), ("1234\n", False)],
)
def test_the_branch_that_is_checked_out_is_known(tmp_path: Path, head: str, allowed: bool) -> None:
    environ = {**ON, "RALPH_START": "refs/ralph/x/start"}
    pushes = event("git push --force-with-lease", cwd=str(tmp_path / "sub"))
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head)
    assert (refusal(pushes, environ, "/") is None) is allowed
    (tmp_path / ".git").rename(tmp_path / "elsewhere")
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")  # a work tree
    assert (refusal(pushes, environ, "/") is None) is allowed
    (tmp_path / ".git").unlink()
    assert refusal(pushes, environ, "/") is not None
