"""The plugin's scripts: `ralph prd` where it is installed, and what can be done where it is not."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def basics(folder: Path) -> str:
    """A PATH with what a script needs, and what is made in the folder."""
    for name in ("sh", "dirname", "readlink"):
        (folder / name).symlink_to(shutil.which(name) or "/nowhere")
    return str(folder)


def script(name: str, path: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [str(ROOT / "plugin" / "scripts" / name), *words]
    env = {"PATH": basics(path), "HOME": str(path)}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def fake(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("name", "command"),
    [("ralph.sh", "run"), ("ralph-init.sh", "init"), ("ralph-archive.sh", "archive")],
)
def test_the_scripts_are_ralph_prd(name: str, command: str, tmp_path: Path) -> None:
    """R §3, §10: the same flags, word for word."""
    says = 'if [ "$1" = --version ]; then echo ralph 1.2.3; else printf "<%s>" "$@"; fi; exit 7'
    fake(tmp_path / "ralph", says.replace("exit 7", "[ $1 = --version ] || exit 7"))
    done = script(name, tmp_path, "--label", "a b", "")
    assert (done.returncode, done.stdout) == (7, f"<prd><{command}><--label><a b><>")


def test_another_program_of_that_name_is_passed_over(tmp_path: Path) -> None:
    fake(tmp_path / "ralph", 'echo "Ralph the mouse"')
    fake(tmp_path / "uvx", 'printf "<%s>" "$@"')
    where = tmp_path / "copy" / "plugin"
    shutil.copytree(ROOT / "plugin", where)
    done = subprocess.run(
        [where / "scripts" / "ralph.sh", "-n", "3"],
        env={"PATH": basics(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"<--from><{tmp_path}/copy><ralph><prd><run><-n><3>"


def test_a_link_called_ralph_does_not_ask_itself_for_ever(tmp_path: Path) -> None:
    where = tmp_path / "copy" / "plugin"
    shutil.copytree(ROOT / "plugin", where)
    (tmp_path / "ralph").symlink_to(where / "scripts" / "ralph.sh")
    env = {"PATH": basics(tmp_path)}
    done = subprocess.run(
        [tmp_path / "ralph"], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "ralph is not installed" in done.stderr


# ------------------------------------------------------------------ nothing is installed


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a marketplace has, in a folder with a blank in its name."""
    place = tmp_path_factory.mktemp("market") / "a clone"
    for name in ("plugin", "src"):
        unwanted = shutil.ignore_patterns("__pycache__", "testing")
        shutil.copytree(ROOT / name, place / name, ignore=unwanted)
    return place


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A PATH without ralph, with git and a Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    basics(folder)
    (folder / "git").symlink_to(shutil.which("git") or "/nowhere")
    (folder / "python3").symlink_to(os.path.realpath(sys.executable))
    return folder


def from_clone(
    clone: Path, bare: Path, name: str, where: Path, *words: str
) -> "subprocess.CompletedProcess[str]":
    who = {"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "n"}
    who |= {"GIT_CONFIG_KEY_1": "user.email", "GIT_CONFIG_VALUE_1": "n@localhost"}
    return subprocess.run(
        [clone / "plugin" / "scripts" / name, *words],
        env={"PATH": str(bare), "HOME": str(bare.parent / "home"), **who},
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
    )


def git(where: Path, *words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=where, text=True)


def test_from_a_clone_with_nothing_installed_stories_begin_and_are_put_away(
    clone: Path, bare: Path, tmp_path: Path
) -> None:
    """ "works from a marketplace clone without installing the package, stdlib only"."""
    place = tmp_path / "shop"
    place.mkdir()
    git(place, "init", "--quiet")
    made = from_clone(clone, bare, "ralph-init.sh", tmp_path, "--project-dir", "shop", "--name=a")
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith("Made ralph/prompt.md, ralph/prd.md")
    assert f"ralph itself is not installed yet. Type:  pipx install '{clone}'" in made.stdout
    assert json.loads((place / "ralph" / "tasks.json").read_text())["branchName"] == "ralph/a"
    assert (place / ".gitignore").read_text() == ".ralph-active\n"
    (place / "ralph" / "prd.md").write_text("# Shop\n")
    git(place, "add", "--all")
    done = from_clone(clone, bare, "ralph-archive.sh", place, "--label", "b c", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert (place / said["archive"] / "prd.md").read_text() == "# Shop\n"
    assert said["archive"].endswith("-b c")
    assert git(place, "rev-parse", "HEAD").strip() == said["commit"]


def test_from_a_clone_the_same_is_said_as_by_ralph(clone: Path, bare: Path, tmp_path: Path) -> None:
    """Same words, same exit codes: only who says them differs."""
    for command, words in (
        ("init", ("--name", " ")),
        ("init", ("--json", "--name", "x")),
        ("archive", ("--label", "../x")),
        ("archive", ("--ralph-dir", "nowhere")),
        ("archive", ("--ralph-dir", "nowhere", "--json")),
    ):
        told = []
        for plain in (True, False):
            shutil.rmtree(tmp_path / "w", ignore_errors=True)
            (tmp_path / "w").mkdir()
            if plain:
                done = from_clone(clone, bare, f"ralph-{command}.sh", tmp_path / "w", *words)
            else:
                done = subprocess.run(
                    [sys.executable, "-m", "ralph", "prd", command, *words],
                    env={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")},
                    cwd=tmp_path / "w",
                    capture_output=True,
                    text=True,
                    check=False,
                )
            told.append((done.returncode, done.stdout, done.stderr))
        assert told[0] == told[1]


@pytest.mark.parametrize("name", ["ralph-init.sh", "ralph-archive.sh"])
def test_from_a_clone_usage_is_told(name: str, clone: Path, bare: Path, tmp_path: Path) -> None:
    helped = [from_clone(clone, bare, name, tmp_path, flag) for flag in ("-h", "--help")]
    assert [done.returncode for done in helped] == [0, 0]
    assert helped[0].stdout == helped[1].stdout
    assert f"\nExamples:\n  {name}" in helped[0].stdout
    assert not [line for line in helped[0].stdout.splitlines() if len(line) > 100]
    for words in (["--nonsense"], ["x"], ["-d"], ["-d", "nowhere"]):
        wrong = from_clone(clone, bare, name, tmp_path, *words)
        assert (wrong.returncode, wrong.stdout) == (2, "")
        assert wrong.stderr.startswith("[ralph] ")
        assert "--help" in wrong.stderr or "-d DIR" in wrong.stderr


@pytest.mark.parametrize("name", ["ralph.sh", "ralph-init.sh", "ralph-archive.sh"])
def test_from_a_clone_where_nothing_can_run_it_is_told_what_to_type(
    name: str, clone: Path, bare: Path, tmp_path: Path
) -> None:
    """A run needs the package; the others a Python that is new enough."""
    if name != "ralph.sh":
        (bare / "python3").unlink()
        fake(bare / "python3", "exit 1")
    done = from_clone(clone, bare, name, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Type:  pipx install '{clone}'" in done.stderr
    assert not (tmp_path / "ralph").exists()


def test_a_newer_python_is_found(clone: Path, bare: Path, tmp_path: Path) -> None:
    (bare / "python3").rename(bare / "python3.12")
    fake(bare / "python3", "exit 1")
    assert from_clone(clone, bare, "ralph-init.sh", tmp_path).returncode == 0
    assert (tmp_path / "ralph" / "tasks.json").is_file()


def test_the_shell_scripts_are_clean() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    scripts = sorted((ROOT / "plugin").rglob("*.sh"))
    done = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
