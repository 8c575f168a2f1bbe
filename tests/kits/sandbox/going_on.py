"""What every sandbox must do that can be undone and is worked in further: after a part was kept,
and when somebody comes back to it. Part of the conformance kit."""

import os
import stat
from collections.abc import Callable

from kits.agent.bench import NotApplicable
from kits.sandbox.stage import Stage
from ralph.kernel.value import replace
from ralph.sandbox import kept
from ralph.sandbox.backends.base import OpenSandbox

NAME = "again"


def _changed(sandbox: OpenSandbox) -> set[str]:
    paths = {change.path for change in sandbox.changes()}
    return {path for path in paths if path.partition("/")[0] != ".git"}


def _run(sandbox: OpenSandbox, script: str) -> None:
    done = sandbox.bash(script)
    assert done.code == 0, done


def keeps_a_part(stage: Stage) -> None:
    """What is named is applied, with the directories that it stands in; the rest stays, and one can
    go on: what is changed anew is kept anew, also where it was deleted."""
    stage.needs("rollback")
    with stage.open() as box:
        _run(box, "mkdir -p n/m; echo 1 > n/m/f; echo 2 > n/g; echo three >> edited; rm -r gone")
        done = box.keep(paths=["n/m", "gone/deep/file"])
        assert done.applied == ("gone/deep/file", "n", "n/m", "n/m/f"), done
        assert stage.text("n/m/f") == "1\n"
        assert stage.text("n/g") is None
        assert stage.text("edited") == "one\ntwo\n"
        assert _changed(box) == {"n/g", "edited", "gone", "gone/deep"}, box.changes()
        _run(box, "cat n/m/f n/g; test ! -e gone; rm -r n/m; echo 4 >> n/g; mkdir -p gone/deep")
        _run(box, "echo back > gone/deep/file")
        assert _changed(box) == {"n/m", "n/m/f", "n/g", "edited", "gone/deep/file"}
        done = box.keep()
        assert not done.spared, done
        assert not _changed(box)
        _run(box, "echo 5 > n/g; rm edited")
        assert not box.commit().spared
    assert (stage.text("n/g"), stage.text("edited")) == ("5\n", None)
    assert stage.text("gone/deep/file") == "back\n"
    assert not os.path.exists(os.path.join(stage.project, "n/m"))


def goes_on_with_what_is_held(stage: Stage) -> None:
    """What is held stays in the sandbox; so does what a person has changed, which is never
    overwritten, also where it was kept before."""
    stage.needs("rollback")
    with stage.open() as box:
        _run(box, "mkdir .husky; echo x > .husky/h; echo box > kept; echo box > edited")
        stage.put("kept", "person\n")
        done = box.keep()
        assert {one.path for one in done.held} == {".husky", ".husky/h"}, done
        assert [one.path for one in done.changed] == ["kept"], done
        assert done.applied == ("edited",), done
        stage.put("edited", "person\n")
        _run(box, "cat .husky/h; echo again > edited; echo again > kept")
        done = box.keep()
        assert {one.path for one in done.changed} == {"kept", "edited"}, done
        assert (stage.text("kept"), stage.text("edited")) == ("person\n", "person\n")
        done = box.keep(everything=True, paths=[".husky"])
        assert done.applied == (".husky", ".husky/h"), done
        box.discard()
    assert stage.text(".husky/h") == "x\n"
    assert stage.text("kept") == "person\n"


def goes_on_with_modes(stage: Stage) -> None:
    """Modes that keep us out stay as they are in what is left, and in what is kept."""
    stage.needs("rollback")
    if os.geteuid():
        stage.but("sbx", "a fake machine has no root where we are none")
    with stage.open() as box:
        _run(box, "mkdir -p n/m r; echo 1 > n/m/1; echo 2 > r/2; chmod 000 n/m n; chmod 500 r")
        assert box.keep(paths=["r"]).applied == ("r", "r/2")
        assert _changed(box) == {"n", "n/m", "n/m/1"}, box.changes()
        assert box.bash("stat -c %a n r").output == b"0\n500\n"
        assert not box.keep().spared
    for path, mode in (("n", 0), ("n/m", 0), ("r", 0o500)):
        whole = os.path.join(stage.project, path)
        assert stat.S_IMODE(os.lstat(whole).st_mode) == mode, path
        os.chmod(whole, 0o700)


def comes_back(stage: Stage) -> None:
    """One that was left under a name is gone on with: its changes are there, the project's newer
    files too or not at all, and what a person did in between is never overwritten."""
    policy = kept.named(_able(stage).policy, NAME)
    with stage.backend.open(stage.project, policy) as box:
        _run(
            box, "echo box > edited; rm -r gone; mkdir n; echo 1 > n/f; echo box > kept; rm script"
        )
        assert box.seal()
    stage.put("kept", "person\n")
    stage.put("other", "person\n")
    (one,) = kept.all_of(stage.state, stage.project)
    assert (one.name, one.state, one.backend) == (NAME, kept.KEPT, stage.name)
    with kept.taken(one, stage.policy) as sealed:
        assert "+box" in "".join(kept.diff(sealed, ["edited"]))
    with stage.backend.open(stage.project, policy) as box:
        assert kept.all_of(stage.state, stage.project)[0].state == kept.IN_USE
        _run(box, "test ! -e gone; test ! -e script; cat n/f; echo 2 >> n/f; echo box > other")
        _run(box, "mkdir gone; echo new > gone/new")
        assert box.seal()
    done, left = kept.keep(one, stage.policy)
    assert {found.path for found in done.changed} >= {"kept"}, done
    assert (stage.text("kept"), stage.text("edited")) == ("person\n", "box\n")
    assert (stage.text("n/f"), stage.text("gone/new")) == ("1\n2\n", "new\n")
    assert stage.text("gone/deep/file") is None
    assert left == len(done.changed), done
    # The overlay showed the person's, so that this was an edit of it; elsewhere it was not seen.
    assert stage.text("other") == ("box\n" if stage.name == "overlay" else "person\n")
    kept.discard(kept.find(stage.state, stage.project), stage.policy)
    assert kept.all_of(stage.state, stage.project) == ()


def is_cut_off(stage: Stage) -> None:
    """One whose owner was killed has what was done in it."""
    policy = kept.named(_able(stage).policy, NAME)
    with stage.backend.open(stage.project, policy) as box:
        _run(box, "echo box > edited; rm kept; echo 1 > n")
    stage.put("edited", "person\n")
    (one,) = kept.all_of(stage.state, stage.project)
    assert (one.state, one.changes) == (kept.CUT_OFF, None)
    with stage.backend.open(stage.project, policy) as box:
        _run(box, "grep -q box edited; test ! -e kept; echo 2 >> n")
    done, left = kept.keep(one, stage.policy)
    assert [found.path for found in done.changed] == ["edited"], done
    assert (stage.text("n"), stage.text("kept"), left) == ("1\n2\n", None, 1)


def _able(stage: Stage) -> Stage:
    if stage.name not in kept.ABLE:
        raise NotApplicable("it keeps nothing on disk to come back to")
    stage.policy = replace(stage.policy, home="")
    return stage


CHECKS: tuple[Callable[[Stage], None], ...] = (
    keeps_a_part,
    goes_on_with_what_is_held,
    goes_on_with_modes,
    comes_back,
    is_cut_off,
)
