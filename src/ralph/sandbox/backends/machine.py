"""The common parts of sandboxes that are machines of their own: R's pattern of create, exec and
run, the agent's login, and how their files are looked at (R §3, §4)."""

import errno
import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from ralph.errors import ConfigError, failing
from ralph.files.safe_open import read_or_nothing, remove_file
from ralph.files.state_dir import write_atomically, writing_state
from ralph.kernel.value import replace
from ralph.sandbox import layer_store
from ralph.sandbox.backends.base import OpenSandbox
from ralph.sandbox.backends.guest import (
    LONG,
    Guest,
    GuestFiles,
    SandboxTool,
    like_the_project,
    parse_listing,
    told,
    unpack,
    wanted,
)
from ralph.sandbox.changes.manifest import Listing, differing
from ralph.sandbox.interface import (
    Capabilities,
    Change,
    CommandResult,
    CommitResult,
    SandboxPolicy,
    ordered,
)

AGENT = "claude"  # what such a sandbox is made for, and what `run` runs
_LONGEST = 63  # characters of a name
_NOT_PASSED = ("RALPH_STATE_DIR", "RALPH_SANDBOX", "RALPH_SANDBOX_SETTLE")
_SETUP = "setup.sh"
_TRIES = 3
_WAS_WRITTEN = 1  # how tar ends if a file was written to while it was read
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_HELD = "held"  # in the note about a sandbox that has the only copy of something


def name_of(project: str, filler: str) -> str:
    """R's name for a project's sandbox, with a digest where two projects could have the same."""
    kept = r"[^A-Za-z0-9.-]" if filler == "-" else r"[^A-Za-z0-9._-]"
    plain = re.sub(kept, filler, project)
    unique = plain == project.replace("/", filler) and filler not in project
    if unique and len(plain) <= _LONGEST - len("ralph-"):
        return f"ralph-{plain}"
    digest = hashlib.sha256(os.fsencode(project)).hexdigest()[:8]
    room = _LONGEST - len(f"ralph--{digest}")
    return f"ralph-{plain[-room:]}-{digest}"


def login(environ: Mapping[str, str]) -> str:
    """The directory that keeps the agent's login, which outlives sandboxes (R §4)."""
    home = environ.get("HOME", "")
    if not os.path.isabs(home):
        raise ConfigError("there is no HOME for the agent's login", "Type: export HOME=/some/where")
    directory = os.path.join(os.path.realpath(home), ".dclaude_state")
    file = os.path.join(directory, ".claude.json")
    with failing(f"{directory}", "Make it writable."):
        os.makedirs(os.path.join(directory, ".claude"), mode=0o700, exist_ok=True)
        if not os.path.exists(file) or not os.path.getsize(file):
            write_atomically(file, "{}\n", mode=0o600)  # an empty one is no JSON
    return directory


def setup_script() -> str:
    """The text of `plugin/sandbox/setup.sh`, which a wheel has beside this module."""
    here = os.path.dirname(os.path.abspath(__file__))
    source = os.path.join(here, *[os.pardir] * 4, "plugin", "sandbox", _SETUP)
    for path in (os.path.join(here, _SETUP), source):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return file.read()
    raise ConfigError(f"{_SETUP} is missing", "Install Ralph again.")


