"""The live probe of `srt`: a sandbox over a small repository, whose program tries to get out."""

import os
import socket
import sys
from collections.abc import Callable

from ralph.adapters.git import git_output
from ralph.adapters.sandbox.interface import OFF, Capabilities, Change, Entry, Kind, Policy, Sandbox
from ralph.core.value import replace
from ralph.errors import ConfigError

_INSIDE = "inside"
# What it could do that it must not, a word a line.
_PROGRAM = """
import os, socket, sys
open("inside", "w").write("x")
for path in sys.argv[2:4]:
    try:
        open(path, "w").write("x")  # into a layer that is thrown away, or not at all
    except OSError:
        pass
if os.path.exists(sys.argv[4]):
    print("saw what is hidden")
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)
    print("called")
except OSError:
    pass
print("done")
"""
_IDENTITY = (
    "-c",
    "user.name=Ralph",
    "-c",
    "user.email=ralph@localhost",
    "-c",
    "commit.gpgsign=false",
)
_COMMIT = (*_IDENTITY, "commit", "--quiet", "--allow-empty", "--message", "Begin")


def trial(open_: Callable[[str, Policy], Sandbox], directory: str, policy: Policy) -> Capabilities:
    """What a sandbox really does, over a repository that is ours."""
    project, state = (os.path.join(directory, name) for name in ("project", "state"))
    for path in (project, state):
        os.mkdir(path)
    secret = os.path.join(state, "secret")
    with open(secret, "w", encoding="ascii"):
        pass
    _repository(project, policy)
    own = replace(policy, state=state, hidden=(policy.state,), network=OFF)
    with socket.create_server(("127.0.0.1", 0)) as listener, open_(project, own) as sandbox:
        port = listener.getsockname()[1]
        outside = (os.path.join(directory, "outside"), os.path.join(project, "outside"))
        said = _tried(sandbox, str(port), *outside, secret)
        seen = sandbox.changes() == (Change(_INSIDE, Kind.ADDED, Entry.FILE),)
        why = sandbox.capabilities.why
    clean = os.listdir(project) == [".git"] and not os.path.exists(outside[0])
    if said not in (["done"], ["called", "done"]) or not clean:
        told = "; ".join(said) or "nothing was said"
        return Capabilities(False, False, False, f"a trial failed: {told}", usable=False)
    return Capabilities(True, seen, "called" not in said, why, usable=seen)


def _repository(project: str, policy: Policy) -> None:
    for words in (("init", "--quiet"), _COMMIT):
        if git_output(project, policy.environ, *words) is None:
            raise ConfigError("git cannot make a repository", "See why: git init")


def _tried(sandbox: Sandbox, *arguments: str) -> list[str]:
    output = bytearray()
    argv = (os.path.realpath(sys.executable), "-I", "-S", "-c", _PROGRAM, *arguments)
    sandbox.spawn(argv, output.extend, output.extend).wait(lambda: None)
    return output.decode("utf-8", "replace").strip().splitlines()
