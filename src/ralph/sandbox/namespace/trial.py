"""The live probe: a sandbox over an empty project, in which a small program tries to get out."""

import os
import socket
import sys
import tempfile
from collections.abc import Callable

from ralph.errors import RalphError
from ralph.files.state_dir import ensure_state_root
from ralph.kernel.value import replace
from ralph.sandbox.backends.base import OpenSandbox
from ralph.sandbox.interface import (
    OFF,
    Capabilities,
    Change,
    ChangeKind,
    FileType,
    SandboxPolicy,
    unusable,
)

Open = Callable[[str, SandboxPolicy], OpenSandbox]

# Prints what it could do and must not, a word a line; its arguments are a port, what is hidden, and
# paths outside. The socket module would be slow to import.
_PROGRAM = """
import os, sys, _socket
open("inside", "w").write("x")
if os.path.exists(sys.argv[2]):
    print("saw what is hidden")
try:
    _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM).connect(("127.0.0.1", int(sys.argv[1])))
    print("called")
except OSError:
    pass
"""
OVERLAY = """
try:
    open(sys.argv[3], "w").write("x")
    print("wrote outside")
except OSError:
    pass
if not os.statvfs("/usr").f_flag & os.ST_RDONLY:
    print("could write the host")
"""


def tried(
    open_: Open, policy: SandboxPolicy, more: str, prepare: Callable[[str], None]
) -> Capabilities:
    """The abilities of a backend by a trial of `more`; `prepare` gets the empty project first."""
    program = f"{_PROGRAM}{more}print('done')"
    try:
        ensure_state_root(policy.state)
        with tempfile.TemporaryDirectory(prefix="ralph-probe-", dir=policy.state) as directory:
            project, state = (os.path.join(directory, name) for name in ("project", "state"))
            secret = os.path.join(state, "secret")
            for path in (project, state, secret):
                os.mkdir(path)
            prepare(project)
            before = os.listdir(project)
            outside = [os.path.join(path, "outside") for path in (state, directory, project)]
            own = replace(policy, state=state, hidden=(policy.state,), network=OFF)
            output = bytearray()
            with socket.create_server(("127.0.0.1", 0)) as listener, open_(project, own) as sandbox:
                port = str(listener.getsockname()[1])
                python = (os.path.realpath(sys.executable), "-I", "-S", "-c", program)
                argv = (*python, port, secret, *outside)
                sandbox.spawn(argv, output.extend, output.extend).wait(lambda: None)
                seen = sandbox.changes() == (Change("inside", ChangeKind.ADDED, FileType.FILE),)
                why = sandbox.capabilities.why
            clean = os.listdir(project) == before and not any(map(os.path.exists, outside))
    except RalphError as error:
        return unusable(error.words)
    except OSError as error:
        return unusable(str(error))
    said = output.decode("utf-8", "replace").strip().splitlines()
    if said not in (["done"], ["called", "done"]) or not clean:
        return unusable(f"a trial failed: {'; '.join(said) or 'nothing was said'}")
    return Capabilities(True, seen, "called" not in said, why, usable=seen)
