"""What a run waits for before its first agent: no library that only others need."""

import os
import subprocess
import sys
from pathlib import Path

from run_support import prepare

# Of other loops and ends, of sandboxes and notices, of a project that is not clean, of archives.
LATER = (
    *("ralph.git.view", "ralph.git.checkpoint.trees", "ralph.gates.clean_room", "ralph.review"),
    *("ralph.hosts.settings_edit", "ralph.notify", "ralph.runner.notices", "ralph.runner.steering"),
    *("ralph.runner.sandboxing", "ralph.sandbox.credentials", "ralph.sandbox.interface"),
    *("ralph.ui.closing", "ralph.ui.paper", "ralph.ui.recap", "ralph.ui.status", "ralph.web"),
    *("asyncio", "bz2", "ctypes", "http", "lzma", "shutil", "socket", "subprocess", "tempfile"),
)


def test_the_first_agent_waits_for_no_import_that_it_does_not_need(workspace: Path) -> None:
    prepare(workspace, {"text": "I work."})
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", "-A"], check=True)
    words = ("run", "-p", "x", "-m", "1")
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ralph", *words],
        env={**os.environ, "COVERAGE_PROCESS_START": ""},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    before, starting, after = done.stderr.partition("Iteration 1/1 starting")
    assert starting, done.stderr
    imported = {line.rpartition("|")[2].strip() for line in before.splitlines()}
    assert "ralph.kernel.engine" in imported
    assert not imported.intersection(LATER)
    assert "ralph.ui.closing" in after, "what comes last is imported last"
