"""Machines of their own: names, listings, what comes back of them, and how they are set up."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from ralph.errors import ConfigError
from ralph.sandbox.backends import guest
from ralph.sandbox.backends.guest import Guest, SandboxTool
from ralph.sandbox.backends.machine import login, name_of, setup_script
from ralph.sandbox.changes.manifest import Stamp, by_stamps
from ralph.sandbox.interface import ChangeKind, FileType

ROOT = Path(__file__).resolve().parent.parent.parent
SETUP = ROOT / "plugin" / "sandbox" / "setup.sh"


@pytest.mark.parametrize(
    ("project", "filler", "name"),
    [
        ("/work/shop", "_", "ralph-_work_shop"),  # R: everything but [A-Za-z0-9._-] is `_`
        ("/work/shop", "-", "ralph--work-shop"),  # sbx: no `_` in names
        ("/work/my-shop.v2", "_", "ralph-_work_my-shop.v2"),
        ("/work/my-shop", "-", "ralph--work-my-shop-34314487"),
        ("/work/my_shop", "_", "ralph-_work_my_shop-81138a5e"),
        ("/work/é b", "_", "ralph-_work___b-04d1bcf3"),
    ],
)
def test_names(project: str, filler: str, name: str) -> None:
    assert name_of(project, filler) == name


def test_no_two_projects_have_one_name() -> None:
    projects = ["/a/b", "/a-b", "/a_b", "/a b", "/a/b/", f"/{'x' * 80}", f"/{'x' * 81}", "/é"]
    for filler in "-_":
        names = {name_of(project, filler) for project in projects}
        assert len(names) == len(projects)
        assert all(len(name) <= 63 for name in names)
        assert filler == "_" or not any("_" in name for name in names)


def test_the_login_has_valid_json_and_is_private() -> None:
    """R: "must contain valid JSON (`{}` minimum)"."""
    home = os.environ["HOME"]
    directory = Path(login(os.environ))
    assert directory == Path(os.path.realpath(home)) / ".dclaude_state"
    assert (directory / ".claude.json").read_text() == "{}\n"
    assert (directory / ".claude").stat().st_mode & 0o777 == 0o700
    (directory / ".claude.json").write_text('{"a": 1}')
    login(os.environ)
    assert (directory / ".claude.json").read_text() == '{"a": 1}'


@pytest.mark.parametrize("home", ["", "relative", "/dev/null"])
def test_no_place_for_the_login(home: str) -> None:
    with pytest.raises(ConfigError):
        login({"HOME": home})


# ------------------------------------------------------------------ listings


def test_a_listing_is_read_whatever_it_holds() -> None:
    line = b"%b %b 0 0 %b 7 1.5 2.5 %b"
    output = b"\0".join(
        [
            line % (b"f", b"644", b"3", b"a b\nc\xff"),
            line % (b"d", b"755", b"4096", b"sub"),
            line % (b"s", b"755", b"0", b"sub/socket"),
            b"noise",
            b"",
        ]
    )
    found = guest.parse_listing(output)
    assert {path: listed.entry for path, listed in found.items()} == {
        b"a b\nc\xff": FileType.FILE,
        b"sub": FileType.DIRECTORY,
        b"sub/socket": FileType.OTHER,
    }
    assert guest.wanted(sorted(found), found) == [b"a b\nc\xff", b"sub"]


def listed(text: str) -> dict[bytes, Stamp]:
    """`path kind mode content`, a line each."""
    lines = [line.split() for line in text.strip().splitlines()]
    kinds = {"f": FileType.FILE, "d": FileType.DIRECTORY, "l": FileType.LINK, "p": FileType.OTHER}
    return {
        path.encode(): Stamp(kinds[kind], int(mode, 8), (b"0", b"0"), (content.encode(),))
        for path, kind, mode, content in lines
    }


def test_changes_by_listings() -> None:
    before = listed("same f 644 1\nedited f 644 1\nmode f 644 1\ngone f 644 1\nlink l 777 1")
    now = listed("same f 644 1\nedited f 644 2\nmode f 755 1\nnew f 644 1\nlink l 777 2\np p 644 1")
    found = {change.path: change.kind for change in by_stamps(before, now)}
    assert found == {
        "edited": ChangeKind.MODIFIED,
        "gone": ChangeKind.DELETED,
        "link": ChangeKind.SYMLINK,
        "mode": ChangeKind.MODE,
        "new": ChangeKind.ADDED,
        "p": ChangeKind.ADDED,
    }


def archive(*members: tuple[str, bytes, str]) -> io.BytesIO:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, kind, target in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            member.size = 1 if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(b"x"))
    data.seek(0)
    return data


@pytest.mark.parametrize(
    "members",
    [
        [("../out", tarfile.REGTYPE, "")],
        [("/tmp/ralph-out", tarfile.REGTYPE, "")],
        [("link", tarfile.SYMTYPE, ".."), ("link/out", tarfile.REGTYPE, "")],
        [("link", tarfile.SYMTYPE, "/"), ("link", tarfile.REGTYPE, "")],
    ],
)
def test_an_archive_cannot_write_elsewhere(
    tmp_path: Path, members: list[tuple[str, bytes, str]]
) -> None:
    """Whoever works in the sandbox decides what is in the archive."""
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises((ValueError, OSError)):
        guest.unpack(archive(*members), str(into))
    assert os.listdir(tmp_path) == ["into"]
    assert not os.path.exists("/tmp/ralph-out")


def test_an_archive_with_devices(tmp_path: Path) -> None:
    guest.unpack(
        archive(("./dev", tarfile.CHRTYPE, ""), (".", tarfile.DIRTYPE, ""), ("./d/f", b"0", "")),
        str(tmp_path),
    )
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["d", "d/f"]


# ------------------------------------------------------------------ setup.sh


def set_up(home: Path, *arguments: str, stdin: str = "", **env: str) -> int:
    words = ["bash", "-c", SETUP.read_text(), "setup.sh", *arguments]
    if stdin:
        words = ["bash"]
    env = {"PATH": os.environ["PATH"], "RALPH_AGENT_HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(words, input=stdin, text=True, env=env, check=False).returncode


def config(home: Path, key: str) -> str:
    words = ["git", "config", "--file", str(home / ".gitconfig"), "--get", key]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    return tmp_path / "state"


@pytest.mark.parametrize("times", [1, 2])
def test_setup_links_the_login_and_names_who_commits(
    tmp_path: Path, state: Path, times: int
) -> None:
    """R: "auth symlinks and git config"; again does no harm."""
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "from-the-template").touch()
    for _ in range(times):
        assert set_up(home, str(state)) == 0
    assert os.readlink(home / ".claude") == str(state / ".claude")
    assert os.readlink(home / ".claude.json") == str(state / ".claude.json")
    assert (state / ".claude.json").read_text() == "{}\n"
    assert (config(home, "user.email"), config(home, "user.name")) == (
        "ralph@localhost",
        "Ralph Loop",
    )


def test_setup_keeps_what_is_there(tmp_path: Path, state: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\temail = me@example.invalid\n")
    (state / ".claude.json").write_text('{"a": 1}')
    assert set_up(home, str(state)) == 0
    assert (state / ".claude.json").read_text() == '{"a": 1}'
    assert config(home, "user.email") == "me@example.invalid"


def test_setup_without_a_login_says_so(tmp_path: Path) -> None:
    assert set_up(tmp_path / "home", str(tmp_path / "missing")) == 2
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("path", [SETUP, ROOT / "src/ralph/sandbox/backends/guest.sh"], ids=str)
def test_scripts_are_well_formed(path: Path) -> None:
    shell = "bash" if path == SETUP else "sh"
    assert subprocess.run([shell, "-n", str(path)], check=False).returncode == 0
    if checker := shutil.which("shellcheck"):
        subprocess.run([checker, "-s", shell, str(path)], check=True)


def test_one_source_of_the_script() -> None:
    """A checkout has it in `plugin`, a wheel beside the module; nowhere are there two."""
    assert setup_script() == SETUP.read_text()
    assert list(ROOT.glob("src/**/setup.sh")) == []
    text = (ROOT / "pyproject.toml").read_text()
    assert '"plugin/sandbox/setup.sh" = "ralph/sandbox/backends/setup.sh"' in text


# ------------------------------------------------------------------ a tool


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; print('first', file=sys.stderr); sys.exit('last words')", "last words"),
        ("import sys; print('on stdout'); sys.exit(3)", "on stdout"),
        ("raise SystemExit(9)", "exit code 9"),
    ],
)
def test_the_last_words_of_a_tool_are_told(code: str, said: str) -> None:
    tool = SandboxTool((sys.executable, "-c", code), os.environ)
    with pytest.raises(ConfigError, match=f"cannot fly: {said}$"):
        tool.must("fly", "up")


def test_a_tool_that_does_not_answer() -> None:
    tool = SandboxTool((sys.executable, "-c", "import time; time.sleep(60)"), os.environ)
    assert tool.ask(patience=0.1).code == 124
    assert SandboxTool(("nosuchtool",), os.environ).ask().code == 127


def test_what_is_typed_for_a_program() -> None:
    guest = Guest(SandboxTool(("sbx",), {}), "name", "/p")
    assert guest.command(["a", "-b"], "-i") == ("sbx", "exec", "-i", "-w", "/p", "name", "a", "-b")
