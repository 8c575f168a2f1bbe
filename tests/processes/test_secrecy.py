"""What a process was told, and who may know (ADR 42)."""

import os
import subprocess
import sys

PROGRAM = """
import os
from ralph.processes.secrecy import forget
forget(["A_KEY", "NOT_THERE"])
print(os.environ.get("A_KEY"), os.environ["KEPT"], os.getenv("PATH") is not None, flush=True)
os.system('echo "$A_KEY/$KEPT"; tr "\\\\0" "\\\\n" < /proc/$PPID/environ | grep -a KEY; true')
"""


def test_a_variable_is_gone_for_us_for_children_and_for_whoever_looks() -> None:
    given = {**os.environ, "A_KEY": "s3cret", "KEPT": "kept", "B_KEY_TOO": "x"}
    argv = (sys.executable, "-c", PROGRAM)
    done = subprocess.run(argv, env=given, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[1:] == ["/kept", "B_KEY_TOO=x", ""], done
    assert done.stdout.startswith("None kept True\n")
