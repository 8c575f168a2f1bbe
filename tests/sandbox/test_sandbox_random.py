"""What a sandbox showed is what the project has after it is kept, whatever was done in it."""

import json
import os
import stat
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sandbox_support import needs_overlay, policy, tree

from kits.thorough import examples
from ralph.sandbox.backends import overlay

pytestmark = needs_overlay
Step = tuple[str, str, str]
NAMES = ("a", "b", "a/a", "a/b", "b/a", "a/a/a", "a/b/a", "b/a/b", "a/a/b/a")
HOWS = ("mkdir", "remove", "move", "write", "append", "link", "symlink", "chmod")
STEPS = st.tuples(st.sampled_from(HOWS), st.sampled_from(NAMES), st.sampled_from(NAMES))
# Does what it can of the steps.
INSIDE = """
import os, shutil

def remove(path):
    whole = os.path.isdir(path) and not os.path.islink(path)
    shutil.rmtree(path) if whole else os.unlink(path)

def add(path, text, how):
    with open(path, how) as file:
        file.write(text)

DO = {
    "mkdir": lambda one, other: os.makedirs(one),
    "remove": lambda one, other: remove(one),
    "move": lambda one, other: shutil.move(one, other),
    "write": lambda one, other: add(one, one + other, "w"),
    "append": lambda one, other: add(one, other, "a"),
    "link": os.link,
    "symlink": lambda one, other: os.symlink(other, one),
    "chmod": lambda one, other: os.chmod(one, 0o711 if os.path.isdir(one) else 0o640),
}
for how, one, other in STEPS:
    try:
        DO[how](one, other)
    except (OSError, shutil.Error):
        pass
"""
LOOKING = """
import json, os, stat

def seen(top):
    found = {}
    for folder, folders, names in os.walk(top):
        for name in folders + names:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            text = os.readlink(path) if stat.S_ISLNK(info.st_mode) else ""
            if stat.S_ISREG(info.st_mode):
                with open(path) as file:
                    text = file.read()
            found[os.path.relpath(path, top)] = [info.st_mode, text]
    return found

print(json.dumps(seen(".")))
"""


def seen(top: Path) -> dict[str, list[object]]:
    """The same as it is seen in there."""
    found: dict[str, list[object]] = {}
    for path in sorted(top.rglob("*")):
        info = path.lstat()
        text = os.readlink(path) if stat.S_ISLNK(info.st_mode) else ""
        text = path.read_text() if stat.S_ISREG(info.st_mode) else text
        found[str(path.relative_to(top))] = [info.st_mode, text]
    return found


@given(st.lists(STEPS, max_size=12))
@example([("remove", "a", "a"), ("mkdir", "a/a", "a"), ("write", "a/a/b", "a")])
@example([("mkdir", "b/a", "a"), ("remove", "a", "a"), ("move", "b", "a")])
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_kept_is_what_was_seen(steps: list[Step]) -> None:
    """Interface: "`changes()` (added, modified, deleted, mode, symlink …)", at every depth."""
    with tempfile.TemporaryDirectory() as place:
        project = tree(
            Path(place), a__a__a="1", a__a__b__a="2", a__b="3", a__c="4", b="5", c__a__b__c="6"
        )
        with overlay.open(str(project), policy()) as sandbox:
            done = sandbox.eval(f"STEPS = {steps!r}\n{INSIDE}")
            assert done.code == 0, done
            expected = json.loads(sandbox.eval(LOOKING).output)
            assert not sandbox.commit(everything=True).spared
        assert seen(project) == expected
