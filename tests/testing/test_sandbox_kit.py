"""Every sandbox passes the conformance kit, as root and as an ordinary user, and the kit sees
through one that is wrong."""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kits.sandbox import containment, going_on, keeping
from kits.sandbox.kit import BACKENDS, CHECKS, FAKED, faked, main, tried
from kits.sandbox.stage import Stage, overlay_is_usable

ROOT = Path(__file__).resolve().parent.parent.parent
CONTAINMENT = {check.__name__ for check in containment.CHECKS}
OVERLAYS = {"throws_home_away", "reaches_a_port", "tells_whom_it_refused"}
KEEPING = {check.__name__ for check in (*keeping.CHECKS, *going_on.CHECKS)}
NOT_APPLICABLE = {  # so that nothing stops to apply unseen
    "overlay": set[str](),
    "srt": OVERLAYS,
    "sbx": {"too_deep", "holes", "comes_back", "is_cut_off", *OVERLAYS},
    "docker": {"undone", "spares", "holds", *KEEPING, *OVERLAYS},
    "worktree": CONTAINMENT,
    "direct": {"undone", "spares", "holds", *KEEPING, *CONTAINMENT},
}
if os.geteuid():  # a fake machine has no root then
    NOT_APPLICABLE["sbx"] |= {"unreadable", "goes_on_with_modes"}
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


needs_overlay = pytest.mark.skipif(
    not overlay_is_usable(), reason="this machine allows no namespaces"
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "backend",
    [
        pytest.param("overlay", marks=needs_overlay),
        pytest.param("worktree", marks=pytest.mark.slow),
        pytest.param("direct", marks=pytest.mark.slow),
    ],
)
def test_every_backend_passes(backend: str, check: Callable[[Stage], None]) -> None:
    """Interface: "One conformance kit for all backends"."""
    outcome = tried(backend, check, os.environ)
    expected = "not applicable" if check.__name__ in NOT_APPLICABLE[backend] else "passed"
    assert outcome.state == expected, outcome.why


@needs_overlay
@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("backend", FAKED)
def test_every_backend_passes_on_a_fake_of_its_tool(
    backend: str, check: Callable[[Stage], None], tmp_path: Path
) -> None:
    """Backends: "tested with a recording fake of each CLI that checks every argument"."""
    outcome = tried(backend, check, faked(str(tmp_path / "bin"), os.environ))
    expected = "not applicable" if check.__name__ in NOT_APPLICABLE[backend] else "passed"
    assert outcome.state == expected, outcome.why


def python_for_everybody() -> str | None:
    """An interpreter of the right version that an ordinary user may run."""
    for path in (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin")):
        words = "import sys; sys.exit(sys.version_info < (3, 11))"
        # By way of a shell: setpriv itself still has root's rights when it looks for a program.
        script = f'exec "{path}" -c "{words}" 2> {os.devnull}'
        try:
            done = subprocess.run([*NOBODY, "sh", "-c", script], check=False, cwd="/")
        except OSError:
            return None
        if done.returncode == 0:
            return path
    return None


def copy_for_everybody(place: Path, python: str) -> str:
    """A copy of Ralph that everybody may read: the clone may lie in a home that is root's alone."""
    for name in ("src", "plugin", "tests/kits"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        # Nobody may add to it: without this each process compiles all that it imports.
        subprocess.run([python, "-m", "compileall", "-qq", str(place / name)], check=True)
        subprocess.run(["chmod", "-R", "a+rX", str(place / name)], check=True)
    return os.pathsep.join((str(place / "src"), str(place / "tests")))


@needs_overlay
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
def test_every_backend_passes_as_an_ordinary_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Backends: "Works as root and as an ordinary user"."""
    python = python_for_everybody()
    if python is None:
        pytest.skip("no Python that an ordinary user may run")
    place = subprocess.run(
        [*NOBODY, "mktemp", "-d"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
        cwd="/",
    ).stdout.strip()
    env = {"PATH": "/usr/bin:/bin", "HOME": place, "TMPDIR": place}
    env |= {"PYTHONPATH": copy_for_everybody(Path(place), python), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [*NOBODY, python, "-m", "kits.sandbox.kit", "--json", "--fake"],
            cwd=place,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    finally:
        shutil.rmtree(place, ignore_errors=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == len(CHECKS) * len((*BACKENDS, *FAKED)), done.stderr
    assert [row for row in rows if row["state"] == "FAILED"] == []


def test_the_kit_sees_a_sandbox_that_does_not_contain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that says more than it does fails."""
    from ralph.sandbox.backends import direct
    from ralph.sandbox.interface import Capabilities

    able = Capabilities(True, True, True, "boasts")
    monkeypatch.setattr(direct, "probe", lambda project, policy: able)
    failed = {c.__name__ for c in CHECKS if tried("direct", c, os.environ).state == "FAILED"}
    assert {*CONTAINMENT - {"reaches_a_port", "tells_whom_it_refused"}, "spares", "holds"} <= failed


def test_the_table_names_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    assert main(["direct"], os.environ, out) == 0
    lines = out.getvalue().splitlines()
    assert [line.split()[1] for line in lines] == [check.__name__ for check in CHECKS]
