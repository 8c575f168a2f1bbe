"""Where runs take place: ralph copied to where every user can read it, and a place for each run."""

import importlib.util
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypedDict

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent.parent / "src" / "ralph"
UID = "RALPH_FAULTS_UID"  # names the ordinary user
_NOBODY = 65534
_PACKAGES = ("click", "msgspec")
_TRY = "import click, msgspec, ralph.runner.carry_out, ralph.__main__"
_ONE_AT_A_TIME = threading.Lock()


class UnableError(Exception):
    """Why nothing can be tried here, in words."""


class _As(TypedDict, total=False):
    user: int
    group: int
    extra_groups: tuple[int, ...]


@dataclass(frozen=True)
class User:
    """Who runs ralph. Without a number: whoever we are."""

    name: str
    uid: int | None = None

    @property
    def group(self) -> int | None:
        """The group that such a user has."""
        if self.uid is None:
            return None
        try:
            return pwd.getpwuid(self.uid).pw_gid
        except KeyError:
            return self.uid

    def start(
        self,
        argv: tuple[str, ...],
        env: Mapping[str, str],
        cwd: Path,
        out: IO[bytes] | int = subprocess.DEVNULL,
        err: IO[bytes] | int = subprocess.DEVNULL,
    ) -> "subprocess.Popen[bytes]":
        """Start a command as this user, in a session and group of its own."""
        given: _As = {}
        if self.uid is not None and self.group is not None:
            given = {"user": self.uid, "group": self.group, "extra_groups": ()}
        with _ONE_AT_A_TIME:
            return subprocess.Popen(
                argv,
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                **given,
            )


def users(environ: Mapping[str, str]) -> tuple[User, ...]:
    """As root: root and an ordinary user. Else there is no choice."""
    if os.geteuid() != 0:
        return (User("this user"),)
    number = environ.get(UID, str(_NOBODY))
    if not number.isdecimal() or not 0 < int(number) < 2**32 - 1:
        raise UnableError(
            f"{UID}={number}: write the number of an ordinary user, such as {_NOBODY}"
        )
    return (User("root"), User("ordinary", int(number)))


@dataclass(frozen=True)
class Installation:
    """A ralph of its own, as it was when this was made, and the hostile agent."""

    root: Path

    @property
    def hostile(self) -> Path:
        """The program that each run gets a copy of."""
        return self.root / "hostile"

    def environment(self, home: Path) -> dict[str, str]:
        """A small environment, nothing of the caller's."""
        return {
            "PATH": os.defpath,
            "HOME": str(home),
            "PYTHONPATH": str(self.root / "packages"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LANG": "C.UTF-8",
        }

    def python_of(self, user: User) -> str:
        """An interpreter that this user can run ralph with: ours, else one of the system's."""
        name = f"python{sys.version_info.major}.{sys.version_info.minor}"
        tried = []
        for python in filter(None, (sys.executable, shutil.which(name, path=os.defpath))):
            problem = self._problem(python, user)
            if not problem:
                return python
            tried.append(f"{python}: {problem}")
        raise UnableError(
            f"{user.name} cannot run ralph in {self.root} ({'; '.join(tried)}). Make one of them "
            "readable to everybody, or TMPDIR a directory that everybody can enter"
        )

    def _problem(self, python: str, user: User) -> str:
        """Why this user cannot use this interpreter; or nothing."""
        argv, env = (python, "-c", _TRY), self.environment(self.root)
        try:
            with user.start(argv, env, self.root, err=subprocess.PIPE) as child:
                _, said = child.communicate()
        except OSError as error:
            return str(error)
        words = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return (words or "it fails") if child.returncode else ""

    def compile(self) -> None:
        """Compile the agent, and ralph once instead of in each of thousands of runs."""
        _call("cc", "-O2", "-o", str(self.hostile), str(HERE / "hostile.c"))
        _call(sys.executable, "-m", "compileall", "-q", str(self.root / "packages"))


@contextmanager
def make_installation() -> Iterator[Installation]:
    """An installation for the time being; its directory stays if something in it was kept."""
    if sys.platform != "linux":
        raise UnableError("there is a keeper on Linux only")
    root = Path(tempfile.mkdtemp(prefix="ralph-faults-")).resolve()
    installation = Installation(root)
    try:
        root.chmod(0o755)
        _copy(SOURCE, root / "packages")
        for name in _PACKAGES:
            _copy(_directory_of(name), root / "packages")
        installation.compile()
        yield installation
    finally:
        _remove(root)


def _remove(root: Path) -> None:
    shutil.rmtree(root / "packages", ignore_errors=True)
    (root / "hostile").unlink(missing_ok=True)
    try:
        root.rmdir()
    except OSError:
        pass  # a run went wrong, and is kept for whoever wants to know


def _directory_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise UnableError(f"{package} is not installed; make test does that")
    return Path(spec.origin).parent


def _copy(package: Path, where: Path) -> None:
    unwanted = shutil.ignore_patterns("__pycache__")
    copied = shutil.copytree(package, where / package.name, ignore=unwanted)
    for path in (where, copied, *copied.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _call(*argv: str) -> None:
    try:
        subprocess.run(argv, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise UnableError(
            f"{argv[0]} is missing; on Debian: apt-get install gcc libc6-dev"
        ) from error
    except subprocess.CalledProcessError as error:
        raise UnableError(f"{argv[0]}: {error.stdout}{error.stderr}") from error


@dataclass(frozen=True)
class Place:
    """A workspace, a home, a state directory and an agent that only one run has."""

    directory: Path

    @property
    def program(self) -> Path:
        """This run's own copy of the agent, by which its processes are known."""
        return self.directory / "hostile"

    @property
    def workspace(self) -> Path:
        """Where ralph runs."""
        return self.directory / "workspace"

    @property
    def home(self) -> Path:
        """Nobody's real home."""
        return self.directory / "home"

    @property
    def state(self) -> Path:
        """RALPH_STATE_DIR."""
        return self.directory / "state"

    def configure(self, settings: Mapping[str, object], user: User) -> None:
        """Write ralph's settings; then everything belongs to this user."""
        text = json.dumps(settings)
        (self.workspace / ".ralph" / "settings.json").write_text(text, "utf-8")
        if user.uid is not None and user.group is not None:
            for path in (self.directory, *self.directory.rglob("*")):
                os.chown(path, user.uid, user.group)

    def remove(self) -> None:
        """Remove it and everything in it."""
        shutil.rmtree(self.directory, ignore_errors=True)


def make_place(installation: Installation) -> Place:
    """A new place with an agent in it."""
    place = Place(Path(tempfile.mkdtemp(dir=installation.root, prefix="run-")))
    for directory in (place.home, place.state, place.workspace, place.workspace / ".ralph"):
        directory.mkdir()
    with _ONE_AT_A_TIME:  # a process forked meanwhile would hold it open, and nobody could run it
        shutil.copy(installation.hostile, place.program)
    return place
