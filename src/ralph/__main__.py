"""The command `ralph`. What must be quick is answered before anything is imported."""

import gc
import os
import sys

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

    from ralph.loops.supervise.register_job import Registered
    from ralph.processes.keeper_main import Launched
else:
    import _signal as signal  # the other makes enums of it all, which takes half of our start

# Python's own 700 has it look for garbage forty times while it imports, and finds none.
_NEW_OBJECTS = 50_000
_INTERRUPTED = 130
_NO_RUN = frozenset({"-h", "--help", "-v", "--version", "--dry-run", "--detach", "--watch"})


def main() -> None:
    """Run the command line and exit with its code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-v"]):
        sys.exit(_print_version())
    if arguments[:1] == ["hook"] and len(arguments) in (2, 3):
        _answer_host(*arguments[1:])
    _hold_standard_streams()
    _on_signals(_leave)  # imports take a moment, and a signal may come in it
    gc.set_threshold(_NEW_OBJECTS)
    if arguments[:1] == ["mcp"] and (len(arguments) == 1 or arguments[1:-1] == ["--root"]):
        sys.exit(_serve_mcp(arguments))
    job = _registered(arguments)
    keeper = _keeper_for(arguments, job)
    from ralph.cli.main import run_command_line

    code = run_command_line(arguments, keeper, job)
    if keeper is not None:
        keeper.let_go()
    if job is not None:
        job.end_anyhow(code)
    if code == _INTERRUPTED:
        _leave()
    sys.exit(code)


def _answer_host(hook: str, agent: str = "") -> None:
    """Run a hook, as an agent's settings have it if one is named, and exit; a host waits for it,
    and no signal of ours may end it."""
    from ralph.hosts.protocol import AGENTS, HOOKS, module_of

    if hook in HOOKS and agent in AGENTS:
        from ralph.hooks.installed import main as main_installed

        sys.exit(main_installed(agent, hook))
    if hook in HOOKS and not agent:
        sys.exit(__import__(module_of(hook), fromlist=("main",)).main())


def _serve_mcp(arguments: list[str]) -> int:
    """Serve a client of MCP, which waits for the first answer; whatever else was typed is click's
    to understand."""
    from ralph.cli.ending import ending
    from ralph.mcp.serve import serve_here

    root = arguments[2] if len(arguments) > 1 else None
    return ending(lambda: serve_here(root), arguments)


def _hold_standard_streams() -> None:
    """A closed 0, 1 or 2 would go to the next file we open, and notices for people into it."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


def _on_signals(handler: "Callable[..., None]") -> None:
    """Also where a shell's `&` had us ignore SIGINT: people end us by it, and we end agents by it,
    who would inherit that. SIGQUIT stays without effect on us, but by a handler, which nobody
    inherits."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)
    if signal.getsignal(signal.SIGQUIT) == signal.SIG_IGN:
        signal.signal(signal.SIGQUIT, lambda *_: None)


def _registered(arguments: list[str]) -> "Registered | None":
    """`ralph job` registers its run at once: whoever ends our caller spares only such as did."""
    if arguments[:1] != ["job"]:
        return None
    from ralph.loops.supervise.register_job import leave_group, register, wanted

    wish = wanted(arguments[1:], os.environ)
    if wish is None:
        return None
    leave_group()
    try:
        job = register(*wish, os.environ)
    except OSError:
        return None  # it is tried again when all is known, and told then

    def leave(*_: object) -> None:
        job.end_anyhow(_INTERRUPTED)
        _leave()

    _on_signals(leave)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup: the terminal may go
        signal.signal(signal.SIGHUP, leave)
    return job


def _keeper_for(arguments: list[str], job: "Registered | None") -> "Launched | None":
    """A run needs a keeper, which gets ready while we import (ADR 23)."""
    from ralph.runner.loops import is_run

    first = arguments[0] if arguments else ""
    runs = is_run(arguments) or first.startswith("-") or " " in first  # a prompt
    if sys.platform != "linux" or not (runs or job is not None):
        return None
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if job is None and not _NO_RUN.isdisjoint(own):
        return None
    from ralph.processes.keeper_main import launch

    try:
        return launch()
    except OSError:
        return None  # it is tried again when it is needed, and told then


def _leave(*_: object) -> None:
    """`python -m` would turn a Ctrl+C that came within an `exec` into a death by SIGINT, although
    it was caught; so it is not asked. What is said is flushed when it is said."""
    os._exit(_INTERRUPTED)


def _print_version() -> int:
    """Written at once, so that a full or closed stdout is an exit code and no traceback."""
    from ralph import __version__

    try:
        os.write(1, f"ralph {__version__}\n".encode())
    except OSError:
        return 1
    return 0


if __name__ == "__main__":
    main()
