"""The backend `overlay`: namespaces and the kernel's overlayfs. It contains, can be undone, and
decides who may be called."""

import os
import time
from collections.abc import Mapping

from ralph.errors import ConfigError
from ralph.git.digest import git_output
from ralph.sandbox import layer_store
from ralph.sandbox.backends.base import real_project, stamp_after
from ralph.sandbox.backends.layered import Layered
from ralph.sandbox.changes import apply
from ralph.sandbox.changes.by_descriptor import Root
from ralph.sandbox.changes.compare import layer_changes
from ralph.sandbox.changes.tree import FileTree
from ralph.sandbox.interface import Capabilities, Change, SandboxPolicy, ordered
from ralph.sandbox.namespace.available import namespace_remedy
from ralph.sandbox.namespace.client import Launcher, Opened, RefusedError
from ralph.sandbox.namespace.proxy import Proxy
from ralph.sandbox.policy import (
    environment_of,
    local_ports,
    mounted_in,
    plan_of,
    refuse_within,
    repository_outside,
)

NAME = "overlay"
LAUNCHER = Launcher()  # one process makes all sandboxes of a program


def open(project: str, policy: SandboxPolicy) -> "Overlay":  # noqa: A001  the interface has it so
    began = time.time_ns()
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
                return Overlay(project, policy, kept, opened, stamp_after(began))
            except BaseException:
                opened.close()
                opened.forget()
                for listener in (opened.listener, *opened.forwards.values()):
                    if listener is not None:
                        os.close(listener)
                raise
    except RefusedError as error:
        _refuse_mounts(project)  # which would be the reason
        raise ConfigError(str(error), remedy(error)) from error


class Overlay(Layered):
    """A project under a layer that takes all changes."""

    def __init__(
        self,
        project: str,
        policy: SandboxPolicy,
        kept: layer_store.LayerDir,
        opened: Opened,
        opened_at: int,
    ) -> None:
        lacking = [f"the home directory is read only: {opened.home}"] if opened.home else []
        lacking += [
            f"git's directory lies outside of the project, in {path}: nothing can be committed"
            for path in repository_outside(project, policy.environ)[:1]
        ]
        root = "; root can read the whole host in it" if os.geteuid() == 0 else ""
        why = "; ".join((f"changes are kept {opened.kept}{root}", *lacking))
        super().__init__(
            project,
            policy,
            Capabilities(True, True, True, why, lacks="; ".join(lacking)),
            kept=kept,
            opened=opened_at,
            keeper=opened.keeper,
            files=FileTree(opened.merged),
        )
        self._opened = opened
        self._on_disk = opened.kept == "on disk"
        self._results = f"/proc/self/fd/{opened.upper}"
        if self._on_disk:
            self._results = os.path.join(kept.path, "upper")
        self._ended = False
        self._environ = environment_of(policy, NAME, opened.port)
        self._proxy: Proxy | None = None
        if opened.listener is not None:
            names = local_ports(policy.network)
            forwards = {f"{names[port]}:{port}": end for port, end in opened.forwards.items()}
            listener, opened.listener, opened.forwards = opened.listener, None, {}
            self._proxy = Proxy(listener, policy.network.hosts, forwards)

    def environment(self) -> Mapping[str, str]:
        return self._environ

    def changes(self) -> tuple[Change, ...]:
        return ordered(layer_changes(self._written(), self.origin))

    def refused(self) -> tuple[str, ...]:
        return () if self._proxy is None else self._proxy.refused()

    def _copies(self, changes: tuple[Change, ...]) -> frozenset[str]:
        paths = apply.doubtful(self.origin, self._opened_at, changes)
        if not paths:
            return frozenset()
        # By git's index of the beginning: `git rm` and `git mv` take files out of today's.
        index = {"GIT_INDEX_FILE": self._index} if os.path.isfile(self._index) else {}
        environ = {**self.policy.environ, **index}
        listing = git_output(self.origin, environ, "ls-files", "-z") or b""
        tracked = set(map(os.fsdecode, listing.split(b"\0")))
        above = {path[:end] for path in tracked for end in range(len(path)) if path[end] == "/"}
        return frozenset(path for path in paths if path in tracked or path in above)

    def _written(self) -> str | Root:
        if self._on_disk:
            return self._results
        # In there the layer in memory is read only by its own name.
        return Root(self._results, f"/proc/self/fd/{self._opened.merged}")

    def _source(self, changes: tuple[Change, ...]) -> str:
        if self._on_disk:
            return self._results
        staged = self._place.directory("stage")
        apply.stage(self._written(), changes, staged)
        return staged

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._keeper.close()
            if self._proxy is not None:
                self._proxy.close()

    def _part(self) -> None:
        self._opened.forget()


def _refuse_mounts(project: str) -> None:
    for path in mounted_in(project):
        raise ConfigError(
            f"{path} is mounted in the project, which cannot have a layer over it then",
            "Unmount that, or use worktree.",
        )


def probe(project: str, policy: SandboxPolicy) -> Capabilities:
    """Try it for real: a file in it is in the layer, the host is clean, the network is shut."""
    from ralph.sandbox.namespace.trial import OVERLAY, tried

    def check(_: str) -> None:
        real = real_project(project)
        refuse_within(policy.state, real)
        _refuse_mounts(real)

    return tried(open, policy, OVERLAY, check)


def remedy(error: RefusedError) -> str:
    """Words to type where the kernel or a container forbids namespaces, or a port is taken."""
    return "Use another port." if error.step.startswith("listen") else namespace_remedy()
