"""The files of the page: what others wrote is as they published it; nothing breaks the policy."""

import hashlib
import re
from pathlib import Path

import pytest

import ralph.web

STATIC = Path(ralph.web.__file__).parent / "static"
OURS = sorted(
    path
    for path in STATIC.rglob("*")
    if path.suffix in {".html", ".js", ".css"} and path.parent.name != "vendor"
)
LONGEST = 300  # lines of a module


def test_what_others_wrote_is_unchanged_and_has_a_licence() -> None:
    vendor = STATIC / "vendor"
    lines = (vendor / "sha256sums").read_text().splitlines()
    listed = {name: digest for digest, name in map(str.split, lines)}
    here = {path.name for path in vendor.iterdir()} - {"sha256sums", "README.md"}
    assert set(listed) == here
    for name, digest in listed.items():
        assert hashlib.sha256((vendor / name).read_bytes()).hexdigest() == digest, name
    table = (vendor / "README.md").read_text()
    assert all(f"`{name}`" in table for name in here if not name.endswith(".LICENSE"))


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_our_own_files_keep_to_the_policy(path: Path) -> None:
    text = path.read_text()
    assert "://" not in text  # no host is called, none is named
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    assert "dangerouslySetInnerHTML" not in text
    assert not re.search(r"localStorage|sessionStorage|indexedDB", text)
    assert len(text.splitlines()) <= LONGEST
    if path.suffix == ".html":
        assert not re.search(r"<style|style=|<script(?![^>]*\ssrc=)|\son\w+=", text)


def test_every_file_that_a_module_names_is_there() -> None:
    for path in OURS:
        for name in re.findall(r'(?:from|import) "(\.[^"]+)"', path.read_text()):
            assert (path.parent / name).is_file(), f"{path.name}: {name}"
        for name in re.findall(r'"/static/([^"$]+)"', path.read_text()):
            assert (STATIC / name).is_file(), f"{path.name}: {name}"
