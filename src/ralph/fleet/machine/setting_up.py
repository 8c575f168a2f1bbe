"""What `loop.setup` installs in a warm work tree: once for each command and each state of the files
that say what is to be installed."""

import os
import re
from collections.abc import Callable, Mapping

from ralph.errors import ConfigError
from ralph.files.digest import digest_of
from ralph.files.safe_open import read_or_nothing, remove_file
from ralph.files.state_dir import write_atomically
from ralph.fleet.machine.pipe import CutOffError
from ralph.gates.tree_setup import set_up
from ralph.git.repository import Repository
from ralph.kernel.value import value
from ralph.kernel.verdict import Cut
from ralph.processes.child import Command, Starter

_LOCKFILES = re.compile(
    r"(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|yarn\.lock|bun\.lockb?|uv\.lock"
    r"|poetry\.lock|pdm\.lock|Pipfile\.lock|requirements[^/]*\.txt|Cargo\.lock|go\.sum"
    r"|Gemfile\.lock|composer\.lock|mix\.lock)"
)
_MOST_WORDS = 800  # characters


@value
class TreeSetup:
    """The command, and where its stamp is: beside the tree, where no sandbox shows it."""

    words: str
    stamp: str
    log: str

    def needs(self, repository: Repository, tree: str) -> str:
        """What the stamp says when the files of this tree are set up."""
        rows = repository.names("ls-tree", "-r", "-z", tree)
        found = [
            row for row in rows if _LOCKFILES.fullmatch(row.rpartition("/")[2].split("\t")[-1])
        ]
        return digest_of([os.fsencode(part) + b"\0" for part in (self.words, *sorted(found))])

    def is_done(self, *needs: str) -> bool:
        """True if the last one was for one of these."""
        return os.fsdecode(read_or_nothing(self.stamp, 1000)) in needs

    def run(
        self,
        needed: str,
        where: tuple[str, Mapping[str, str]],
        start: Starter,
        watch: Callable[[], Cut | None],
    ) -> None:
        """Run it there, a directory and an environment. ConfigError with its last words if it
        fails."""
        remove_file(self.stamp)
        ended, said = set_up(Command(("sh", "-c", self.words), *where), self.log, start, watch)
        if ended.cut is not None:
            raise CutOffError(ended.cut)
        if ended.code != 0:
            raise ConfigError(
                f"loop.setup failed in its work tree (exit code {ended.code}): "
                f"{said[-_MOST_WORDS:] or 'it said nothing'}",
                f"Fix it, or what it needs there. All of its output: {self.log}",
            )
        self.note(needed)

    def note(self, needed: str) -> None:
        """Know from now on what the tree is set up for."""
        write_atomically(self.stamp, needed, 0o600)