def not_answering(words: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """The reason why a tool cannot list its sandboxes, or ""."""
    done = SandboxTool(words, environ).ask("ls", "--json")
    return f"{' '.join(words)} does not answer: {told(done)}" if done.code else ""


class KeptMachine:
    """A machine that Ralph makes: notes about it, kept outside of it, and the lock of its user."""

    def __init__(self, policy: SandboxPolicy, guest: Guest) -> None:
        above, name = layer_store.sandboxes(policy.state, guest.project), guest.name
        self.policy = policy
        self.guest = guest
        self._note = os.path.join(above, f"{name}.network")
        self._awake = os.path.join(above, f"{name}.awake")
        lock = os.path.join(above, f"{name}.lock")
        with writing_state(above):
            os.makedirs(above, mode=0o700, exist_ok=True)
            self._lock = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise ConfigError(
                f"another ralph uses the sandbox {name}", "Wait for it, or use another --backend."
            ) from None

    def release(self) -> None:
        os.close(self._lock)

    def ready(
        self, reuse: Callable[[], bool] | None, *, words: Iterable[str], rules: Iterable[str]
    ) -> None:
        """Make sure of it: the one that was left, if it can be used again, or a new one by these
        words and rules. Then link the login and set git's identity; again it does no harm."""
        tool, name, network = self.guest.tool, self.guest.name, self.policy.network
        state = login(self.policy.environ)
        there = reuse is not None
        if reuse is not None:
            self._check_made(" ".join((*tool.words, "rm", name)))
            # Its rules cannot be taken back, nor be read.
            there = _text(self._note) == str(network) and reuse()
            if not there:
                self.remove()
        if not there:
            self._write_note("")
            create = ("create", *words, AGENT, self.guest.project, state)
            try:
                tool.must("make a sandbox", *create, patience=LONG)
                tool.must("set the rules of a sandbox", *rules)
            except BaseException:
                tool.ask(*tool.remove, name, patience=LONG)
                self._forget()
                raise
            self._write_note(str(network))
        prepare = ("exec", "-u", "root", name, "bash", "-c", setup_script(), _SETUP, state)
        tool.must("prepare the sandbox", *prepare, patience=LONG)

    def _check_made(self, remove: str) -> None:
        """ConfigError for a sandbox of that name that somebody else made, or that is held."""
        name = self.guest.name
        if _text(self._note) == _HELD:
            raise ConfigError(
                f"the sandbox {name} has the only copy of what could not be kept",
                f"Save what you need of it, then type: {remove}",
            )
        if not os.path.exists(self._note):
            raise ConfigError(
                f"there is a sandbox {name} that this Ralph did not make", f"Type: {remove}"
            )

    def remove(self) -> None:
        tool = self.guest.tool
        tool.must("remove the sandbox", *tool.remove, self.guest.name, patience=LONG)
        self._forget()

    def was_left_awake(self) -> str | None:
        """The words said when it was left running with nothing to do, once; None if it was not."""
        said = _text(self._awake)
        with suppress(OSError):
            os.unlink(self._awake)
        return said or None

    def leave_awake(self, said: str) -> bool:
        """Note that it runs on, with nothing to do; False if nobody could know."""
        try:
            write_atomically(self._awake, said or "-", mode=0o600)
        except OSError:
            return False
        return True

    def _write_note(self, text: str) -> None:
        with writing_state(os.path.dirname(self._note)):
            write_atomically(self._note, text, mode=0o600)

    def hold(self) -> None:
        """Note that it has the only copy of something: only a person is to use or remove it."""
        try:
            write_atomically(self._note, _HELD, mode=0o600)
        except OSError:
            self._forget()  # then it is nobody's, and is not touched either

    def _forget(self) -> None:
        for path in (self._note, self._awake):
            remove_file(path)


def _text(path: str) -> str:
    return read_or_nothing(path).decode()


@contextmanager
def opening(
    policy: SandboxPolicy, guest: Guest
) -> Iterator[tuple[KeptMachine, layer_store.LayerDir]]:
    """A machine, and a directory for its changes; given up if it cannot be opened to the end."""
    ours = KeptMachine(policy, guest)
    try:
        # Not by the name of a turn: a commit that had begun is not for its run to clear.
        with layer_store.claimed(replace(policy, name="", kept=False), guest.project) as kept:
            yield ours, kept
    except BaseException:
        ours.release()
        raise


class Remote(OpenSandbox):
    """A machine with the project at the same path. Its files are reached by the tool alone."""

    run_words: tuple[str, ...] = ("run",)  # what comes before the name when the agent is run
    look = "look"  # how its files are listed

    def __init__(self, able: Capabilities, ours: KeptMachine, kept: layer_store.LayerDir) -> None:
        policy, guest = ours.policy, ours.guest
        home = "the home directory is the machine's own" if policy.home else ""
        able = replace(able, lacks="; ".join(filter(None, (home, able.lacks))))
        super().__init__(guest.project, policy, able)
        self.fs = GuestFiles(guest)
        self._guest = guest
        self._ours = ours
        self._place = kept
        self._results = os.path.join(kept.path, "tree")
        self._fresh = False  # whether what was fetched is what is there
        self._idle = guest.running() if policy.awake else None  # what runs before we begin
        self._first = self._listed()
        self._last = self._first

    def rest(self) -> None:
        """Stop the machine, unless somebody else uses it by now."""
        try:
            ours = KeptMachine(self.policy, self._guest)
        except ConfigError:
            return
        try:
            if ours.was_left_awake() is not None:
                self._guest.tool.ask("stop", self._guest.name, patience=LONG)
        finally:
            ours.release()

    def _is_idle(self) -> bool:
        """True if more is to come, and nothing runs that our commands have begun."""
        running = self._guest.running() if self.policy.awake else None
        return running is not None and self._idle is not None and running <= self._idle

    def _lull(self, said: str = "") -> None:
        """Leave the machine awake where more is to come and nothing runs in it, or stop it."""
        if not self._is_idle() or not self._ours.leave_awake(said):
            self._guest.stop()

    def _outer(self, argv: tuple[str, ...], flags: tuple[str, ...]) -> tuple[str, ...]:
        self._fresh = False
        if argv[0] == AGENT:
            return (*self._guest.tool.words, *self.run_words, self._guest.name, "--", *argv[1:])
        self._guest.find(argv[0])
        # Only our own variables: the others belong to this machine, and may be secret.
        environ = self.policy.environ
        names = [n for n in sorted(environ) if n.startswith("RALPH_") and n not in _NOT_PASSED]
        pairs = [f"{name}={environ[name]}" for name in names]
        variables = [w for pair in (*pairs, f"RALPH_SANDBOX={self.kind}") for w in ("-e", pair)]
        return self._guest.command(argv, *flags, *variables)

    def bash(self, command: str, timeout: float | None = None) -> CommandResult:
        return self.run("bash", "-c", command, timeout=timeout)

    def python(self) -> str:
        return "python3"

    def version_of(self, program: str) -> str:
        return self.run(program, "--version").output.decode("utf-8", "replace").strip()

    def keep(self, *, everything: bool = False, paths: Sequence[str] | None = None) -> CommitResult:
        done = super().keep(everything=everything, paths=paths)
        self._first = self._last
        return done

    def _listed(self) -> Listing:
        done = self._guest.ask(self.look, root=True)
        if done.code:
            raise self._lost(told(done))
        return parse_listing(done.output)

    @property
    def places(self) -> tuple[str, ...]:
        return (self._place.path,)

    def changes(self) -> tuple[Change, ...]:
        self._fetch()
        return ordered(self._compared())

    def diff(self, change: Change) -> str:
        if not self._fresh:
            self._fetch()
        return super().diff(change)

    def _fetch(self) -> None:
        """Fetch all that differs; again where what runs in there removes files meanwhile."""
        for left in reversed(range(_TRIES)):
            self._last = self._listed()
            paths = differing(self._first, self._last)
            try:
                with writing_state(self._place.path):
                    self._pull(wanted(paths, self._last))
                    like_the_project(paths, self.origin, self._results, self._first, self._last)
                self._fresh = True
                return
            except ConfigError:
                if not left:
                    raise

    def _pull(self, wanted: list[bytes]) -> None:
        layer_store.remove(self._results)
        os.makedirs(self._results, mode=0o700)
        if not wanted:
            return
        names = b"".join(b"./" + path + b"\0" for path in wanted)
        with tempfile.TemporaryFile(dir=self._place.path) as archive:
            done = self._guest.ask("pack", root=True, stdin=names, into=archive)
            if done.code > _WAS_WRITTEN or not archive.seek(0, os.SEEK_END):
                raise self._lost(told(done))
            archive.seek(0)
            try:
                unpack(archive, self._results)
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno in _NO_ROOM:
                    raise
                raise self._lost(str(error)) from error
        for path in wanted:
            if not os.path.lexists(os.path.join(os.fsencode(self._results), path)):
                raise self._lost(f"{os.fsdecode(path)!r} does not come")

    def _leave(self) -> None:
        try:
            self._let_go()
        finally:
            self._place.remove()
            self._ours.release()

    def _let_go(self) -> None:
        """Stop the machine, remove it, or leave it awake."""
        raise NotImplementedError

    def _lost(self, why: str) -> ConfigError:
        enter = " ".join((*self._guest.tool.words, "exec -it", self._guest.name, "bash"))
        return ConfigError(f"the files of the sandbox are lost: {why}", f"See: {enter}")

    def _compared(self) -> Iterable[Change]:
        raise NotImplementedError
