"""Commands that must succeed before a promise is believed (`--gate`), run by the host."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping

from ralph.kernel.case import Case
from ralph.kernel.findings import Finding
from ralph.kernel.value import value
from ralph.text.redact import know, redact
from ralph.text.secrets import secrets_of

MOST_SECONDS = 600.0  # for all of them; the host waits a little longer
_TAIL = 4096  # bytes of output that the agent is told


@value
class CommandGate:
    """A shell command in the project; it is run only where something depends on it."""

    name: str  # the command
    project: str
    environ: Mapping[str, str]
    deadline: float
    matters: Callable[[Case], bool]
    always = False

    def check(self, case: Case) -> Iterable[Finding]:
        """An objection where it fails, or does not end."""
        if not self.matters(case):
            return ()
        know(secrets_of(self.environ))  # its output is told
        try:
            code, output = self._run()
        except OSError as error:
            return (Finding(self.name, f"`{self.name}` cannot be run: {error.strerror}."),)
        if code == 0:
            return ()
        why = f"failed with exit code {code}" if code is not None else "did not end in time"
        said = redact("".join(c for c in output if c.isprintable() or c in "\n\t").strip())
        said = f" Its output ends with:\n{said}" if said else ""
        words = f"The promise was not accepted, because `{self.name}` {why}."
        return (Finding(self.name, f"{words}{said}", code=code),)

    def _run(self) -> tuple[int | None, str]:
        """The exit code, None if it did not end; and what it said last."""
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                ["/bin/sh", "-c", self.name],
                cwd=self.project or None,
                env=dict(self.environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that all of it can be ended
            )
            _leave_on_signals()
            try:
                code: int | None = process.wait(max(0.0, self.deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                code = None
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    pass  # all of it is gone
                process.wait()
            output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL))
            return code, output.read().decode("utf-8", "replace")


def _leave_on_signals() -> None:
    """A host that ends us means the command too."""

    def leave(*_: object) -> None:
        raise SystemExit(0)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, leave)
