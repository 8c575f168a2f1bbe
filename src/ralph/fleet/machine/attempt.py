"""One attempt at a turn, as a program: `python -m ralph.fleet.machine.attempt`.

Its pipe is JSON lines. To it: first {"job", "incarnation"}, then {"until": boottime} or {"cut":
{"why", "grace"}}. From it: {"launched"}, {"pulse"}, and last {"done"} or {"failed"}. It ends when
its standard input does, or its lease; then nothing of the agent is left.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from ralph.errors import ConfigError, RalphError, StateError
from ralph.files.safe_open import create, read_or_nothing
from ralph.fleet import trees
from ralph.fleet.machine import cache as caches
from ralph.fleet.machine import taking
from ralph.fleet.machine.holding import mark
from ralph.fleet.machine.pipe import CutOffError, HopelessError, Leash, Voice, tell
from ralph.fleet.machine.run_dirs import made
from ralph.fleet.machine.setting_up import TreeSetup
from ralph.fleet.port import Job
from ralph.git.branch import branch_of
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.journal.codec import decode_fact, encode
from ralph.kernel.facts import Ended, Fact, Landed
from ralph.kernel.turn import Turn
from ralph.kernel.value import replace
from ralph.kernel.verdict import Cut
from ralph.processes.child import Starter, run_and_hear
from ralph.runner.keeping import keeping
from ralph.runner.workplace import Workplace
from ralph.text.plain import escaped
from ralph.text.redact import redacted

_LIST = os.path.join(".ralph", "tasks.jsonl")
_APART = "git cannot carry it: a repository of its own, or a file that nobody may read"
_WORDS = 2000  # bytes of git's that are kept
# Seconds before each try to push: a paid turn is not thrown away for a network that is gone for two
# minutes. It is less than what the run spares for it.
_PAUSES = (0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 30.0, 30.0)


class FencedError(ConfigError):
    """The run has given the attempt up: what stands at its ref is another's, or nothing."""


class Attempt:
    """An attempt that may begin, until its result is at its ref."""

    def __init__(self, job: Job, leash: Leash, voice: Voice, environ: Mapping[str, str]) -> None:
        self._job, self._leash, self._voice = job, leash, voice
        self._environ = {**environ, "RALPH_RUN": mark(job)}

    def made(self) -> str:
        """The commit of its result; nothing of it lives when that is known."""
        job, environ = self._job, self._environ
        loaded = taking.settings_of(job)
        with ExitStack() as stack:
            run_dir = stack.enter_context(made(job, environ))
            cache = stack.enter_context(caches.opened(environ, job.remote))
            slot = stack.enter_context(cache.slot(mark(job)))
            # The keeper ends what is left before anybody else can have the tree.
            grace = loaded.settings.end_grace
            start = stack.enter_context(keeping(None, grace, run=mark(job)))
            found, slot = self._laid_out(cache, slot, start)
            plan = taking.plan_of(loaded, slot.workspace, environ, run_dir, cache.trees)
            place = taking.place_of(plan, run_dir, start, self._voice, stack)
            self._set_up(cache, slot, found, place)
            cache.stage(slot, found.head)
            _put_list(slot.workspace, found.list)
            work = WorkTree(slot.workspace, environ, run_dir, shared=True)
            work.trees.begin()
            self._may(self._leash.before)
            turn = taking.take(place, found.order, self._leash, self._voice)
            ended = Ended(time.time(), turn)
            self._may(self._leash.after)
            landed = place.layers.landed(found.order, turn) if place.layers else ()
            facts: tuple[Fact, ...] = (*landed, ended)
            cache.scrub()
            commit = self._result(cache, found, work, facts, run_dir)
            self._push(cache, start, commit)
        return commit

    def _may(self, leash: Callable[[], Cut | None]) -> None:
        """Go on only if we may."""
        if cut := leash():
            raise CutOffError(cut)

    # ------------------------------------------------------------ before the turn

    def _laid_out(
        self, cache: caches.Cache, slot: caches.Slot, start: Starter
    ) -> tuple[trees.OrderFound, caches.Slot]:
        """The order, with its files in the slot. A cache that is of no use is made anew."""
        job = self._job
        for last in (False, True):
            try:
                cache.prepare(job.order)
                self._git(cache, start, self._leash.before, *caches.TIDY)
                self._fetch(cache, start)
                cache.repository.ask("update-ref", slot.ref, job.order)
                found = trees.read_order(cache.repository, job.order)
                slot = replace(slot, inside=found.inside)
                cache.lay_out(slot, found.work, found.head, f"refs/heads/{branch_of(job.task)}")
            except (StateError, OSError, ValueError) as error:
                if last or not cache.make_anew(job.order):
                    message = error.message if isinstance(error, RalphError) else str(error)
                    raise ConfigError(
                        f"the order cannot be laid out: {message}",
                        f"Make room there, or have the cache made anew: rm -rf {cache.path}",
                    ) from error
            else:
                return found, slot
        raise AssertionError

    def _fetch(self, cache: caches.Cache, start: Starter) -> None:
        job, before = self._job, self._leash.before
        words = trees.fetch_words(job.remote, job.ref)
        code, said = self._git(cache, start, before, "-c", "gc.auto=0", *words)
        if code == 0 and cache.repository.resolve(f"{job.order}^{{commit}}"):
            return
        there, listed = self._git(cache, start, before, "ls-remote", job.remote, job.ref)
        if there != 0:
            raise ConfigError(
                f"git cannot reach {job.remote}: {listed or said}",
                f"Try there: git ls-remote {job.remote}",
            )
        if listed.split("\t")[0] != job.order:
            raise FencedError("its order is at its ref no longer: the run has given it up")
        raise StateError(f"git fetch: {said or 'the order did not come'}")

    def _git(
        self,
        cache: caches.Cache,
        start: Starter,
        leash: Callable[[], Cut | None],
        *words: str,
    ) -> tuple[int, str]:
        """A git that may take long: its exit code and last words. CutOffError if we may not wait
        for it."""
        try:
            ended, said = run_and_hear(start, cache.command(*words), lambda _: leash(), _WORDS)
        except FileNotFoundError as error:
            raise ConfigError("git was not found", "Install git there.") from error
        if ended.cut is not None:
            raise CutOffError(ended.cut)
        return ended.code, said

    def _set_up(
        self,
        cache: caches.Cache,
        slot: caches.Slot,
        found: trees.OrderFound,
        place: Workplace,
    ) -> None:
        """Run `loop.setup`, if it is not done: on the files of the task's branch as a worker here
        would, and once more in a sandbox where an agent has changed what is to be installed."""
        words = place.plan.settings.loop.setup
        if words is None:
            return
        log = os.path.join(place.run.directory, "setup.log")
        setup, where = TreeSetup(words, slot.stamp, log), (slot.workspace, place.plan.environ)
        before, git = self._leash.before, cache.repository
        first, now = setup.needs(git, found.head), setup.needs(git, found.work)
        if not setup.is_done(first, now):
            cache.fill(slot, found.head)
            setup.run(first, where, place.run.start, before)
            cache.fill(slot, found.work)
        if first != now and not setup.is_done(now):
            try:
                setup.run(now, where, place.inside.start, before)
            except CutOffError:
                raise
            except (RalphError, OSError) as error:
                setup.note(first)
                tell(f"The agent has to install it: {error}")

    # ------------------------------------------------------------ after it

    def _result(
        self,
        cache: caches.Cache,
        found: trees.OrderFound,
        work: WorkTree,
        facts: tuple[Fact, ...],
        run_dir: str,
    ) -> str:
        head, turn = work.head(), next(f.turn for f in facts if isinstance(f, Ended))
        if not head or not cache.repository.resolve(f"{head}^{{commit}}"):
            head = found.head
        given, tree = found.list is not None, work.tree()
        path = os.path.join(work.workspace, _LIST)
        told = _with_rest(facts, work.trees.seen.apart)
        return trees.make_result(
            cache.repository,
            self._job.order,
            head=head,
            work=tree,
            task_list=read_or_nothing(path) if given and os.path.isfile(path) else None,
            # As the journal has them: the agent may have printed what only this machine knows.
            facts=[decode_fact(redacted(encode(fact))) for fact in told],
            stream=_stream(turn, run_dir),
        )

    def _push(self, cache: caches.Cache, start: Starter, commit: str) -> None:
        """Have the result at the ref, if the order is there still."""
        job, after, said = self._job, self._leash.after, ""
        words = trees.push_words(job.remote, job.ref, commit, job.order)
        for pause in _PAUSES:
            until = time.monotonic() + pause
            while time.monotonic() < until:
                self._may(after)
                time.sleep(0.1)
            code, said = self._git(cache, start, after, *words)
            if code == 0:
                return
            there, listed = self._git(cache, start, after, "ls-remote", job.remote, job.ref)
            at = listed.split("\t")[0]
            if there == 0 and at == commit:  # the answer was lost, and the push was not
                return
            if there == 0 and at != job.order:
                raise FencedError("the run has given this attempt up")
        raise ConfigError(
            f"the result cannot be pushed to {job.remote}: {said}",
            f"Try there: git push --dry-run {job.remote} HEAD:{job.ref}",
        )


