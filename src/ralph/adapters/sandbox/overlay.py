"""The backend `overlay`: namespaces and the kernel's overlayfs. It contains, can be undone, and
decides who may be called."""

import os
import tempfile
from collections.abc import Iterator, Mapping

from ralph.adapters.files import ensure_state_root, unwritable_state
from ralph.adapters.git import git_output
from ralph.adapters.namespaces import namespace_remedy
from ralph.adapters.sandbox import apply, place
from ralph.adapters.sandbox.base import Moment, real_project
from ralph.adapters.sandbox.compare import layer_changes
from ralph.adapters.sandbox.interface import Capabilities, Change, Kind, Policy
from ralph.adapters.sandbox.launcher import Launcher, Opened, RefusedError
from ralph.adapters.sandbox.layered import Layered
from ralph.adapters.sandbox.plan import (
    environment_of,
    local_ports,
    mounted_in,
    plan_of,
    refuse_within,
    repository_outside,
)
from ralph.adapters.sandbox.proxy import Proxy
from ralph.adapters.sandbox.reach import Root
from ralph.adapters.sandbox.tree import Tree
from ralph.errors import ConfigError, RalphError

NAME = "overlay"
LAUNCHER = Launcher()  # one process makes all sandboxes of a program


def open(project: str, policy: Policy) -> "Overlay":  # noqa: A001  the interface has it so
    """A sandbox over a project. ConfigError says what is missing."""
    moment = Moment()
    LAUNCHER.begin()  # it gets ready while we go on
    project = real_project(project)
    refuse_within(policy.state, project)
    kept = place.claim(policy.state, project, policy.name)
    opened: Opened | None = None
    try:
        plan = plan_of(project, policy, kept.path)
        for name in ("upper", "work"):
            kept.directory(name)
        opened = LAUNCHER.open(plan)
        return Overlay(project, policy, kept, opened, moment.passed())
    except RefusedError as error:
        kept.remove()
        _refuse_mounts(project)  # which would be the reason
        raise ConfigError(str(error), remedy(error)) from error
    except OSError as error:
        _abandon(kept, opened)
        raise unwritable_state(kept.path, error) from error
    except BaseException:
        _abandon(kept, opened)
        raise


def _abandon(kept: place.Place, opened: Opened | None) -> None:
    """Leave nothing of a sandbox that could not be opened to the end."""
    if opened is not None:
        opened.close()
        opened.forget()
        for listener in (opened.listener, *opened.forwards.values()):
            if listener is not None:
                os.close(listener)
    kept.remove()


class Overlay(Layered):
    """A project under a layer that takes all changes."""

    def __init__(
        self, project: str, policy: Policy, kept: place.Place, opened: Opened, moment: int
    ) -> None:
        root = "; root can read the whole host in it" if os.geteuid() == 0 else ""
        lacks = "; ".join(_shortcomings(project, policy, opened))
        why = f"changes are kept {opened.kept}{root}{'; ' if lacks else ''}{lacks}"
        able = Capabilities(True, True, True, why, lacks=lacks)
        tree = Tree(opened.merged)
        super().__init__(
            project,
            policy,
            able,
            keeper=opened.keeper,
            tree=tree,
            directory=project,
            kept=kept,
            moment=moment,
        )
        self._opened = opened
        self._on_disk = opened.kept == "on disk"
        self._upper = f"/proc/self/fd/{opened.upper}"
        if self._on_disk:
            self._upper = os.path.join(kept.path, "upper")
        self._ended = False
        self._environ = environment_of(policy, NAME, opened.port)
        self._proxy: Proxy | None = None
        if opened.listener is not None:
            names = local_ports(policy.network)
            forwards = {f"{names[port]}:{port}": end for port, end in opened.forwards.items()}
            listener, opened.listener, opened.forwards = opened.listener, None, {}
            self._proxy = Proxy(listener, policy.network.hosts, forwards)

    def environment(self) -> Mapping[str, str]:
        """Temporary files are private, and the proxy is named where there is one."""
        return self._environ

    def changes(self) -> tuple[Change, ...]:
        """What the upper layer makes of the project."""
        found = layer_changes(self._written(), self.origin)
        return tuple(sorted(found, key=lambda change: (change.path, change.kind)))

    def refused(self) -> tuple[str, ...]:
        """Whom commands called in vain by the proxy."""
        return () if self._proxy is None else self._proxy.refused()

    def _copies(self, changes: tuple[Change, ...]) -> frozenset[str]:
        return self._had(apply.doubtful(self.origin, self._moment, changes))

    def _had(self, paths: list[str]) -> frozenset[str]:
        """Which of these the project had, as far as git knows."""
        if not paths:
            return frozenset()
        # By its index of the beginning: `git rm` and `git mv` take files out of today's.
        index = {"GIT_INDEX_FILE": self._index} if os.path.isfile(self._index) else {}
        environ = {**self.policy.environ, **index}
        listing = git_output(self.origin, environ, "ls-files", "-z") or b""
        tracked = set(map(os.fsdecode, listing.split(b"\0")))
        above = {path[:end] for path in tracked for end in range(len(path)) if path[end] == "/"}
        return frozenset(path for path in paths if path in tracked or path in above)

    def _written(self) -> str | Root:
        if self._on_disk:
            return self._upper
        # In there the layer in memory is read only by its own name.
        return Root(self._upper, f"/proc/self/fd/{self._opened.merged}")

    def _source(self, changes: tuple[Change, ...]) -> str:
        if self._on_disk:
            return self._upper
        staged = self._place.directory("stage")
        apply.stage(self._written(), changes, staged)
        return staged

    def _after(self, change: Change) -> str:
        return "" if change.kind is Kind.DELETED else os.path.join(self._upper, change.path)

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._keeper.close()
            if self._proxy is not None:
                self._proxy.close()

    def _part(self) -> None:
        self._opened.forget()

    def close(self) -> None:
        """End what runs, and leave nothing behind."""
        if self._open:
            self._open = False
            self._end()
            self._leave()


def _shortcomings(project: str, policy: Policy, opened: Opened) -> Iterator[str]:
    if opened.home:
        yield f"the home directory is read only: {opened.home}"
    for path in repository_outside(project, policy.environ)[:1]:
        yield f"git's directory lies outside of the project, in {path}: nothing can be committed"


def _refuse_mounts(project: str) -> None:
    for path in mounted_in(project):
        raise ConfigError(
            f"{path} is mounted in the project, which cannot have a layer over it then",
            "Unmount that, or use worktree.",
        )


def probe(project: str, policy: Policy) -> Capabilities:
    """Try it for real: a file in it is in the layer, the host is clean, the network is shut."""
    from ralph.adapters.sandbox.trial import trial

    try:
        project = real_project(project)
        refuse_within(policy.state, project)
        _refuse_mounts(project)
        ensure_state_root(policy.state)
        with tempfile.TemporaryDirectory(prefix="ralph-probe-", dir=policy.state) as place_:
            return trial(open, place_, policy)
    except RalphError as error:
        return Capabilities(False, False, False, f"{error.message}. {error.remedy}", usable=False)
    except OSError as error:
        return Capabilities(False, False, False, str(error), usable=False)


def remedy(error: RefusedError) -> str:
    """What to type where the kernel or a container forbids namespaces, or a port is taken."""
    return "Use another port." if error.step.startswith("listen") else namespace_remedy()
