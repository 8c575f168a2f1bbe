"""What runs code that somebody hands over: which Python, and which runner of TypeScript."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ralph.errors import ConfigError
from ralph.processes.interpreters import python_of, typescript_runner

INSTALL = "Install node 22.6 or newer, deno or bun."
# What these print for `--version`, recorded from the real ones.
NODE, DENO, BUN = "v24.21.0", "deno 2.9.6 (stable, release, x86_64-unknown-linux-gnu)", "1.4.4"
STDIN = ("node", "--disable-warning=ExperimentalWarning", "--input-type=module-typescript", "-")
FILE = ("node", "--disable-warning=ExperimentalWarning", "--experimental-strip-types")


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ("v22.6.0", FILE),  # it takes types from a file alone
        ("v22.7.0", FILE),
        ("v22.17.1", FILE),
        ("v22.18.0", STDIN),
        ("v23.0.0", FILE),
        ("v23.5.0", FILE),
        ("v23.6.0", STDIN),
        (NODE, STDIN),
        ("v30.0.0-nightly", STDIN),
    ],
)
def test_node_by_its_version(node: str, words: tuple[str, ...]) -> None:
    """Issue: "TypeScript by node >= 22.6, deno or bun"."""
    said = {"node": node, "deno": DENO, "bun": BUN}
    found = typescript_runner("", said.__getitem__)
    assert found[-len(words) :] == words
    assert (found[0] == "sh") == (words is FILE)


@pytest.mark.parametrize(
    ("said", "program"),
    [
        ({"deno": DENO, "bun": BUN}, "deno"),
        ({"bun": BUN}, "bun"),
        ({"node": "v20.20.2", "bun": BUN}, "bun"),
        ({"node": "", "deno": DENO}, "deno"),
    ],
)
def test_others_where_node_is_not_or_too_old(said: dict[str, str], program: str) -> None:
    assert typescript_runner("", lambda name: said.get(name, ""))[0] == program


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ("v20.20.2", "node 20.20.2 is too old to run TypeScript"),
        ("v22.5.1", "node 22.5.1 is too old to run TypeScript"),
        ("nonsense", "node nonsense is too old to run TypeScript"),
        ("", "there is nothing here that runs TypeScript"),
    ],
)
def test_the_error_names_what_to_install(node: str, why: str) -> None:
    with pytest.raises(ConfigError) as error:
        typescript_runner("", {"node": node, "deno": "", "bun": ""}.__getitem__)
    assert (error.value.message, error.value.remedy) == (why, INSTALL)


def program(directory: Path, name: str, *lines: str) -> None:
    """A program on PATH."""
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)


def test_programs_are_looked_for_on_the_path(tmp_path: Path) -> None:
    directory = tmp_path / "bin"
    program(directory, "node", "echo v20.1.0")
    program(directory, "deno", "exit 3")
    program(directory, "bun", f'test "$1" = --version && echo {BUN}')
    assert typescript_runner(str(directory)) == ("bun", "run", "-")
    with pytest.raises(ConfigError, match="nothing here that runs"):
        typescript_runner(str(tmp_path))


def test_a_file_for_node_is_beside_the_project_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative imports lead where they lead from standard input."""
    directory, project = tmp_path / "bin", tmp_path / "project"
    project.mkdir()
    test = 'test "$1" = --version && echo v22.6.0 && exit'
    program(directory, "node", test, 'echo "$*"', 'for last; do :; done; cat "$last"; exit 7')
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    words = typescript_runner(os.environ["PATH"])
    done = subprocess.run(
        words, input=b"const x: number = 1", capture_output=True, check=False, cwd=project
    )
    first, _, code = done.stdout.decode().partition("\n")
    assert first.startswith(" ".join(FILE[1:]))
    assert first.endswith(".mts")
    assert "/" not in first.split()[-1]
    assert (code, done.returncode) == ("const x: number = 1", 7)
    assert os.listdir(project) == []


def test_whatever_is_here_runs_it(tmp_path: Path) -> None:
    """Really, where it is installed."""
    try:
        words = typescript_runner(os.environ["PATH"])
    except ConfigError as error:
        pytest.skip(error.words)
    (tmp_path / "lib.mts").write_text("export const n: number = 6;\n")
    code = b'import {n} from "./lib.mts"; const x: number = 7; console.log(n * x)'
    done = subprocess.run(words, input=code, capture_output=True, check=False, cwd=tmp_path)
    assert (done.stdout, done.returncode) == (b"42\n", 0), done.stderr


def test_which_python(tmp_path: Path) -> None:
    """That of the project's .venv, else python3, else our own."""
    directory = tmp_path / "bin"
    assert python_of(str(tmp_path), str(directory)) == sys.executable
    program(directory, "python3")
    assert python_of(str(tmp_path), str(directory)) == str(directory / "python3")
    own = tmp_path / ".venv" / "bin"
    own.mkdir(parents=True)
    program(own, "python")
    assert python_of(str(tmp_path), str(directory)) == str(own / "python")
    (own / "python").chmod(0o644)
    assert python_of(str(tmp_path), str(directory)) == str(directory / "python3")
