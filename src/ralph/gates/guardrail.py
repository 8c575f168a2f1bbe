"""Guardrails: shell commands that must exit with 0 (H §Guardrails)."""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, count

from ralph.agents.turn_files import logged
from ralph.files.digest import digest_of
from ralph.files.safe_open import create
from ralph.files.state_dir import shown_path, writable_dir
from ralph.kernel.case import Case
from ralph.kernel.findings import Finding
from ralph.kernel.value import value
from ralph.kernel.verdict import Cut, Placement
from ralph.kernel.world import Signals, hurried
from ralph.processes.child import Command, Starter, start
from ralph.text.redact import redact
from ralph.text.words import duration

TIMED_OUT = 124  # as coreutils' timeout has it
NOT_RUN = 126


@value
class GatePlace:
    """The directory and the surroundings in which checks run, and where their output goes."""

    workspace: str
    fallback: str  # for logs, where .ralph cannot be written
    env: Mapping[str, str]
    truncate: int  # characters for the agent; 0 is all
    signals: Callable[[], Signals]
    stop_grace: float | None = None
    max_time: float | None = None  # of the run
    start: Starter = start
    room: str = ""  # another directory to run in

    @property
    def here(self) -> str:
        """The directory in which commands run."""
        return self.room or self.workspace

    def log(self, name: str) -> str:
        """The path of a log."""
        return os.path.join(writable_dir(self.workspace, self.fallback), name)

    def watch(self, seconds: float, patience: tuple[float, str] | None) -> Cut | None:
        """A reason to end a command: somebody is in a hurry, or its time is over."""
        hurry = hurried(self.signals(), time.time(), self.stop_grace)
        if hurry is None and patience is not None and seconds >= patience[0]:
            return Cut(patience[1], grace=1.0)
        return hurry


@value
class Guardrail:
    """One configured command."""

    name: str
    place: GatePlace
    slug: str  # distinct among the guardrails of a run
    placement: Placement = Placement.APPEND
    hint: str = ""
    timeout: float | None = None
    always = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Run it; a non-zero exit is a finding. The whole output is in the log, without secrets."""
        place, patience = self.place, self._patience(case)
        log = place.log(f"guardrail_{case.state.iteration:03d}_{self.slug}.log")
        command = Command(("sh", "-c", self.name), place.here, place.env)
        try:
            # It stays open: a command such as `git clean` may remove the log.
            with os.fdopen(create(log, 0o644), "w+b", 0) as file:
                ended = logged(place.start, command, file, lambda sec: place.watch(sec, patience))
                file.seek(0)
                most = 4 * place.truncate + 4 if place.truncate else -1
                data = file.read(most) if ended.code or ended.cut else b""
                full = os.fstatvfs(file.fileno()).f_bavail == 0
        except (OSError, ValueError) as error:
            yield self._finding(NOT_RUN, log, f"It could not be run: {error}")
            return
        output = excerpt(data, place.truncate)
        if ended.cut:
            yield self._finding(TIMED_OUT, log, output, ended.cut.why)
        elif ended.code:
            yield self._finding(ended.code, log, output, "the disk is full" if full else "")

    def _patience(self, case: Case) -> tuple[float, str] | None:
        """The time that it may take, and the words for when that is over."""
        limits = []
        if self.timeout is not None:
            limits.append((self.timeout, f"timed out after {duration(self.timeout)}"))
        if self.place.max_time is not None:
            rest = max(0.0, self.place.max_time - case.spent.seconds)
            limits.append((rest, "the run's time is used up"))
        return min(limits, default=None)

    def _finding(self, code: int, log: str, output: str, why: str = "") -> Finding:
        shown = shown_path(log, self.place.workspace)
        also = f" ({why})" if why else ""
        lines = [f'Guardrail "{self.name}" failed with exit code {code}{also}.']
        lines += [f"Hint: {self.hint}"] if self.hint else []
        lines += [f"Output file: {shown}", "Output (truncated):", output]
        gist = digest_of([output.encode("utf-8", "replace")], size=8)
        return Finding(self.name, redact("\n".join(lines)), self.placement, code, shown, gist)


def excerpt(data: bytes, most: int) -> str:
    """The first characters of an output, 0 for all; NUL and invalid UTF-8 become U+FFFD."""
    text = redact(data.decode("utf-8", "replace").replace("\0", "\ufffd"))
    return f"{text[:most]}... [truncated]" if most and len(text) > most else text


def slugs(commands: tuple[str, ...]) -> tuple[str, ...]:
    """File names for commands: `make test` -> `make_test`; one used again gets `_1`."""
    names: list[str] = []
    for command in commands:
        slug = re.sub(r"[^A-Za-z0-9]+", "_", redact(command)).strip("_")[:50] or "command"
        again = (f"{slug}_{number}" for number in count(1))
        names.append(next(name for name in chain([slug], again) if name not in names))
    return tuple(names)
