"""The common parts of sandboxes that are machines of their own: R's pattern of create, exec and
run, the agent's login, and how their files are looked at (R §3, §4)."""

import errno
import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from ralph.errors import ConfigError
from ralph.files.state_dir import unwritable_state, write_atomically
from ralph.kernel.value import replace
from ralph.sandbox import layer_store
from ralph.sandbox.backends.base import Sandbox
from ralph.sandbox.backends.guest import LONG, Guest, GuestFiles, SandboxTool, told
from ralph.sandbox.changes import pulled
from ralph.sandbox.interface import (
    Capabilities,
    Change,
    CommandResult,
    Network,
    SandboxPolicy,
    ordered,
)

AGENT = "claude"  # what such a sandbox is made for, and what `run` runs
_LOGIN = ".dclaude_state"
_LONGEST = 63  # characters of a name
_OURS = "RALPH_"  # variables that are passed on
_NOT_OURS = ("RALPH_STATE_DIR", "RALPH_SANDBOX", "RALPH_SANDBOX_SETTLE")
_TYPESCRIPT = (("bun", "run", "-"), ("deno", "run", "-"))
_SETUP = "setup.sh"
_NOT_THERE = 127
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
    directory = os.path.join(os.path.realpath(home), _LOGIN)
    file = os.path.join(directory, ".claude.json")
    try:
        os.makedirs(os.path.join(directory, ".claude"), mode=0o700, exist_ok=True)
        if not os.path.exists(file) or not os.path.getsize(file):
            write_atomically(file, "{}\n", mode=0o600)  # an empty one is no JSON
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror}", "Make it writable.") from error
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


def set_up(guest: Guest, state: str) -> None:
    """Link the login and set git's identity; again it does no harm."""
    words = ("exec", "-u", "root", guest.name, "bash", "-c", setup_script(), _SETUP, state)
    guest.tool.must("prepare the sandbox", *words, patience=LONG)


