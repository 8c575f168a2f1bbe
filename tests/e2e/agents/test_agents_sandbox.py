"""Real agents in an overlay: they reach their model and nobody else, write at home what comes to
nothing, and work on a project whose host never sees it."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.clis import OWN, Json
from agents.real_agents import PATIENCE, PROMPT, World
from kits.sandbox.stage import overlay_is_usable
from ralph.agents.own import program

pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces"),
]

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = Path(__file__).parent / "sandboxed.py"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
SCRIPT = "echo hello > hello.txt; curl -s http://ralph.invalid; echo over"
CALLS = {  # how each is called; the prompt goes by standard input
    "claude": "claude -p --output-format stream-json --verbose",
    "codex": "codex exec --json --skip-git-repo-check",
    "gemini": "gemini --output-format stream-json",
    "opencode": "opencode run --format json",
    OWN: shlex.join((*program(), "--model", "anthropic:scripted", "--output", "json")),
}


@pytest.fixture(params=["root", "ordinary"])
def who(request: pytest.FixtureRequest, world: World) -> tuple[str, ...]:
    """The words before a command that make it run as this user."""
    if request.param == "root" or os.geteuid():
        if os.geteuid() and request.param == "root":
            pytest.skip("only root can be root")
        return ()
    found = shutil.which(world.kind, path=world.path)
    same = f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    able = f'test -r "$(realpath {found})" && {python(NOBODY)} -c "{same}"'
    done = subprocess.run((*NOBODY, "sh", "-c", able), check=False, stderr=subprocess.DEVNULL)
    if done.returncode:
        pytest.skip("an ordinary user may not run the agents, or this Python, here")
    return NOBODY


def python(who: tuple[str, ...]) -> str:
    """One that this user may run."""
    common = shutil.which("python3", path="/usr/local/bin:/usr/bin") if who else None
    return common or sys.executable


@pytest.fixture
def place(who: tuple[str, ...]) -> Iterator[Path]:
    """A home directory of whoever runs; not in /tmp, where codex lets every command write."""
    made = subprocess.run(
        (*who, "mktemp", "-d", "/var/tmp/ralph-agents-XXXXXX"),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    yield Path(made)
    shutil.rmtree(made, ignore_errors=True)


def tried(world: World, who: tuple[str, ...], place: Path, *flags: str) -> Json:
    """What came of a turn of the agent in a sandbox."""
    project, state = place / "project", place / ".local" / "state" / "ralph"
    subprocess.run((*who, "mkdir", "-p", str(project), str(state)), check=True)
    world.cli.settle_in(place, world.model.url)
    subprocess.run(("chown", "-R", f"--reference={project}", str(place)), check=True)
    before = sorted(os.listdir(place))
    url = world.model.url
    words = [*shlex.split(CALLS[world.kind]), *flags]
    for flag in world.cli.flags(url):
        words += shlex.split(flag) if flag.startswith("-") else [flag]
    directories = world.path.split(os.pathsep)
    wish = {
        "argv": [*words, "-"] if world.kind == "codex" else words,
        "prompt": PROMPT,
        "project": str(project),
        "environ": {"PATH": world.path, "HOME": str(place), **world.cli.env(url)},
        "state": str(state),
        "home": str(place),
        "hosts": [url.removeprefix("http://")],
        "visible": [os.path.dirname(d) for d in directories if d.endswith("node_modules/.bin")],
    }
    done = subprocess.run(
        (*who, python(who), "-B", str(PROGRAM)),
        input=json.dumps(wish),
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}/src:{sysconfig.get_path('purelib')}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(place)) == before
    assert os.listdir(project) == []
    found: Json = json.loads(done.stdout)
    return found


def test_an_agent_works_in_an_overlay(world: World, who: tuple[str, ...], place: Path) -> None:
    """In the loop: "Works … with the real `claude` and `codex` inside"."""
    world.plays(world.shell(SCRIPT), {"text": "It is there."})
    found = tried(world, who, place, world.cli.autonomy)
    assert found["code"] == 0, found["said"]
    assert found["changes"] == ["hello.txt"], found["said"]
    assert "ralph.invalid" in found["refused"]
    assert not found["lacks"]
    # It kept its settings and sessions at home, in there; our own keeps none.
    assert (len(found["at_home"]) > len(["project", ".local"])) is (world.kind != OWN)
    assert len(world.model.main_calls()) == 2


@pytest.mark.parametrize("kind", ["codex"])
def test_codex_has_its_own_sandbox_within_ours(
    world: World, who: tuple[str, ...], place: Path
) -> None:
    """Backends: "nested": codex's lets commands write in the project, and call nobody."""
    outside = f"echo x > {place}/x"
    world.plays(world.shell(f"{SCRIPT}; {outside}"), {"text": "It is there."})
    found = tried(world, who, place, "-s", "workspace-write")
    assert found["code"] == 0, found["said"]
    assert found["changes"] == ["hello.txt"], found["said"]
    assert found["refused"] == []
    assert "x" not in found["at_home"]
