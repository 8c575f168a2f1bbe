"""The guard of tests/conftest.py really fails a test that reaches beyond its own world."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).resolve().parent / "conftest.py"


AGENT = "os.environ['PATH'] = os.path.dirname(HOME) + '/bin'; subprocess.run(['claude'])"
BEYOND = {
    "open(HOME + '/x', 'w')": "writes into the real home",
    "pathlib.Path(HOME, '.claude').mkdir()": "writes into the real home",
    "os.symlink('/nowhere', HOME + '/x')": "writes into the real home",
    "subprocess.run(['mkdir', '-p', HOME + '/.local/state/ralph'])": (
        "wrote Ralph's files into the real home"
    ),
    AGENT: "starts a real agent",
}
INSIDE = [
    "open('mine', 'w').close(); open(os.path.expanduser('~/x'), 'w').close()",
    "assert 'ANTHROPIC_API_KEY' not in os.environ and 'CLAUDECODE' not in os.environ",
    "assert os.environ['HOME'] != HOME and os.path.isdir(os.environ['RALPH_STATE_DIR'])",
    "pytest.raises(FileNotFoundError, subprocess.run, ['claude'])",
    "subprocess.run(['git', 'init', '-q'], check=True)",
]


def run_tests(directory: Path, *bodies: str, mark: str = "") -> str:
    """Run guarded tests in a world whose real home and PATH are ours to look at; what is said."""
    tests, home = directory / "project" / "tests", directory / "home"
    for made in (tests, home, directory / "tmp", directory / "bin"):
        made.mkdir(parents=True)
    shutil.copy(CONFTEST, tests)
    agent = directory / "bin" / "claude"
    agent.write_text("#!/bin/sh\n")
    agent.chmod(0o755)
    source = f"import os, subprocess, pathlib, pytest\nHOME = {str(home)!r}\n"
    for number, body in enumerate(bodies):
        source += f"{mark}\ndef test_{number}(workspace):\n    {body}\n"
    (tests / "test_it.py").write_text(source)
    environment = {"HOME": str(home), "TMPDIR": str(directory / "tmp"), "ANTHROPIC_API_KEY": "x"}
    environment |= {
        "COLUMNS": "500",
        "PATH": f"{directory / 'bin'}:{os.environ['PATH']}",
        "CLAUDECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", str(tests)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout


def test_reaching_beyond_fails_the_test(tmp_path: Path) -> None:
    """STYLE §10: a fixture fails any test that touches HOME or starts an unscripted agent."""
    said = run_tests(tmp_path, *BEYOND)
    for number, why in enumerate(BEYOND.values()):
        line = next(
            line
            for line in said.splitlines()
            if line.startswith(("FAILED", "ERROR")) and f"::test_{number} " in line
        )
        assert why in line


def test_staying_inside_is_fine(tmp_path: Path) -> None:
    said = run_tests(tmp_path, *INSIDE)
    assert f"{len(INSIDE)} passed" in said, said


def test_a_test_of_real_agents_may_start_one(tmp_path: Path) -> None:
    said = run_tests(tmp_path, AGENT, mark="@pytest.mark.agents")
    assert "1 passed" in said, said


def test_a_repo_has_one_commit_and_its_own_author(repo: Path) -> None:
    log = ["git", "log", "--format=%an %s"]
    assert subprocess.check_output(log, text=True) == "Ralph tests Begin\n"
    assert Path.cwd() == repo
