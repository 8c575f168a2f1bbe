"""Sandboxes that a person comes back to by their names: layers of a project that stay, unapplied,
until they are kept or discarded."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ralph.errors import ConfigError, LockedError
from ralph.files.state_dir import lstat
from ralph.git.digest import git_output
from ralph.kernel.value import replace, value
from ralph.sandbox import catalog, layer_store
from ralph.sandbox.changes import landing
from ralph.sandbox.changes.commit import Commit, closed_in, is_at, read, selected
from ralph.sandbox.changes.diff import patch, unified
from ralph.sandbox.changes.git_config_hooks import config_hooks
from ralph.sandbox.interface import CommitResult, SandboxPolicy, is_within
from ralph.sandbox.layer_store import NAMED, SEALED
from ralph.sandbox.network import network_of
from ralph.text.plain import escaped
from ralph.text.words import listed

ABLE = ("overlay", "srt", "worktree")  # backends that keep a layer on disk
KEPT, IN_USE, CUT_OFF = "kept", "in use", "cut off"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_GIT = ".git"


@value
class KeptSandbox:
    """One of them, as it lies there. `cut off`: its last shell was killed; nothing of it is lost
    that was on disk."""

    name: str
    path: str
    project: str
    backend: str
    network: str
    state: str
    changes: int | None  # None: it has to be opened to tell
    used: float  # when it was last left or opened


def named(policy: SandboxPolicy, name: str) -> SandboxPolicy:
    """The policy of a sandbox with this name. ConfigError if it can be no name."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{escaped(name)!r} cannot be a sandbox's name",
            "Use letters, digits, dots, - and _: ralph sandbox run --name try-1 -- COMMAND",
        )
    return replace(policy, name=f"{NAMED}{name}", kept=True)


def all_of(state: str, project: str) -> tuple[KeptSandbox, ...]:
    """Those of a project, sorted by name."""
    above = layer_store.sandboxes(state, project)
    try:
        names = sorted(os.listdir(above))
    except OSError:
        return ()
    paths = [os.path.join(above, name) for name in names if name.startswith(NAMED)]
    return tuple(_seen(path) for path in paths if layer_store.record_of(path))


def find(state: str, project: str, name: str = "") -> KeptSandbox:
    """The one of this name, or the only one. ConfigError names those that there are."""
    there = all_of(state, project)
    fitting = [one for one in there if name in ("", one.name)]
    if len(fitting) == 1:
        return fitting[0]
    names = listed([one.name for one in there])
    if not there:
        what = f"there is no sandbox {escaped(name)}" if name else "no sandbox is kept"
        raise ConfigError(f"{what} in {project}", "Begin one: ralph sandbox shell NAME")
    if name:
        raise ConfigError(f"there is no sandbox {escaped(name)}", f"Kept here: {names}")
    raise ConfigError(f"several sandboxes are kept: {names}", "Name one of them.")


def _seen(path: str) -> KeptSandbox:
    record, sealed = layer_store.record_of(path), read(os.path.join(path, SEALED))
    state = KEPT if sealed is not None else CUT_OFF
    try:
        layer_store.taken(path).leave()
    except LockedError:
        state = IN_USE
    times = [lstat(os.path.join(path, name)) for name in (SEALED, layer_store.KEPT)]
    return KeptSandbox(
        os.path.basename(path).removeprefix(NAMED),
        path,
        record["project"],
        record["backend"],
        record["network"],
        state,
        len(sealed.changes) if sealed is not None and state == KEPT else None,
        max((found.st_mtime for found in times if found), default=0.0),
    )


@contextmanager
def taken(one: KeptSandbox, policy: SandboxPolicy) -> Iterator[Commit]:
    """What it would change, while nobody else has it. LockedError if somebody does."""
    ours = layer_store.taken(one.path)
    try:
        sealed = read(os.path.join(one.path, SEALED))
        if sealed is None:  # its last shell was killed
            ours.leave()
            same = replace(named(policy, one.name), network=network_of(one.network))
            with catalog.backend(one.backend).open(one.project, same) as box:
                box.seal()
            ours = layer_store.taken(one.path)
            sealed = read(os.path.join(one.path, SEALED))
        if sealed is None:
            raise ConfigError(
                f"{one.path} cannot be read", f"Type: ralph sandbox discard {one.name}"
            )
        yield sealed
    finally:
        ours.leave()


def diff(sealed: Commit, paths: Sequence[str] = ()) -> Iterator[str]:
    """The unified diff of each change but those in .git, or of those at these paths and below."""
    for change in sealed.changes:
        wanted = any(is_at(change, path) for path in paths)
        if wanted if paths else not is_within(change.path, _GIT):
            before = os.path.join(sealed.project, change.path)
            after = "" if change.gone else os.path.join(sealed.source, change.path)
            yield patch(change, unified(change, before, after))


def keep(
    one: KeptSandbox, policy: SandboxPolicy, paths: Sequence[str] = (), *, everything: bool = False
) -> tuple[CommitResult, int]:
    """Apply what it would change, or that at these paths and below; what came of it, and how many
    changes it has left. One without any is removed."""
    with taken(one, policy) as whole:
        for path in paths:
            if not any(is_at(change, path) for change in whole.changes):
                raise ConfigError(
                    f"nothing has changed at {escaped(path)} in the sandbox {one.name}",
                    f"See what has: ralph sandbox diff {one.name}",
                )
        part = selected(whole, paths) if paths else whole
        hooks = frozenset() if everything else config_hooks(one.project, policy.environ)
        part = replace(
            part,
            everything=everything,
            config_hooks=hooks,
            closed=closed_in(one.project, part.changes),
        )
        done = landing.carry_out_part(part, whole, one.path)
        rest = read(os.path.join(one.path, SEALED))
        left = len(rest.changes) if rest is not None else 0
    if not left:
        discard(one, policy)
    return done, left


def discard(one: KeptSandbox, policy: SandboxPolicy) -> None:
    """Throw it away. LockedError if somebody has it."""
    ours = layer_store.taken(one.path)
    tree = os.path.isdir(os.path.join(one.path, "tree"))
    try:
        layer_store.remove(one.path)
    finally:
        ours.leave()
    if tree:
        git_output(one.project, policy.environ, "worktree", "prune")
