"""The end of a sandbox's layer: it is applied to the project, or thrown away.

Everything here works on directories by path, so that another process can do it than the one that
opened the sandbox: after a kill, whoever comes next finishes what was begun.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress

from ralph.files.safe_open import read_or_nothing
from ralph.files.state_dir import write_atomically
from ralph.journal.codec import decode_fact, encode
from ralph.kernel.facts import Landed
from ralph.kernel.value import replace
from ralph.sandbox import layer_store
from ralph.sandbox.changes import apply
from ralph.sandbox.changes.commit import NOT_WORK, Commit, read, rest_of
from ralph.sandbox.interface import CommitResult, Spared
from ralph.sandbox.layer_store import JOURNAL, SEALED
from ralph.text.plain import escaped

_LANDED = "landed.json"  # what was told of it
_OURS = ("upper", "stage")  # sources that hold nothing but changes
_LAYERS = (*_OURS, "tree")  # where backends keep what commands wrote
_UNREADABLE = "all that the turn changed: the list of its changes cannot be read"
_LOST = "all that the turn changed: ralph was killed, and it could not be kept"


def carry_out(commit: Commit, path: str) -> CommitResult:
    """Apply a commit, with a journal in a sandbox's place from which anybody can finish it."""
    commit.write(os.path.join(path, JOURNAL))
    kept = _applied(commit, path)
    layer_store.forget_journal(path)
    return kept


def carry_out_here(commit: Commit, path: str, *, save: bool) -> CommitResult:
    """The same where the layer is worked in further, so that nothing of it is moved away."""
    commit.write(os.path.join(path, JOURNAL))
    done = apply.apply(commit)
    if save:
        try:
            done = replace(done, saved=apply.save(commit, done, _held(path)))
        except OSError:  # it is in the layer still
            layer_store.remove(_held(path))
    layer_store.forget_journal(path)
    return done


def carry_out_part(part: Commit, whole: Commit, path: str) -> CommitResult:
    """Apply a part of the layer that somebody comes back to; the rest stays sealed."""
    part.write(os.path.join(path, JOURNAL))
    return _applied_part(part, whole, path)


def _applied_part(part: Commit, whole: Commit, path: str) -> CommitResult:
    done = apply.apply(part)
    rest_of(whole, done, layer_store.moment()).write(os.path.join(path, SEALED))
    layer_store.forget_journal(path)
    return done


def _applied(commit: Commit, path: str) -> CommitResult:
    """Apply a commit, and save the rest: as the layer itself where there is no room for a copy."""
    kept = apply.apply(commit)
    into = _held(path)
    try:
        return replace(kept, saved=apply.save(commit, kept, into))
    except OSError:
        layer_store.remove(into)
        if os.path.basename(commit.source) not in _OURS:
            raise
        os.makedirs(os.path.dirname(into), mode=0o700, exist_ok=True)
        os.rename(commit.source, into)
        return replace(kept, saved=into)


def _held(path: str) -> str:
    """The place for what a layer holds that was not applied."""
    sandboxes, name = os.path.split(path)
    return os.path.join(os.path.dirname(sandboxes), "held", name)


def set_aside(path: str, *names: str) -> str:
    """Move the layer of a place, which has one of these names, to what is held, in its file system
    so that it takes no room; "" if it is empty."""
    into = _held(path)
    while os.path.lexists(into):
        into += "-again"
    for layer in filter(os.path.isdir, (os.path.join(path, name) for name in names)):
        os.chmod(layer, 0o700)  # a command may have shut it
        if os.listdir(layer):
            os.makedirs(os.path.dirname(into), mode=0o700, exist_ok=True)
            os.rename(layer, into)
            return into
    return ""


def recover(project: str, state: str) -> tuple[CommitResult, ...]:
    """Tidy up after sandboxes whose owners were killed; the commits that were finished. A sealed
    layer stays until its run goes on. What cannot be finished (the disk is full) waits."""
    finished: list[CommitResult] = []
    for path in layer_store.abandoned(state, os.path.realpath(project)):
        with suppress(OSError):
            if os.path.exists(os.path.join(path, JOURNAL)):
                finished += _finished(path)
            layer_store.forget_journal(path)
    return tuple(finished)


