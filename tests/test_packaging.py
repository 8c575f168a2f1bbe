"""The wheel has everything that Ralph needs: installed in an empty home, it works."""

import json
import os
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from kits.examples import ROOT


@pytest.fixture(scope="module")
def ralph(tmp_path_factory: pytest.TempPathFactory) -> str:
    """`ralph` out of a wheel, in an environment of its own that borrows what it depends on."""
    place = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place))
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    venv.create(place / "venv")
    (packages,) = (place / "venv").glob("lib/python*/site-packages")
    # The path of our own environment, without reading its .pth files: these name this clone.
    (packages / "borrowed.pth").write_text("\n".join(site.getsitepackages()))
    python = str(place / "venv" / "bin" / "python")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps")
    done = subprocess.run((*pip, "--no-index", str(wheel)), capture_output=True, check=False)
    if b"No module named pip" in done.stderr:
        pytest.skip("this environment has no pip")
    assert done.returncode == 0, done.stderr
    return str(place / "venv" / "bin" / "ralph")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--version",), "ralph "),
        (("prd", "init", "--json"), "prd.md"),
        (("explain",), "maximumIterations"),
        (("hook", "session-start"), ""),
    ],
)
def test_an_installed_ralph_has_what_it_needs(
    ralph: str, words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = run(ralph, *words, home=tmp_path)
    assert (done.returncode, said in done.stdout) == (0, True), done.stderr


def test_an_installed_ralph_has_the_page_of_ralph_web(ralph: str) -> None:
    (installed,) = Path(ralph).parent.parent.glob("lib/python*/site-packages/ralph/web/static")
    ours = ROOT / "src" / "ralph" / "web" / "static"
    files = {str(path.relative_to(ours)) for path in ours.rglob("*") if path.is_file()}
    assert {str(p.relative_to(installed)) for p in installed.rglob("*") if p.is_file()} == files


def test_an_installed_ralph_has_the_looks_of_a_report(ralph: str, tmp_path: Path) -> None:
    python = str(Path(ralph).with_name("python"))
    done = run(python, "-c", "from ralph.ui.paper.page import style; print(style())", home=tmp_path)
    assert "--accent" in done.stdout, done.stderr
    assert ".plot" in done.stdout


def test_an_installed_ralph_shows_its_demo(ralph: str, tmp_path: Path) -> None:
    done = run(ralph, "demo", "--json", home=tmp_path)
    assert json.loads(done.stdout.splitlines()[-1])["reason"] == "completed", done.stderr


def run(*command: str, home: Path) -> subprocess.CompletedProcess[str]:
    env = {"HOME": str(home), "TMPDIR": str(home), "PATH": os.defpath, "LANG": "C.UTF-8"}
    return subprocess.run(
        command,
        cwd=home,
        env=env,
        stdin=subprocess.DEVNULL,
        text=True,
        capture_output=True,
        check=False,
    )
