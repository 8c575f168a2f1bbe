"""A project's files as the ecosystems read them, and a check that they propose."""

import glob
import json
import os
from collections.abc import Iterable, Iterator, Mapping

from ralph.files.safe_open import read_or_nothing
from ralph.kernel.value import value
from ralph.processes.which import which

_LARGEST = 4 << 20  # bytes of a file that is looked into


@value
class ProposedCheck:
    """A command that the project declares. One whose program is missing cannot be used here."""

    role: str  # "test", "lint" or "build"
    command: str
    source: str  # the file that declares it, and where in it
    lacks: str = ""  # the program that is not installed


class Project:
    """The files right in a directory, and the programs that could run there."""

    def __init__(self, directory: str, environ: Mapping[str, str]) -> None:
        self._directory, self._path = directory, environ.get("PATH", os.defpath)
        self.java_home = environ.get("JAVA_HOME", "")
        try:
            self.names = frozenset(os.listdir(directory))
        except OSError:
            self.names = frozenset()

    def first(self, *names: str) -> str:
        """The first of these names that is there; "" if none is."""
        return next((name for name in names if name in self.names), "")

    def glob(self, *patterns: str) -> Iterator[str]:
        """The files that match, as paths from the directory."""
        for pattern in patterns:
            yield from sorted(glob.iglob(pattern, root_dir=self._directory))

    def text(self, name: str) -> str:
        """The text of a file; "" if it cannot be read."""
        path = os.path.join(self._directory, name)
        return read_or_nothing(path, _LARGEST).decode("utf-8", "replace")

    def json(self, name: str) -> Mapping[str, object]:
        """The object in a JSON file; {} if it holds none."""
        try:
            document = json.loads(self.text(name))
        except (ValueError, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}

    def runs(self, program: str) -> bool:
        """True if it can be started: a path from the directory, or a name on PATH."""
        return bool(self.which(program))

    def which(self, program: str) -> str:
        """The path of a program; "" if there is none."""
        if "/" in program:
            program = os.path.join(self._directory, program)
        return which(program, self._path) or ""

    def check(self, role: str, command: str, source: str, program: str = "") -> ProposedCheck:
        """A proposal; `program` is what must be there to run it, the first word unless said."""
        program = program or command.partition(" ")[0]
        return ProposedCheck(role, command, source, "" if self.runs(program) else program)


def scripts_of(package: Mapping[str, object]) -> dict[str, str]:
    """The scripts of a package.json or composer.json; a list of commands is one script."""
    scripts = package.get("scripts")
    if not isinstance(scripts, dict):
        return {}
    return {
        name: words if isinstance(words, str) else str(words) for name, words in scripts.items()
    }


def by_role(
    names: Iterable[str], wanted: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, str]]:
    """For each role the first of its names that is there, and no name twice."""
    left = set(names)
    for role, preferred in wanted.items():
        name = next((name for name in preferred if name in left), None)
        if name is not None:
            left.discard(name)
            yield role, name