def not_answering(words: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """The reason why a tool cannot list its sandboxes, or ""."""
    done = SandboxTool(words, environ).ask("ls", "--json")
    return f"{' '.join(words)} does not answer: {told(done)}" if done.code else ""


class Ours:
    """Notes about a sandbox that Ralph made, kept outside of it, and the lock of its user."""

    def __init__(self, policy: SandboxPolicy, project: str, name: str) -> None:
        above = layer_store.sandboxes(policy.state, project)
        self._name = name
        self._note = os.path.join(above, f"{name}.network")
        self._awake = os.path.join(above, f"{name}.awake")
        lock = os.path.join(above, f"{name}.lock")
        try:
            os.makedirs(above, mode=0o700, exist_ok=True)
            self._lock = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise unwritable_state(above, error) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise ConfigError(
                f"another ralph uses the sandbox {name}", "Wait for it, or use another --backend."
            ) from None

    def release(self) -> None:
        os.close(self._lock)

    def check_made(self, remove: str) -> None:
        """ConfigError for a sandbox of that name that somebody else made, or that is held."""
        if self._text() == _HELD:
            raise ConfigError(
                f"the sandbox {self._name} has the only copy of what could not be kept",
                f"Save what you need of it, then type: {remove}",
            )
        if not os.path.exists(self._note):
            raise ConfigError(
                f"there is a sandbox {self._name} that this Ralph did not make", f"Type: {remove}"
            )

    def was_left_awake(self) -> str | None:
        """The words said when it was left running with nothing to do, once; None if it was not."""
        try:
            with open(self._awake, encoding="utf-8") as file:
                said = file.read()
            os.unlink(self._awake)
        except OSError:
            return None
        return said

    def leave_awake(self, said: str) -> bool:
        """Note that it runs on, with nothing to do; False if nobody could know."""
        try:
            write_atomically(self._awake, said or "-", mode=0o600)
        except OSError:
            return False
        return True

    def may_call(self, network: Network) -> bool:
        """True if its rules were made for this network. They cannot be taken back, nor be read."""
        return self._text() == str(network)

    def _text(self) -> str:
        try:
            with open(self._note, encoding="utf-8") as file:
                return file.read()
        except OSError:
            return ""

    def note(self, network: Network | None = None) -> None:
        """Note that it is being made, or that its rules are."""
        try:
            write_atomically(self._note, "" if network is None else str(network), mode=0o600)
        except OSError as error:
            raise unwritable_state(os.path.dirname(self._note), error) from error

    def hold(self) -> None:
        """Note that it has the only copy of something: only a person is to use or remove it."""
        try:
            write_atomically(self._note, _HELD, mode=0o600)
        except OSError:
            self.forget()  # then it is nobody's, and is not touched either

    def forget(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._note)


@contextmanager
def opening(policy: SandboxPolicy, guest: Guest) -> Iterator[tuple[Ours, layer_store.LayerDir]]:
    """The notes and the directory of a machine; given up if it cannot be opened to the end."""
    ours = Ours(policy, guest.project, guest.name)
    try:
        kept = layer_store.claim(policy.state, guest.project)
        try:
            yield ours, kept
        except BaseException:
            kept.remove()
            raise
    except OSError as error:
        ours.release()
        raise unwritable_state(policy.state, error) from error
    except BaseException:
        ours.release()
        raise


def create(
    guest: Guest, ours: Ours, network: Network, words: Iterable[str], rules: Iterable[str]
) -> None:
    """Make a machine with these words, and set its rules; if that fails it is removed again."""
    ours.note()
    try:
        guest.tool.must("make a sandbox", "create", *words, patience=LONG)
        guest.tool.must("set the rules of a sandbox", *rules)
    except BaseException:
        guest.tool.ask(*guest.tool.remove, guest.name, patience=LONG)
        ours.forget()
        raise
    ours.note(network)


def remove(guest: Guest, ours: Ours) -> None:
    guest.tool.must("remove the sandbox", *guest.tool.remove, guest.name, patience=LONG)
    ours.forget()


class Remote(Sandbox):
    """A machine with the project at the same path. Its files are reached by the tool alone."""

    python = "python3"
    kind = ""  # the backend's name
    run_words: tuple[str, ...] = ("run",)  # what comes before the name when the agent is run
    look = "look"  # how its files are listed

    def __init__(
        self,
        policy: SandboxPolicy,
        able: Capabilities,
        guest: Guest,
        kept: layer_store.LayerDir,
        ours: Ours,
    ) -> None:
        home = "the home directory is the machine's own" if policy.home else ""
        able = replace(able, lacks="; ".join(filter(None, (home, able.lacks))))
        super().__init__(guest.project, policy, able, files=GuestFiles(guest))
        self._guest = guest
        self._ours = ours
        self._place = kept
        self._results = os.path.join(kept.path, "tree")
        self._fresh = False  # whether what was fetched is what is there
        self._idle = guest.running() if policy.awake else None  # what runs before we begin
        self._first = self._listed()
        self._last = self._first
        self._paths: list[bytes] = []

    def rest(self) -> None:
        """Stop the machine, unless somebody else uses it by now."""
        try:
            ours = Ours(self.policy, self.origin, self._guest.name)
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

    # ------------------------------------------------------------ commands

    def _outer(
        self, argv: tuple[str, ...], *, reads: bool, terminal: bool = False
    ) -> tuple[str, ...]:
        self._fresh = False
        if argv[0] == AGENT:
            return (*self._guest.tool.words, *self.run_words, self._guest.name, "--", *argv[1:])
        self._guest.find(argv[0])
        flags = ("-it",) if terminal else ("-i",) if reads else ()
        # Only our own variables: the others belong to this machine, and may be secret.
        environ = self.policy.environ
        names = [n for n in sorted(environ) if n.startswith(_OURS) and n not in _NOT_OURS]
        pairs = [f"{name}={environ[name]}" for name in names]
        variables = [w for pair in (*pairs, f"RALPH_SANDBOX={self.kind}") for w in ("-e", pair)]
        return self._guest.command(argv, *flags, *variables)

    def bash(self, command: str) -> CommandResult:
        return self.run("bash", "-c", command)

    def _typescript(self, code: bytes) -> CommandResult:
        for words in _TYPESCRIPT:
            done = self.run(*words, stdin=code)
            if done.code != _NOT_THERE:
                return done
        raise ConfigError("nothing in there runs TypeScript", "Install bun or deno in it.")

    # ------------------------------------------------------------ changes

    def _listed(self) -> pulled.Listing:
        done = self._guest.ask(self.look, root=True)
        if done.code:
            raise self._lost(told(done))
        return pulled.parse(done.output)

    def changes(self) -> tuple[Change, ...]:
        self._fetch()
        return ordered(self._compared(self._paths))

    def diff(self, change: Change) -> str:
        if not self._fresh:
            self._fetch()
        return super().diff(change)

    def _fetch(self) -> None:
        """Fetch all that differs. What runs in there may remove files meanwhile, so that it is
        tried again."""
        for left in reversed(range(_TRIES)):
            self._last = self._listed()
            self._paths = pulled.differing(self._first, self._last)
            try:
                self._pull()
                for path in reversed(self._paths):
                    if os.path.lexists(os.path.join(os.fsencode(self._results), path)):
                        where = (self.origin, self._results)
                        pulled.like_the_project(path, *where, self._first, self._last)
                self._fresh = True
                return
            except ConfigError:
                if not left:
                    raise
            except OSError as error:
                raise unwritable_state(self._place.path, error) from error

    def _pull(self) -> None:
        layer_store.remove(self._results)
        os.makedirs(self._results, mode=0o700)
        wanted = pulled.wanted(self._paths, self._last)
        if not wanted:
            return
        names = b"".join(b"./" + path + b"\0" for path in wanted)
        with tempfile.TemporaryFile(dir=self._place.path) as archive:
            done = self._guest.ask("pack", root=True, stdin=names, into=archive)
            if done.code > _WAS_WRITTEN or not archive.seek(0, os.SEEK_END):
                raise self._lost(told(done))
            archive.seek(0)
            try:
                pulled.unpack(archive, self._results)
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno in _NO_ROOM:
                    raise
                raise self._lost(str(error)) from error
        for path in wanted:
            if not os.path.lexists(os.path.join(os.fsencode(self._results), path)):
                raise self._lost(f"{os.fsdecode(path)!r} does not come")

    def _lost(self, why: str) -> ConfigError:
        enter = " ".join((*self._guest.tool.words, "exec -it", self._guest.name, "bash"))
        return ConfigError(f"the files of the sandbox are lost: {why}", f"See: {enter}")

    def _compared(self, paths: list[bytes]) -> Iterable[Change]:
        raise NotImplementedError
