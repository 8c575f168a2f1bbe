"""What every sandbox that can be undone must do when it is kept, with trees that are hard to read
and to write. Part of the conformance kit, and so tried as root and as an ordinary user."""

import os
import stat
from collections.abc import Callable

from kits.sandbox.stage import Stage
from ralph.sandbox.backends.base import OpenSandbox

_DEEP = """
import os
for n in range(30):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
open("bottom", "w").write("deep")
"""
_BY_TAR = "the files of a machine come as an archive"
_LEVELS = 30
_LARGE = 64 * 1024 * 1024


def rebuilt(stage: Stage) -> None:
    """What was in a directory that was removed and made anew is gone, at every depth."""
    stage.needs("rollback")
    stage.put("gone/deep/deeper/file", "gone too\n")
    with stage.open() as sandbox:
        _run(sandbox, "rm -rf gone; mkdir -p gone/deep/deeper; echo n > gone/deep/deeper/n")
        done = sandbox.commit()
    assert not done.spared, done
    found = [name for _, _, names in os.walk(os.path.join(stage.project, "gone")) for name in names]
    assert found == ["n"], found


def unreadable(stage: Stage) -> None:
    """Modes that keep us out are no obstacle, and are kept."""
    stage.needs("rollback")
    if os.geteuid():
        stage.but("sbx", "a fake machine has no root where we are none")
    modes = {"n": 0o000, "n/m": 0o000, "n/m/1": 0o640, "r": 0o644, "f": 0o000, "edited": 0o200}
    with stage.open() as sandbox:
        _run(
            sandbox,
            "echo v > v; mkdir -p n/m r; echo 1 > n/m/1; chmod 640 n/m/1; echo 2 > r/2; "
            "echo 3 > f; echo 4 > edited; chmod 000 n/m n f; chmod 644 r; chmod 200 edited",
        )
        found = {change.path for change in sandbox.changes()}
        assert found == {*modes, "v", "r/2"}, found
        assert {change.path for change in sandbox.changes()} == found, "looking changes nothing"
        done = sandbox.commit()
    assert not done.spared, done
    assert stage.text("v") == "v\n"
    for path, mode in modes.items():  # the outer before the inner
        whole = os.path.join(stage.project, path)
        assert stat.S_IMODE(os.lstat(whole).st_mode) == mode, path
        os.chmod(whole, 0o700)
    os.chmod(os.path.join(stage.project, "r"), 0o700)
    assert [stage.text(path) for path in ("n/m/1", "r/2", "f", "edited")] == [
        f"{number}\n" for number in range(1, 5)
    ]


def too_deep(stage: Stage) -> None:
    """A path that is longer than the system takes one is kept, and so is the rest."""
    stage.needs("rollback")
    stage.but("sbx", _BY_TAR)
    with stage.open() as sandbox:
        assert sandbox.eval(_DEEP).code == 0
        _run(sandbox, "echo v > v")
        deepest = sandbox.changes()[_LEVELS]
        assert isinstance(sandbox.diff(deepest), str)
        done = sandbox.commit()
    assert not done.spared, done
    assert stage.text("v") == "v\n"
    here = os.open(stage.project, os.O_RDONLY)
    for _ in range(_LEVELS):
        above, here = here, os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(above)
    assert os.listdir(here) == ["bottom"]
    os.close(here)


def names_elsewhere(stage: Stage) -> None:
    """A file that has a name outside of the project keeps its mode there."""
    stage.needs("rollback")
    elsewhere = os.path.join(stage.directory, "elsewhere")
    stage.put("linked", "two names\n")
    os.chmod(os.path.join(stage.project, "linked"), 0o600)
    os.link(os.path.join(stage.project, "linked"), elsewhere)
    with stage.open() as sandbox:
        _run(sandbox, "chmod 777 linked")
        done = sandbox.commit()
    assert done.applied == ("linked",), done
    assert stat.S_IMODE(os.stat(elsewhere).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.join(stage.project, "linked")).st_mode) == 0o777
    assert stage.text("linked") == "two names\n"


def closed(stage: Stage) -> None:
    """A directory of ours that may not be written is worked in, and is closed again."""
    stage.needs("rollback")
    place = os.path.join(stage.project, "gone", "deep")
    os.chmod(place, 0o555)
    with stage.open() as sandbox:
        _run(sandbox, "chmod 755 gone/deep; echo n > gone/deep/file; chmod 555 gone/deep")
        done = sandbox.commit()
    assert done.applied == ("gone/deep/file",), done
    assert stage.text("gone/deep/file") == "n\n"
    assert stat.S_IMODE(os.stat(place).st_mode) == 0o555
    os.chmod(place, 0o755)


def holes(stage: Stage) -> None:
    """A file with holes takes no more room than it did."""
    stage.needs("rollback")
    stage.but("sbx", _BY_TAR)
    with stage.open() as sandbox:
        _run(
            sandbox,
            f"truncate -s {_LARGE} sparse; printf x | dd of=sparse bs=1 seek=1000000 conv=notrunc",
        )
        done = sandbox.commit()
    assert done.applied == ("sparse",), done
    whole = os.path.join(stage.project, "sparse")
    info = os.stat(whole)
    assert (info.st_size, info.st_blocks * 512 < _LARGE // 8) == (_LARGE, True), info.st_blocks
    with open(whole, "rb") as file:
        file.seek(999_999)
        assert file.read(3) == b"\0x\0"


def special_modes(stage: Stage) -> None:
    """What would run with its owner's rights is held, unless it did before."""
    stage.needs("rollback")
    script = os.path.join(stage.project, "script")
    os.chmod(script, 0o4755)
    with stage.open() as sandbox:
        _run(
            sandbox, "cp /bin/true t; chmod u+s t; chmod g+s kept; echo >> script; chmod u+s script"
        )
        done = sandbox.commit()
    assert {spared.path for spared in done.held} == {"t", "kept"}, done
    assert done.applied == ("script",), done
    assert os.stat(script).st_mode & stat.S_ISUID


def room(stage: Stage) -> None:
    """What makes room for something that is held is held with it."""
    stage.needs("rollback")
    with stage.open() as sandbox:
        _run(sandbox, "rm -rf gone; ln -s /etc gone")
        done = sandbox.commit()
    assert {spared.path for spared in done.held} == {"gone", "gone/deep", "gone/deep/file"}, done
    assert stage.text("gone/deep/file") == "soon gone\n"


def _run(sandbox: OpenSandbox, script: str) -> None:
    done = sandbox.bash(script)
    assert done.code == 0, done


CHECKS: tuple[Callable[[Stage], None], ...] = (
    rebuilt,
    unreadable,
    too_deep,
    names_elsewhere,
    closed,
    holes,
    special_modes,
    room,
)
