"""What every test stands on: a home of its own, no credentials, no real agent, a quiet git."""

import gc
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from ralph.agents.kinds import KINDS
from ralph.text.redact import forget

AGENTS = frozenset(KINDS) - {"text"}
ROOT = Path(__file__).resolve().parent.parent
REAL_HOME = os.path.realpath(os.path.expanduser("~"))
HOME_DIRECTORIES = {
    "HOME": "home",
    "XDG_CONFIG_HOME": "home/.config",
    "XDG_CACHE_HOME": "home/.cache",
    "XDG_DATA_HOME": "home/.local/share",
    "XDG_STATE_HOME": "home/.local/state",
    "XDG_RUNTIME_DIR": "home/.runtime",
    "RALPH_STATE_DIR": "state",
}
# Where Ralph would write if it ever looked past the environment.
RALPHS_PLACES = (".ralph", ".config/ralph", ".cache/ralph", ".local/state/ralph")
# Names that steer an agent, git, a terminal's looks or a coverage run: no test inherits them.
UNWANTED_NAMES = frozenset(
    {
        "CLAUDECODE",
        "NPM_CONFIG_USERCONFIG",
        "NO_COLOR",
        "FORCE_COLOR",
        "CLICOLOR",
        "COLUMNS",
        "LINES",
        "IS_SANDBOX",
    }
    | {"COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"}
)
UNWANTED_PREFIXES = (
    *("ANTHROPIC_", "OPENAI_", "CLAUDE_", "CODEX_", "GEMINI_", "GOOGLE_", "AMP_", "OPENCODE_"),
    *("RALPH_", "GIT_", "XDG_"),
)
NUMBERS = itertools.count()  # of tests
# Homes in which no test has left anything: the next has one of these.
UNTOUCHED: list[tuple[str, list[object]]] = []
UNWANTED_SUFFIXES = ("_API_KEY", "_TOKEN", "_SECRET", "_SECRET_KEY")

# Files have the modes that most people's have; now, since some modules start processes to see what
# this machine can do, and those go on.
os.umask(0o022)

# As in kits/thorough.py, which stands beside this file in our own tree only.
EXAMPLES = 100 if os.environ.get("RALPH_TEST_ALL") else 20
settings.register_profile(
    "ralph", max_examples=EXAMPLES, deadline=None, database=None, print_blob=True
)
settings.load_profile("ralph")


def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores: most tests wait for a program of their own, nearly half of
    their time."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing of what collecting makes is garbage, and to look through it takes half the time. Nor
    do the tests themselves ever become any."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


