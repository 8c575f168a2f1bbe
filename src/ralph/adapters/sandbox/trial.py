"""The live probe: a sandbox over an empty project, in which a small program tries to get out."""

import os
import socket
import sys
from collections.abc import Callable

from ralph.adapters.sandbox.interface import OFF, Capabilities, Change, Entry, Kind, Policy, Sandbox
from ralph.core.value import replace

_INSIDE = "inside"
# What it could do that it must not, a word a line. The socket module would be slow to import.
_PROGRAM = """
import os, sys, _socket
open("inside", "w").write("x")
try:
    open(sys.argv[1], "w").write("x")
    print("wrote outside")
except OSError:
    pass
if os.path.exists(sys.argv[2]):
    print("saw what is hidden")
if not os.statvfs("/usr").f_flag & os.ST_RDONLY:
    print("could write the host")
try:
    _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM).connect(("127.0.0.1", int(sys.argv[3])))
    print("called")
except OSError:
    pass
print("done")
"""


def trial(open_: Callable[[str, Policy], Sandbox], directory: str, policy: Policy) -> Capabilities:
    """What a sandbox really does, over a directory that is ours."""
    project, state = os.path.join(directory, "project"), os.path.join(directory, "state")
    for path in (project, state):
        os.mkdir(path)
    with open(os.path.join(state, "secret"), "w", encoding="ascii"):
        pass
    own = replace(policy, state=state, hidden=(policy.state,), network=OFF)
    with socket.create_server(("127.0.0.1", 0)) as listener, open_(project, own) as sandbox:
        said = _tried(sandbox, state, listener.getsockname()[1])
        seen = sandbox.changes() == (Change(_INSIDE, Kind.ADDED, Entry.FILE),)
        clean = not os.listdir(project)
        why = sandbox.capabilities.why
    wrong = [word for word in said if word not in ("called", "done")]
    if "done" not in said or wrong:
        return Capabilities(False, False, False, f"a trial failed: {'; '.join(said)}", usable=False)
    rollback = seen and clean and not os.listdir(project)
    return Capabilities(True, rollback, "called" not in said, why, usable=rollback)


def _tried(sandbox: Sandbox, state: str, port: int) -> list[str]:
    output = bytearray()
    places = (os.path.join(state, "outside"), os.path.join(state, "secret"))
    argv = (os.path.realpath(sys.executable), "-I", "-S", "-c", _PROGRAM, *places, str(port))
    sandbox.spawn(argv, output.extend, output.extend).wait(lambda: None)
    return output.decode("utf-8", "replace").strip().splitlines()
