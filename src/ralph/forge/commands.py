"""Runs gh and glab, which know a token, without a shell and in limited time."""

from collections.abc import Callable, Mapping, Sequence

from ralph.kernel.verdict import Cut
from ralph.processes.child import Command, Starter, start
from ralph.text.words import duration

_PATIENCE = 30.0  # seconds
_LARGEST = 1 << 20  # bytes of what it prints
_NOT_FOUND, _LATE = 127, 124  # exit codes, as shells and `timeout` have them
_QUIET = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1", "GH_PAGER": ""}
# They would give these out for any host: what is asked for is what they keep for that one.
_TOKENS = (
    *("GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"),
    *("GITLAB_TOKEN", "GITLAB_ACCESS_TOKEN", "OAUTH_TOKEN"),
)
Run = Callable[[Sequence[str]], tuple[int, str, str]]  # argv in; exit code, output, errors out


def runner(
    workspace: str,
    environ: Mapping[str, str],
    patience: float = _PATIENCE,
    *,
    starter: Starter = start,
) -> Run:
    """A function that runs commands there. Whatever goes wrong is an exit code and words."""
    clean = {name: held for name, held in environ.items() if name not in _TOKENS}

    def run(argv: Sequence[str]) -> tuple[int, str, str]:
        out, err = bytearray(), bytearray()
        command = Command(tuple(argv), workspace, {**clean, **_QUIET})

        def cut() -> Cut | None:
            if len(out) > _LARGEST:
                return Cut("it says too much", grace=1.0)
            late = Cut(f"it took longer than {duration(patience)}", grace=1.0)
            return late if child.seconds() >= patience else None

        try:
            child = starter(command, out.extend, err.extend)
            ended = child.wait(cut)
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            return _NOT_FOUND, "", f"it cannot be run: {words}"
        if ended.cut is not None:
            return _LATE, "", ended.cut.why
        return ended.code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    return run