class Guard:
    """Sees what this process opens and starts, and objects where a test must not go.

    An audit hook cannot be taken back, so there is one for the whole process; it acts only
    while a test runs.
    """

    WRITES = frozenset({"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate"})
    LINKS = frozenset({"os.link", "os.symlink"})
    STARTS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.exec", "os.spawn"})

    def __init__(self) -> None:
        self.active = False
        self.agents_allowed = False
        self.objections: list[str] = []
        self.temporary = os.path.realpath(tempfile.gettempdir())
        kept = (str(ROOT), sys.prefix, sys.base_prefix, "/dev", "/proc")
        self.free = (self.temporary, *map(os.path.realpath, kept))
        sys.addaudithook(self.see)

    def see(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.active:
            return
        if event == "open" and writes(arguments):
            self.judge_write(arguments[0])
        elif event in self.WRITES:
            for path in arguments[:2]:
                self.judge_write(path)
        elif event in self.LINKS:
            self.judge_write(arguments[1])
        elif event in self.STARTS and not self.agents_allowed:
            self.judge_start(arguments)

    def judge_write(self, path: object) -> None:
        if not isinstance(path, (str, bytes)):
            return
        place = os.path.realpath(os.fsdecode(path))
        if within(place, (REAL_HOME,)) and not within(place, self.free):
            self.refuse(f"writes into the real home: {place}")

    def judge_start(self, arguments: tuple[object, ...]) -> None:
        program = arguments[0]
        if not isinstance(program, (str, bytes)):
            return
        name = os.fsdecode(program)
        if os.path.basename(name) not in AGENTS:
            return
        found = shutil.which(name)
        if found is not None and not within(os.path.realpath(found), (self.temporary,)):
            self.refuse(f"starts a real agent: {found}")

    def refuse(self, what: str) -> None:
        self.objections.append(what)
        raise AssertionError(f"this test {what}")


def writes(arguments: tuple[object, ...]) -> bool:
    """Whether an `open` event (path, mode, flags) may change the file."""
    _, mode, flags = arguments
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def within(place: str, directories: tuple[str, ...]) -> bool:
    return any(place == there or place.startswith(f"{there}{os.sep}") for there in directories)


GUARD = Guard()


@pytest.fixture(scope="session", autouse=True)
def usual_signals() -> None:
    """What tests start is to hear these, also where `nohup` or a shell's `&` has us ignore them: we
    still do, but by a handler, which nobody inherits. Not in the process that starts the workers
    of pytest-xdist, so that they know."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.fixture(scope="session")
def quiet_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """System directories and the interpreter's own, with every real agent left out."""
    tools = [os.path.dirname(found) for found in map(shutil.which, ("git", "sh")) if found]
    directories = [os.path.dirname(sys.executable), *tools]
    directories += ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
    unique = dict.fromkeys(directory for directory in directories if os.path.isdir(directory))
    return os.pathsep.join(without_agents(directory, tmp_path_factory) for directory in unique)


@pytest.fixture(scope="session")
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a ralph that a test starts finds itself compiled, once for all workers: as it lies
    beside the sources already, and else as the first to come has compiled it."""
    base = tmp_path_factory.getbasetemp()
    own = base / "pycache"
    own.mkdir()
    for made in (ROOT / "src").rglob("__pycache__/*.pyc"):
        place = own / made.parent.parent.relative_to(made.anchor)
        place.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, place / made.name)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return str(own)
    with suppress(OSError):  # another was first
        own.rename(base.parent / "pycache")
    return str(base.parent / "pycache")


def without_agents(directory: str, factory: pytest.TempPathFactory) -> str:
    """The directory itself, or one of links to everything in it that is not an agent."""
    names = set(os.listdir(directory))
    if not names & AGENTS:
        return directory
    links = factory.mktemp("bin")
    for name in names - AGENTS:
        (links / name).symlink_to(os.path.join(directory, name))
    return str(links)


def unwanted(name: str) -> bool:
    return (
        name in UNWANTED_NAMES
        or name.startswith(UNWANTED_PREFIXES)
        or name.endswith(UNWANTED_SUFFIXES)
    )


def ralphs_places() -> dict[str, list[str] | None]:
    """What lies where Ralph would write in the real home: a test must not add to it."""
    places = (os.path.join(REAL_HOME, place) for place in RALPHS_PLACES)
    return {place: sorted(os.listdir(place)) if os.path.isdir(place) else None for place in places}


def new_home(own: str) -> tuple[str, list[object]]:
    """The directories of a home, and what there is to see of them."""
    for directory in HOME_DIRECTORIES.values():
        os.makedirs(os.path.join(own, directory), exist_ok=True)
    return own, at_home(own)


def at_home(own: str) -> list[object]:
    """What lies in a home."""
    try:
        return [(place, os.stat(place).st_mode, files) for place, _, files in os.walk(own)]
    except OSError:  # something is still at work there
        return []


@pytest.fixture
def numbered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A path of the test's own. Pytest would list all that there are, for each new one."""
    number, name = next(NUMBERS), re.sub(r"\W", "_", request.node.name)[:30]
    return str(tmp_path_factory.getbasetemp() / f"{name}-{number}")


@pytest.fixture
def tmp_path(numbered: str) -> Path:
    """An empty directory."""
    os.mkdir(numbered, 0o700)
    return Path(numbered)


@pytest.fixture(autouse=True)
def guarded(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    quiet_path: str,
    bytecode: str,
    numbered: str,
) -> Iterator[None]:
    """Gives the test a world of its own, and fails it if it reaches beyond."""
    real = request.node.get_closest_marker("agents") is not None
    for name in filter(unwanted, list(os.environ)):
        if not (real and name == "RALPH_AGENTS_BIN"):
            monkeypatch.delenv(name)
    own, untouched = UNTOUCHED.pop() if UNTOUCHED else new_home(f"{numbered}-own")
    for name, directory in HOME_DIRECTORIES.items():
        monkeypatch.setenv(name, os.path.join(own, directory))
    monkeypatch.setenv("PATH", quiet_path)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", bytecode)
    # None is there; a test that writes one as root would else replace the device /dev/null.
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.path.join(own, "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_TERMINAL_PROMPT", "0")
    # Somebody's repository in /tmp is not that of a test.
    base = os.path.realpath(tmp_path_factory.getbasetemp())
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", base)
    before = ralphs_places()
    forget()  # the secrets of other tests
    # A hook ends with its process, and leaves its handlers to that.
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    GUARD.objections, GUARD.agents_allowed, GUARD.active = [], real, True
    yield
    GUARD.active = False
    for number, handler in handlers.items():
        signal.signal(number, handler)
    if at_home(own) == untouched:
        UNTOUCHED.append((own, untouched))
    assert not GUARD.objections, "; ".join(GUARD.objections)
    assert ralphs_places() == before, "something wrote Ralph's files into the real home"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, and the current one."""
    directory = tmp_path / "workspace"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


@pytest.fixture
def repo(workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real git repository with one commit, and the current directory."""
    base = str(tmp_path_factory.getbasetemp())
    shutil.copytree(template(base), workspace, symlinks=True, dirs_exist_ok=True)
    subprocess.run(["git", "update-index", "-q", "--refresh"], check=True)  # other inodes
    return workspace


@cache
def template(base: str) -> str:
    """A repository to copy, which takes a third of the time of a new one."""
    place = os.path.join(base, "template")
    git = ["git", "-C", place]
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", place], check=True)
    subprocess.run([*git, "config", "user.name", "Ralph tests"], check=True)
    subprocess.run([*git, "config", "user.email", "tests@ralph.invalid"], check=True)
    Path(place, "README.md").write_text("A workspace of Ralph's tests.\n")
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "Begin"], check=True)
    return place