def _with_rest(facts: tuple[Fact, ...], paths: tuple[str, ...]) -> tuple[Fact, ...]:
    """The facts with what git cannot carry away from here, which is told as not applied."""
    if not paths:
        return facts
    *landed, ended = facts
    first = landed[0] if landed else Landed(ended.time, kept=True)
    assert isinstance(first, Landed)
    spared = tuple(f"{escaped(path)}: {_APART}" for path in paths)
    return replace(first, spared=(*first.spared, *spared)), ended


def _stream(turn: Turn, run_dir: str) -> str:
    """The file with what the agent has printed; an empty one if it has not begun."""
    if turn.stream and os.path.isfile(turn.stream):
        return turn.stream
    path = os.path.join(run_dir, "no.stream")
    os.close(create(path))
    return path


def _put_list(workspace: str, text: bytes | None) -> None:
    """The agent's own copy of the task list."""
    if text is None:
        return
    path = os.path.join(workspace, _LIST)
    above = os.path.dirname(path)
    if os.path.islink(above):
        raise StateError(f"{above} is a link, so the task list has no place")
    os.makedirs(above, exist_ok=True)
    with os.fdopen(create(path, 0o644), "wb") as file:
        file.write(text)


def main() -> int:
    """Make one attempt; 0 when it has said how that ended, and nothing of it lives."""
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever else prints something, it is no answer
    voice, leash = Voice(answers), Leash(0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leash.let_go)
    host = os.uname().nodename
    try:
        job = leash.job()
        if not leash.is_granted():
            raise CutOffError(leash.before() or Cut("it was not granted"))
        voice.done(Attempt(job, leash, voice, os.environ).made())
    except RalphError as error:
        passes = not isinstance(error, HopelessError)
        voice.failed(f"{host}: {error.message}", error.remedy, passes=passes)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        remedy = "Make room there, or give it the right to." if error.errno else ""
        voice.failed(f"{host}: {error.strerror or error}{where}", remedy, passes=True)
    except Exception as error:  # noqa: BLE001  who waits for us cannot read a traceback
        traceback.print_exc()
        voice.failed(f"{host}: a bug of ralph: {error!r}", "Report it.", passes=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
