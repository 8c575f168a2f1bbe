"""tools/bootstrap finds a way to a venv on any machine, or says what to type; no network here."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
UTILITIES = ("sh", "cat", "chmod", "cksum", "cut", "dirname", "id", "mkdir", "rm")

# A python3 that can only do what $CAN says, and writes down what it was asked to do.
PYTHON = f"""#!/bin/sh
case "$1" in -c) exec "{sys.executable}" "$@" ;; --version) echo "Python 3.99"; exit ;; esac
echo "python3 $*" >>"$LOG"
can() {{ case " $CAN " in *" $1 "*) ;; *) mkdir -p .venv/bin; exit 1 ;; esac; }}
case "$*" in
    "-m venv --without-pip .venv") can pip; new_venv bare ;;
    "-m venv .venv") can venv; new_venv ;;
    "-m virtualenv --quiet .venv") can virtualenv; new_venv ;;
    "-m pip"*) can pip ;;
esac
"""
# Makes a .venv whose python has a pip that does as it is told by $CAN; `bare`: none.
NEW_VENV = f"""#!/bin/sh
mkdir -p .venv/bin
cat >.venv/bin/python <<'EOF'
#!/bin/sh
case "$1" in -c) exec "{sys.executable}" "$@" ;; --version) echo "Python 3.99"; exit ;; esac
[ ! -e .venv/bare ] || exit 1
case "$*" in *install*) echo "pip $*" >>"$LOG"; case " $CAN " in *" fail "*) exit 1 ;; esac ;; esac
EOF
chmod +x .venv/bin/python
[ "$1" != bare ] || cat /dev/null >.venv/bare
"""
UV = """#!/bin/sh
echo "uv $*" >>"$LOG"
[ "$1" != venv ] || new_venv bare
"""


class Machine:
    """A clone on a machine that has only the commands a test gives it."""

    def __init__(self, directory: Path) -> None:
        self.clone, self.bin = directory / "clone", directory / "bin"
        self.log = directory / "log"
        self.bin.mkdir()
        for name in UTILITIES:
            found = shutil.which(name)
            assert found is not None
            (self.bin / name).symlink_to(found)
        self.command("new_venv", NEW_VENV)
        (self.clone / "tools").mkdir(parents=True)
        shutil.copy(ROOT / "tools" / "bootstrap", self.clone / "tools")
        (self.clone / "pyproject.toml").write_text("[project]\n")

    def command(self, name: str, source: str) -> None:
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(source)
        (self.bin / name).chmod(0o755)

    def start(self, can: str = "") -> subprocess.Popen[str]:
        environment = {"PATH": str(self.bin), "LOG": str(self.log), "CAN": can}
        return subprocess.Popen(
            [str(self.clone / "tools" / "bootstrap")],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )

    def bootstrap(self, can: str = "") -> tuple[int, str]:
        """The exit code, and what it says."""
        self.log.write_text("")
        process = self.start(can)
        _, said = process.communicate()
        return process.returncode, said

    def asked(self, words: str) -> int:
        """How often something was asked to do this."""
        return self.log.read_text().count(words)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.command("python3", PYTHON)
    return machine


@pytest.mark.parametrize(
    ("can", "uv", "way", "install"),
    [
        ("venv", False, "venv", "pip -m pip install"),
        ("venv pip", True, "venv", "pip -m pip install"),
        ("pip", True, "uv", "uv pip install --quiet --python .venv/bin/python"),
        ("virtualenv pip", False, "virtualenv", "pip -m pip install"),
        ("pip", False, "system_pip", "python3 -m pip --python .venv/bin/python install"),
    ],
)
def test_the_first_way_that_works_is_taken(
    machine: Machine, can: str, uv: bool, way: str, install: str
) -> None:
    """Issue §1: "`python3 -m venv` may be missing (Debian): fall back to uv or virtualenv"."""
    if uv:
        machine.command("uv", UV)
    code, said = machine.bootstrap(can)
    assert code == 0, said
    assert f"by {way}\n" in said
    assert machine.asked(install) == 1
    assert machine.asked("--editable .[dev,docs]") == 1


def test_the_virtualenv_command_will_do(machine: Machine) -> None:
    machine.command("virtualenv", "#!/bin/sh\nnew_venv\n")
    code, said = machine.bootstrap()
    assert code == 0
    assert "by virtualenv_command\n" in said


@pytest.mark.parametrize(("user", "line"), [("0", "apt-get"), ("1000", "sudo apt-get")])
def test_where_nothing_works_the_one_line_to_type_is_printed(
    machine: Machine, user: str, line: str
) -> None:
    """Issue §1: "else print the one line to type"."""
    machine.command("apt-get", "#!/bin/sh\n")
    machine.command("id", f"#!/bin/sh\necho {user}\n")
    code, said = machine.bootstrap()
    assert code == 2
    assert said.endswith(f"  {line} install -y python3-venv\n")
    assert not (machine.clone / ".venv").exists()


def test_an_old_python_is_not_taken(machine: Machine) -> None:
    machine.command("python3", "#!/bin/sh\nexit 1\n")
    code, said = machine.bootstrap("venv")
    assert code == 2
    assert "Python 3.11 or newer is needed" in said


def test_a_newer_python_beside_an_old_one_is_found(machine: Machine) -> None:
    (machine.bin / "python3").rename(machine.bin / "python3.12")
    machine.command("python3", "#!/bin/sh\nexit 1\n")
    assert machine.bootstrap("venv")[0] == 0


def test_uv_brings_a_python_where_there_is_none(machine: Machine) -> None:
    (machine.bin / "python3").unlink()
    machine.command("uv", UV)
    assert machine.bootstrap()[0] == 0
    assert machine.asked("uv venv --quiet --python >=3.11 .venv") == 1


def test_a_second_run_does_nothing(machine: Machine) -> None:
    machine.bootstrap("venv")
    assert machine.bootstrap("venv") == (0, "")
    assert machine.log.read_text() == ""


def test_a_changed_pyproject_installs_again_into_the_same_venv(machine: Machine) -> None:
    machine.bootstrap("venv")
    (machine.clone / "pyproject.toml").write_text("[project]\nname='x'\n")
    code, said = machine.bootstrap("venv")
    assert code == 0
    assert "made .venv" not in said
    assert machine.asked("pip -m pip install") == 1


def test_a_moved_clone_gets_a_new_venv(machine: Machine) -> None:
    machine.bootstrap("venv")
    machine.clone = machine.clone.rename(machine.clone.parent / "moved clone")
    code, said = machine.bootstrap("venv")
    assert code == 0
    assert "made .venv" in said


def test_a_failed_install_is_said_and_tried_again(machine: Machine) -> None:
    code, said = machine.bootstrap("venv fail")
    assert code == 1
    assert "Try again" in said
    assert machine.bootstrap("venv")[0] == 0
    assert machine.asked("pip -m pip install") == 1


def test_two_at_once_make_one_venv(machine: Machine) -> None:
    both = [machine.start("venv"), machine.start("venv")]
    said = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum("made .venv" in text for text in said) == 1
    assert machine.asked("pip -m pip install") == 1


def test_make_alone_lists_its_words() -> None:
    """Issue §1: "`Makefile` words: demo test check lint fmt build install all …"."""
    said = subprocess.check_output(["make", "-C", str(ROOT), "--no-print-directory"], text=True)
    words = {line.split()[0] for line in said.splitlines()}
    assert words >= {"demo", "test", "check", "lint", "fmt", "build", "install", "all"}
    assert words >= {"test-agents", "cover", "clean", "help"}


class Agents:
    """tools/agents with an npm that only pretends."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cache = directory / "cache"
        (directory / "tools").mkdir()
        (directory / ".venv" / "bin").mkdir(parents=True)
        (directory / ".venv" / "bin" / "python").symlink_to(sys.executable)
        (directory / "bin").mkdir()
        shutil.copy(ROOT / "tools" / "agents", directory / "tools")
        for name in ("sh", "dirname", "mkdir", "mv", "rm", "env", "chmod"):
            (directory / "bin" / name).symlink_to(str(shutil.which(name)))

    def npm(self, ending: str) -> None:
        path = self.directory / "bin" / "npm"
        log = self.directory / "npm.log"
        path.write_text(
            f'#!/bin/sh\necho "$@" >>{log}\nmkdir -p $3/node_modules/.bin\n'
            "for agent in claude codex gemini opencode claude-agent-acp codex-acp srt; do\n"
            "  echo 'echo 1.0' >$3/node_modules/.bin/$agent\n"
            f"  chmod +x $3/node_modules/.bin/$agent\ndone\n{ending}\n"
        )
        path.chmod(0o755)

    def run(self, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.directory / "bin"), "RALPH_AGENTS_DIR": str(self.cache)}
        return subprocess.run(
            [str(self.directory / "tools" / "agents")],
            env={**environment, **more},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def agents(tmp_path: Path) -> Agents:
    return Agents(tmp_path)


def test_without_npm_the_real_agents_are_skipped_but_not_in_ci(agents: Agents) -> None:
    """Issue §6: "Skips with a clear word where npm is missing; in CI it must run"."""
    skipped, failed = agents.run(), agents.run(CI="true")
    assert (skipped.returncode, skipped.stdout) == (0, "")
    assert "skipped: npm is missing" in skipped.stderr
    assert failed.returncode == 1


def test_real_agents_are_installed_once_at_pinned_versions(agents: Agents) -> None:
    agents.npm("exit 0")
    first, second = agents.run(), agents.run()
    assert first.stdout == second.stdout
    assert all(map(os.path.isdir, first.stdout.strip().split(":")))
    asked = (agents.directory / "npm.log").read_text().splitlines()
    assert [line.split()[-1] for line in asked] == [
        "@anthropic-ai/claude-code@2.1.197",
        "@openai/codex@0.166.0",
        "@google/gemini-cli@0.61.0",
        "opencode-ai@1.18.33",
        "@agentclientprotocol/claude-agent-acp@0.100.0",
        "@agentclientprotocol/codex-acp@2.6.0",
        "@anthropic-ai/sandbox-runtime@0.0.78",
    ]


def test_an_install_whose_agents_do_not_start_is_not_kept(agents: Agents) -> None:
    agents.npm("rm $3/node_modules/.bin/codex")
    assert agents.run().returncode != 0
    agents.npm("exit 0")
    assert agents.run().returncode == 0


def test_an_interrupted_install_is_begun_anew(agents: Agents) -> None:
    agents.npm("kill -9 $PPID")
    assert agents.run().stdout == ""
    agents.npm("exit 0")
    again = agents.run(CODEX_VERSION="0.1")
    assert "/codex-0.1/node_modules/.bin:" in again.stdout
    assert not (agents.cache / "incoming").exists()
