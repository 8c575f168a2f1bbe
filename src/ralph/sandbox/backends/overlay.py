"""The backend `overlay`: namespaces and overlayfs. It contains, undoes and limits calls."""

import os

from ralph.errors import ConfigError
from ralph.git.digest import git_output
from ralph.sandbox import layer_store
from ralph.sandbox.backends.base import real_project
from ralph.sandbox.backends.layered import Layered
from ralph.sandbox.changes import apply
from ralph.sandbox.changes.by_descriptor import FileTree
from ralph.sandbox.changes.compare import layer_changes
from ralph.sandbox.interface import Capabilities, Change, SandboxPolicy, ordered
from ralph.sandbox.namespace.client import Launcher, Opened, RefusedError, namespace_remedy
from ralph.sandbox.namespace.proxy import Proxy
from ralph.sandbox.policy import (
    environment_of,
    local_ports,
    plan_of,
    refuse_mounts,
    refuse_within,
    repository_outside,
)

NAME = "overlay"
LAUNCHER = Launcher()  # one process makes all sandboxes of a program


def open(project: str, policy: SandboxPolicy) -> "Overlay":  # noqa: A001  the interface has it so
    LAUNCHER.begin()  # it gets ready while we go on
    project = real_project(project)
    refuse_within(policy.state, project)
    try:
        with layer_store.claimed(policy, project) as kept:
            plan = plan_of(project, policy, kept.path)
            for name in ("upper", "work"):
                kept.directory(name)
            opened = LAUNCHER.open(plan)
            try:
                kept.settle()
                return Overlay(project, policy, kept, opened)
            except BaseException:
                opened.keeper.close()
                opened.forget()
                raise
    except RefusedError as error:
        refuse_mounts(project)  # which would be the reason
        taken = error.step.startswith("listen")
        remedy = "Use another port." if taken else namespace_remedy()
        raise ConfigError(str(error), remedy) from error


class Overlay(Layered):
    """A project under a layer that takes all changes."""

    def __init__(
        self, project: str, policy: SandboxPolicy, kept: layer_store.LayerDir, opened: Opened
    ) -> None:
        lacking = [f"the home directory is read only: {opened.home}"] if opened.home else []
        outside = () if policy.host_commits else repository_outside(project, policy.environ)[:1]
        lacking += [
            f"git's directory lies outside of the project, in {path}: nothing can be committed"
            for path in outside
        ]
        root = "; root can read the whole host in it" if os.geteuid() == 0 else ""
        why = "; ".join((f"changes are kept {opened.kept}{root}", *lacking))
        super().__init__(
            project, policy, Capabilities(True, True, True, why, lacks="; ".join(lacking)), kept
        )
        self._keeper = opened.keeper
        self.fs = FileTree(f"/proc/self/fd/{opened.merged}")
        self._opened = opened
        self._on_disk = opened.kept == "on disk"
        upper = os.path.join(kept.path, "upper")
        self._results = upper if self._on_disk else f"/proc/self/fd/{opened.upper}"
        self._ended = False
        self.environ = environment_of(policy, NAME, opened.port)
        self._proxy: Proxy | None = None
        if opened.listeners:
            listeners, opened.listeners = opened.listeners, []
            targets = [f"{name}:{port}" for port, name in local_ports(policy.network).items()]
            self._proxy = Proxy(listeners, policy.network.hosts, targets)

    def changes(self) -> tuple[Change, ...]:
        return ordered(layer_changes(self._results, self.origin))

    def refused(self) -> tuple[str, ...]:
        return () if self._proxy is None else self._proxy.refused()

    def _copies(self, changes: tuple[Change, ...]) -> frozenset[str]:
        paths = apply.doubtful(self.origin, self._place.opened, changes)
        if not paths:
            return frozenset()
        # By git's index of the beginning: `git rm` and `git mv` take files out of today's.
        index = {"GIT_INDEX_FILE": self._index} if os.path.isfile(self._index) else {}
        environ = {**self.policy.environ, **index}
        listing = git_output(self.origin, environ, "ls-files", "-z") or b""
        tracked = set(map(os.fsdecode, listing.split(b"\0")))
        above = {path[:end] for path in tracked for end in range(len(path)) if path[end] == "/"}
        return frozenset(path for path in paths if path in tracked or path in above)

    def _source(self, changes: tuple[Change, ...]) -> str:
        if self._on_disk:
            return self._results
        staged = self._place.directory("stage")
        apply.stage(self._results, changes, staged)
        return staged

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._keeper.close()
            if self._proxy is not None:
                self._proxy.close()

    def _part(self) -> None:
        self._opened.forget()


def probe(project: str, policy: SandboxPolicy) -> Capabilities:
    """Try it for real: a file in it is in the layer, the host is clean, the network is shut."""
    from ralph.sandbox.namespace.trial import OVERLAY, tried

    def check(_: str) -> None:
        real = real_project(project)
        refuse_within(policy.state, real)
        refuse_mounts(real)

    return tried(open, policy, OVERLAY, check)
