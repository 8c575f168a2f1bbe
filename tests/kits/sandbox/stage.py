"""Where a sandbox is tried: a project and a state directory of its own for each check."""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache

from kits.agent.bench import NotApplicable
from ralph.kernel.value import replace
from ralph.sandbox import catalog
from ralph.sandbox.backends.base import OpenSandbox
from ralph.sandbox.interface import Capabilities, Network, SandboxPolicy


class Stage:
    """A project of its own for one check: a git repository with a few files."""

    def __init__(self, backend: str, directory: str, environ: Mapping[str, str]) -> None:
        self.name = backend
        self.backend = catalog.backend(backend)
        self.directory = directory
        self.project = os.path.join(directory, "project")
        self.state = os.path.join(directory, "state")
        for path in (self.project, self.state):
            os.mkdir(path)
        git = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": directory}
        self.policy = SandboxPolicy({**environ, **git}, self.state)
        self._prepare()

    def _prepare(self) -> None:
        self.put("kept", "as it was\n")
        self.put("edited", "one\ntwo\n")
        self.put("gone/deep/file", "soon gone\n")
        self.put("script", "#!/bin/sh\n")
        self.git("init", "--quiet")
        self.git("config", "user.name", "Kit")
        self.git("config", "user.email", "kit@ralph.invalid")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Begin")

    def git(self, *arguments: str) -> None:
        """Real git in the project itself."""
        subprocess.run(("git", *arguments), cwd=self.project, env=self.policy.environ, check=True)

    def put(self, path: str, text: str) -> None:
        """A file in the project itself."""
        whole = os.path.join(self.project, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="utf-8") as file:
            file.write(text)

    def text(self, path: str) -> str | None:
        """What the project itself has there."""
        try:
            with open(os.path.join(self.project, path), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def but(self, name: str, why: str) -> None:
        """What this backend alone does not have."""
        if self.name == name:
            raise NotApplicable(why)

    def only(self, name: str) -> None:
        """What no other backend has."""
        if self.name != name:
            raise NotApplicable(f"only {name} has it")

    def open(self, network: Network | None = None, home: str = "") -> OpenSandbox:
        """The sandbox that is tried."""
        policy = replace(self.policy, network=network or self.policy.network, home=home)
        return self.backend.open(self.project, policy)

    def needs(self, ability: str) -> Capabilities:
        """What the backend says of itself here; NotApplicable if it cannot do this."""
        can = self.backend.probe(self.project, self.policy)
        if not getattr(can, ability):
            raise NotApplicable(f"it has no {ability}, and says so")
        return can


def text_of(path: str) -> str:
    """What stands in a file; "" if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


@cache
def overlay_is_usable() -> bool:
    """Whether this machine lets us make namespaces, tried for real."""
    from ralph.sandbox.backends import overlay

    with tempfile.TemporaryDirectory() as directory:
        state = os.path.join(directory, "state")
        return overlay.probe(directory, SandboxPolicy(dict(os.environ), state)).usable