def _finished(path: str) -> Iterator[CommitResult]:
    """Apply it, unless that was done, and only its journal was left. What cannot be read is held;
    where it was sealed its run does that, and tells it."""
    commit = _begun(path)
    if layer_store.record_of(path):
        whole = read(os.path.join(path, SEALED))
        if commit is not None:
            yield _applied_part(commit, whole, path) if whole else apply.apply(commit)
    elif commit is None:
        if not os.path.exists(os.path.join(path, SEALED)):
            saved = set_aside(path, *_LAYERS)
            yield CommitResult(failed=(Spared(".", _UNREADABLE),), saved=saved)
    elif _answered(path) is None:
        kept = _applied(commit, path)
        if os.path.exists(os.path.join(path, SEALED)):
            _answer(path, told(kept, time.time(), count=len(commit.changes)))
            for name in ("work", *_LAYERS):
                layer_store.remove(os.path.join(path, name))  # only the answer is waited for
        yield kept


def _begun(path: str) -> Commit | None:
    return read(os.path.join(path, JOURNAL)) or read(os.path.join(path, SEALED))


def land(path: str, now: float, *, keep: bool, thrown: str) -> Landed:
    """Apply the sealed layer of a place, or move it to `thrown`; asked again, the same answer.
    What had begun to be applied is applied to its end."""
    reclaimed = layer_store.reclaimed(path)
    if reclaimed is None:
        return Landed(now, kept=False, spared=(_LOST,) if keep else ())
    try:
        landed = _answered(path)
        if landed is None:
            landed = _landed(path, now, keep=keep, thrown=thrown)
            _answer(path, landed)
        layer_store.forget_journal(path)  # not before there is an answer
    finally:
        reclaimed.leave()
    return landed


def _answered(path: str) -> Landed | None:
    try:
        fact = decode_fact(json.loads(read_or_nothing(os.path.join(path, _LANDED))))
    except ValueError:
        return None
    return fact if isinstance(fact, Landed) else None


def _answer(path: str, landed: Landed) -> None:
    write_atomically(os.path.join(path, _LANDED), json.dumps(encode(landed)), mode=0o600)


def _landed(path: str, now: float, *, keep: bool, thrown: str) -> Landed:
    journal = os.path.join(path, JOURNAL)
    commit = _begun(path)
    if commit is None:
        saved = set_aside(path, *_LAYERS) if keep else ""
        why = _UNREADABLE if saved else _LOST
        return Landed(now, kept=False, spared=(why,) if keep else (), saved=saved)
    count = len(commit.changes)
    if not keep and not os.path.exists(journal):
        return Landed(now, kept=False, count=count, saved=_throw_away(commit, thrown))
    commit.write(journal)
    return told(_applied(commit, path), now, count=count)


def told(kept: CommitResult, now: float, *, count: int, refused: tuple[str, ...] = ()) -> Landed:
    """A commit as a fact. Names stay on one line: they go into prompts and onto terminals."""
    missing = [one for one in (*kept.changed, *kept.failed) if one.why not in NOT_WORK]
    return Landed(
        now,
        kept=True,
        count=count,
        held=tuple(escaped(spared.path) for spared in kept.held),
        spared=tuple(f"{escaped(spared.path)}: {spared.why}" for spared in missing),
        saved=kept.saved,
        refused=refused,
        ours=tuple(path for path in kept.applied if path.startswith(".ralph/")),
    )


def _throw_away(commit: Commit, thrown: str) -> str:
    """Keep what the last failed turn did, where a person may look at it."""
    ours = os.path.basename(commit.source) in _OURS
    if ours and not os.path.exists(commit.source) and os.path.isdir(thrown):
        return thrown  # we were killed after that
    layer_store.remove(thrown)
    if not commit.changes:
        return ""
    try:
        if ours:
            os.rename(commit.source, thrown)
        else:
            os.mkdir(thrown, 0o700)
            apply.stage(commit.source, commit.changes, thrown)
    except OSError:
        return ""  # it was to be thrown away
    return thrown
