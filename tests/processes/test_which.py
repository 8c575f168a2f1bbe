"""Programs are found as `shutil.which` finds them."""

import os
import shutil
from pathlib import Path

import pytest

from ralph.processes.which import which


@pytest.mark.parametrize(
    "program", ["tool", "text", "folder", "none", "./tool", "sub/tool", "", "."]
)
@pytest.mark.parametrize("path", ["{}", "{}/sub:{}", "/nowhere:{}", ":/nowhere", "", ":", None])
def test_a_program_is_found_as_by_shutil(
    program: str, path: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, mode in {"tool": 0o755, "text": 0o644, "sub/tool": 0o755}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(mode)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/sub")
    where = path and path.replace("{}", str(tmp_path))
    for each in (program, str(tmp_path / program)):
        assert which(each, where) == shutil.which(each, path=where)


def test_without_a_search_path_there_is_a_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATH")
    assert os.path.basename(which("sh", None) or "") == "sh"
