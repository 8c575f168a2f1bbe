"""Commands that must succeed before a promise is believed (`--gate`), run by the host."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping

from ralph.kernel.case import Case
from ralph.kernel.findings import Finding
from ralph.text.redact import know, redact
from ralph.text.secrets import secrets_of

MOST_SECONDS = 600.0  # for all of them; the host waits a little longer
_TAIL = 4096  # bytes of output that the agent is told


class CommandGate:
    """A shell command in the project; it is run only where something depends on it."""

    always = False

    def __init__(
        self,
        command: str,
        place: tuple[str, Mapping[str, str]],
        deadline: float,
        matters: Callable[[Case], bool],
    ) -> None:
        self.name = command
        self._project, self._environ = place
        self._deadline = deadline
        know(secrets_of(self._environ))  # its output is told
        self._matters = matters

    def check(self, case: Case) -> Iterable[Finding]:
        """What it objects to: an exit code, or that it does not end."""
        if not self._matters(case):
            return ()
        try:
            code, output = self._run()
        except OSError as error:
            return (Finding(self.name, f"`{self.name}` cannot be run: {error.strerror}."),)
        if code == 0:
            return ()
        why = f"failed with exit code {code}" if code is not None else "did not end in time"
        words = f"The promise was not accepted, because `{self.name}` {why}."
        return (Finding(self.name, f"{words}{_told(output)}", code=code),)

    def _run(self) -> tuple[int | None, str]:
        """The exit code, None if it did not end; and what it said last."""
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                ["/bin/sh", "-c", self.name],
                cwd=self._project or None,
                env=dict(self._environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that all of it can be ended
            )
            _leave_on_signals()
            try:
                code: int | None = process.wait(max(0.0, self._deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end_group(process)
            output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL))
            return code, output.read().decode("utf-8", "replace")


def _leave_on_signals() -> None:
    """A host that ends us means the command too."""

    def leave(*_: object) -> None:
        raise SystemExit(0)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, leave)


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # all of it is gone
    process.wait()


def _told(output: str) -> str:
    said = redact("".join(c for c in output if c.isprintable() or c in "\n\t").strip())
    return f" Its output ends with:\n{said}" if said else ""
