"""What a sandbox shows of the places that it hides: tools, and nothing beside them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sandbox_support import needs_overlay, policy, tree

from ralph.kernel.value import replace
from ralph.sandbox import policy as plan
from ralph.sandbox.backends import overlay
from ralph.sandbox.interface import SandboxPolicy
from ralph.sandbox.policy import repository_outside
from ralph.sandbox.tools import needed

GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@y")
HERE = "/tmp"


def with_path(*directories: Path, **more: str) -> SandboxPolicy:
    wish = policy()
    path = os.pathsep.join([*map(str, directories), wish.environ["PATH"]])
    return replace(wish, environ={**wish.environ, "PATH": path, **more})


@pytest.fixture
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in a place that every sandbox hides."""
    directory = tmp_path_factory.mktemp("hidden")
    if not str(directory.resolve()).startswith(f"{HERE}/"):
        pytest.skip("temporary files are elsewhere")
    return directory


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def virtual_environment(root: Path, python: Path) -> Path:
    """One whose interpreter is found by two links, as tools that install Python make them."""
    (python / "bin").mkdir(parents=True)
    (python / "lib").mkdir()
    (python / "bin" / "python3").symlink_to(os.path.realpath(sys.executable))
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "python").symlink_to(python / "bin" / "python3")
    (root / "pyvenv.cfg").write_text(f"home = {python}/bin\n")
    packages = root / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
    packages.mkdir(parents=True)
    (packages / "there.py").write_text("print(6 * 7)\n")
    return root


@needs_overlay
@pytest.mark.parametrize("how", ["on PATH", "VIRTUAL_ENV", "a link in the project"])
def test_a_virtual_environment_below_tmp_works(hidden: Path, tmp_path: Path, how: str) -> None:
    """With the interpreter behind it; what lies beside it is not seen, and nothing is written."""
    project = tree(tmp_path / "project", a="1\n")
    root = virtual_environment(hidden / "venv", hidden / "python")
    tree(hidden, secret="x\n")
    wish = with_path(root / "bin") if how == "on PATH" else policy()
    if how == "VIRTUAL_ENV":
        wish = with_path(VIRTUAL_ENV=str(root))
    if how == "a link in the project":
        (project / ".venv").symlink_to(root)
    with overlay.open(str(project), wish) as sandbox:
        assert sandbox.run(f"{root}/bin/python", "-c", "import there").output == b"42\n"
        assert not sandbox.bash(f"cat {hidden}/secret").output
        assert sandbox.bash(f"echo x > {root}/new").code != 0


@needs_overlay
def test_programs_that_links_lead_to(hidden: Path, tmp_path: Path) -> None:
    """By the name that PATH has for them, also if that goes by a link, as some shells' do."""
    project = tree(tmp_path / "project", a="1\n")
    program(hidden / "tool" / "bin" / "real", 'cat "$(dirname "$(realpath "$0")")/../lib/data"')
    tree(hidden / "tool", lib__data="data\n")
    (hidden / "now").symlink_to(hidden / "tool")
    (hidden / "links").mkdir()
    (hidden / "links" / "linked").symlink_to(hidden / "tool" / "bin" / "real")
    with overlay.open(str(project), with_path(hidden / "now" / "bin", hidden / "links")) as sandbox:
        assert [sandbox.run(name).output for name in ("real", "linked")] == [b"data\n"] * 2


@needs_overlay
def test_a_program_that_shall_run(hidden: Path, tmp_path: Path) -> None:
    """`ralph sandbox run -- /tmp/tool/run`; but nothing of what is Ralph's."""
    project = tree(tmp_path / "project", a="1\n")
    run = program(hidden / "tool" / "run", "echo ran")
    secret = program(Path(os.environ["RALPH_STATE_DIR"]) / "run", "echo ran")
    with overlay.open(str(project), replace(policy(), programs=(str(run), str(secret)))) as sandbox:
        assert sandbox.run(str(run)).output == b"ran\n"
        assert sandbox.run(str(secret)).code == 127


def test_a_temporary_directory_is_never_shown_as_a_whole(tmp_path: Path) -> None:
    wish = replace(policy(), environ={"PATH": f"{HERE}:{HERE}/bin", "PYTHONPATH": HERE})
    assert HERE not in needed(str(tmp_path), wish)


# ------------------------------------------------------------------ a stray repository


@pytest.mark.parametrize("kind", ["empty", "of other files"])
def test_a_repository_that_does_not_contain_the_project(tmp_path: Path, kind: str) -> None:
    """git passes by a `.git` that is empty, or whose files are elsewhere."""
    project = tree(tmp_path / "project", a="1\n")
    (tmp_path / ".git").mkdir()
    if kind == "of other files":
        subprocess.run([*GIT, "init", "-q"], cwd=tmp_path, check=True)
        other = str(tree(tmp_path / "other", b="1\n"))
        subprocess.run([*GIT, "config", "core.worktree", other], cwd=tmp_path, check=True)
    assert repository_outside(str(project), os.environ) == []


def test_a_repository_of_a_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody's `git init` there; it counts if it has files of the project."""
    monkeypatch.setattr(plan, "PRIVATE", (str(tmp_path),))
    project = tree(tmp_path / "project", a="1\n")
    subprocess.run([*GIT, "init", "-q"], cwd=tmp_path, check=True)
    assert repository_outside(str(project), os.environ) == []
    subprocess.run([*GIT, "add", "project"], cwd=tmp_path, check=True)
    assert repository_outside(str(project), os.environ) == [str(tmp_path / ".git")]
