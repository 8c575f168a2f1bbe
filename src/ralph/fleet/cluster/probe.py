"""A machine as an attempt would find it: git, the agent, a sandbox, and the way to the remote.

It is asked on workers too, by reference: it takes and gives simple values.
"""

import asyncio
import os
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ralph.errors import RalphError
from ralph.files.state_dir import state_root
from ralph.fleet.machine import relay
from ralph.git.repository import clean_environ
from ralph.kernel.verdict import Cut
from ralph.processes.child import Command, start
from ralph.processes.which import which

Found = dict[str, Any]
PATIENCE = 20.0  # seconds for each call of git
_REFS = "refs/ralph/doctor"
_NOBODY = (
    *("-c", "user.name=ralph", "-c", "user.email=ralph@ralph.invalid"),
    *("-c", "commit.gpgSign=false", "-c", f"core.hooksPath={os.devnull}"),
)


async def machine(wanted: Found) -> Found:
    """What is there of what is `wanted`: {agent, sandbox, remote}, each may be ""."""
    return await asyncio.to_thread(look, wanted)


def look(wanted: Found) -> Found:
    """The same, at once. Of a failure it holds the reason, of success ""."""
    path = os.environ.get("PATH", os.defpath)
    command = (shlex.split(wanted.get("agent") or "") or [""])[0]
    remote, found = wanted.get("remote") or "", relay.about()
    found["agent"] = which(command, path) if command else None
    with _repository() as (place, trouble):
        found["sandbox"] = _sandbox(wanted.get("sandbox") or "", place)
        found["remote"] = trouble or _way(place, remote) if remote else ""
    return found


def way_to(remote: str) -> str:
    """Why a ref cannot be read or pushed there and deleted again; "" if it can."""
    with _repository() as (place, trouble):
        return trouble or _way(place, remote)


@contextmanager
def _repository() -> Iterator[tuple[str, str]]:
    """A repository with one commit, where a machine has its own; and why it has none, or ""."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    cache = cache if os.path.isabs(cache) else os.path.expanduser("~/.cache")
    above = os.path.join(cache, "ralph")
    os.makedirs(above, mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="doctor-", dir=above) as place:
        first = (
            "commit",
            "--quiet",
            "--allow-empty",
            "--no-verify",
            "-m",
            "Ralph looks at the way",
        )
        yield place, _git("init", "--quiet", place) or _git("-C", place, *_NOBODY, *first)


def _way(place: str, remote: str) -> str:
    ref = f"{_REFS}/{os.urandom(8).hex()}"
    for what, words in (
        ("ls-remote", ("ls-remote", "--", remote, "HEAD")),
        (f"push of {_REFS}/…", ("push", "--quiet", "--", remote, f"HEAD:{ref}")),
        (f"push to delete {ref}", ("push", "--quiet", "--", remote, f":{ref}")),
    ):
        if why := _git("-C", place, *words):
            return f"git {what}: {why}"
    return ""


def _git(*words: str) -> str:
    """Run git, with a limit of time; why it failed, or ""."""
    errors: list[bytes] = []
    environ = {**clean_environ(os.environ), "LC_ALL": "C"}
    try:
        child = start(Command(("git", *words), os.getcwd(), environ), None, errors.append)
    except OSError as error:
        return error.strerror or str(error)
    ended = child.wait(lambda: Cut("late", 1.0) if child.seconds() > PATIENCE else None)
    if ended.cut is not None:
        return f"no answer within {PATIENCE:g} s"
    if not ended.code:
        return ""
    lines = b"".join(errors).decode("utf-8", "replace").strip().splitlines()
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))]
    return (telling or lines or [f"exit code {ended.code}"])[0][:300]


def _sandbox(name: str, place: str) -> Found:
    """The backend that a turn would have there: {name, why}."""
    if not name or name == "direct":
        return {"name": name, "why": ""}
    from ralph.sandbox import catalog
    from ralph.sandbox.backends import overlay
    from ralph.sandbox.interface import SandboxPolicy

    try:
        policy = SandboxPolicy(os.environ, state_root(os.environ))
        found = catalog.usable(name, place, policy)
    except RalphError as error:
        return {"name": "", "why": error.message}
    finally:
        overlay.LAUNCHER.close()
    return {"name": found.name, "why": ""}
