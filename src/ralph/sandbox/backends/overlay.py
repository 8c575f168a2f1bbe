"""The backend `overlay`: namespaces and overlayfs. It contains, undoes and limits calls."""

import os
import stat
import sys
from collections.abc import Mapping

from ralph.errors import ConfigError, RalphError, StateError
from ralph.files.safe_open import remove_file
from ralph.git.digest import git_output
from ralph.kernel.value import replace
from ralph.sandbox import layer_store
from ralph.sandbox.backends.base import real_project
from ralph.sandbox.backends.layered import Layered
from ralph.sandbox.changes import apply
from ralph.sandbox.changes.by_descriptor import FileTree
from ralph.sandbox.changes.commit import NOT_WORK, Commit, read
from ralph.sandbox.changes.compare import layer_changes
from ralph.sandbox.changes.upper import prune
from ralph.sandbox.interface import (
    Capabilities,
    Change,
    CommitResult,
    SandboxPolicy,
    ordered,
)
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
from ralph.text.plain import escaped

NAME = "overlay"
_ON_DISK = "on disk"  # what the first process in there says of the layer
_NEVER = sys.maxsize  # nobody else works in there
LAUNCHER = Launcher()  # one process makes all sandboxes of a program


def open(project: str, policy: SandboxPolicy) -> "Overlay":  # noqa: A001  the interface has it so
    LAUNCHER.begin()  # it gets ready while we go on
    project = real_project(project)
    refuse_within(policy.state, project)
    with layer_store.claimed(policy, project) as kept:
        sealed = read(os.path.join(kept.path, layer_store.SEALED))
        if sealed is not None:
            prune(kept.directory("upper"), sealed.changes)
        opened = _mounted(project, policy, kept, sealed)
        try:
            return Overlay(project, policy, kept, opened, sealed)
        except BaseException:
            opened.keeper.close()
            opened.forget()
            raise


def _mounted(
    project: str, policy: SandboxPolicy, kept: layer_store.LayerDir, sealed: Commit | None
) -> Opened:
    """The layer of a directory over the project, with nothing running in it."""
    if sealed or kept.record:
        layer_store.remove(os.path.join(kept.path, "work"))  # what is volatile is mounted once
    upper, _ = (kept.directory(name) for name in ("upper", "work"))
    changed = sealed is not None and any(change.path == "." for change in sealed.changes)
    mode = stat.S_IMODE(os.stat(upper).st_mode)
    try:
        opened = LAUNCHER.open(plan_of(project, policy, kept.path))
        if changed and opened.kept == _ON_DISK:  # it was given that of the project
            os.chmod(f"/proc/self/fd/{opened.merged}", mode)
        return opened
    except RefusedError as error:
        refuse_mounts(project)  # which would be the reason
        taken = error.step.startswith("listen")
        remedy = "Use another port." if taken else namespace_remedy()
        raise ConfigError(str(error), remedy) from error


class Overlay(Layered):
    """A project under a layer that takes all changes. `sealed` is what it has already."""

    kind = NAME

    def __init__(
        self,
        project: str,
        policy: SandboxPolicy,
        kept: layer_store.LayerDir,
        opened: Opened,
        sealed: Commit | None = None,
    ) -> None:
        before: tuple[int, Mapping[str, int]] = (kept.opened, kept.since)
        kept.settle()
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
        self._take(opened)
        if sealed is not None:
            before = sealed.opened, sealed.since
            self._resume(sealed)
            self._carry(sealed)
        if kept.record:
            self._date(*before)
        self._note()
        if sealed is not None and self._on_disk:  # in memory it is all that a kill leaves
            remove_file(os.path.join(kept.path, layer_store.SEALED))

    def _take(self, opened: Opened) -> None:
        """Work in this one from now on."""
        self._keeper = opened.keeper
        self.fs = FileTree(f"/proc/self/fd/{opened.merged}")
        self._opened = opened
        self._on_disk = opened.kept == _ON_DISK
        upper = os.path.join(self._place.path, "upper")
        self._results = upper if self._on_disk else f"/proc/self/fd/{opened.upper}"
        self._ended = False
        self.environ = environment_of(self.policy, NAME, opened.port)
        self._proxy: Proxy | None = None
        if opened.listeners:
            listeners, opened.listeners = opened.listeners, []
            targets = [f"{name}:{port}" for port, name in local_ports(self.policy.network).items()]
            self._proxy = Proxy(listeners, self.policy.network.hosts, targets)

    def _go_on(self, rest: Commit, done: CommitResult) -> None:
        self._part()
        if self._on_disk:
            prune(self._results, rest.changes)
        try:
            opened = _mounted(self.origin, self.policy, self._place, rest)
        except RalphError as error:
            words = self.rescue()
            raise StateError(
                f"the changes were kept, but one cannot go on in the sandbox: {error.message}",
                f"{words}\n{error.remedy}".strip(),
            ) from error
        self._place.settle()
        self._take(opened)
        self._resume(rest)
        self._carry(rest)
        self._date(rest.opened, rest.since)
        self._note()

    def _carry(self, rest: Commit) -> None:
        """Bring in what the layer had, where another is mounted now."""
        if rest.source == self._results or not rest.changes:
            return
        merged = f"/proc/self/fd/{self._opened.merged}"
        brought = replace(rest, project=merged, opened=_NEVER, since={}, everything=True)
        missing = [one for one in apply.apply(brought).spared if one.why not in NOT_WORK]
        if missing:
            path, why = escaped(missing[0].path), missing[0].why
            raise StateError(f"{path} cannot be brought into the sandbox: {why}", "Make room.")
        if self._on_disk:
            layer_store.remove(os.path.join(self._place.path, "stage"))

    def _date(self, opened: int, since: Mapping[str, int]) -> None:
        """Have what the layer had before it was mounted count from then: a person may have changed
        the project in between."""
        self._place.since = {c.path: since.get(c.path, opened) for c in self.changes()}

    def changes(self) -> tuple[Change, ...]:
        return ordered(layer_changes(self._results, self.origin))

    def refused(self) -> tuple[str, ...]:
        return () if self._proxy is None else self._proxy.refused()

    def _copies(self, changes: tuple[Change, ...]) -> frozenset[str]:
        place = self._place
        paths = apply.doubtful(self.origin, place.opened, place.since, changes)
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
        layer_store.remove(os.path.join(self._place.path, "stage"))
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
