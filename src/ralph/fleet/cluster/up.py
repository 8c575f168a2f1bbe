"""`ralph fleet up`: a scheduler and its workers below a keeper, until Ctrl+C."""

import json
import os
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict

from ralph.errors import ConfigError, failing
from ralph.fleet.cluster.plan import Plan
from ralph.fleet.security import certificates_in, is_loopback, require_extra, tls_directory
from ralph.kernel.verdict import Cut
from ralph.processes.child import Command
from ralph.processes.signals import ending_by
from ralph.runner.keeping import keeping

_GRACE = 20.0  # seconds for all to end; attempts have 12
_STATE = "RALPH_STATE_DIR"
_KILLED = 128
_Write = Callable[[bytes], object]


def planned(
    host: str, port: int, *, workers: int, slots: int, tls: str | None, environ: Mapping[str, str]
) -> Plan:
    """The plan of what was typed: where others reach it, it has TLS. ConfigError if it cannot."""
    require_extra()
    name = socket.gethostname().partition(".")[0] or "worker"
    if not tls and is_loopback(host):
        return Plan("tcp", host, port, workers, slots, name)
    directory = tls_directory(tls, environ)
    certificates_in(directory)
    return Plan("tls", host, port, workers, slots, name, directory)


def up(plan: Plan, environ: Mapping[str, str], out: _Write, err: _Write) -> int:
    """Have the fleet run until SIGINT or SIGTERM; the exit code. Nothing is left of it then, nor if
    we are killed."""
    _refuse_taken(plan.host, plan.port)
    words = (sys.executable, "-P", "-m", "ralph.fleet.cluster.begin")
    stdin = json.dumps(asdict(plan)).encode()
    asked: list[int] = []

    def watch() -> Cut | None:
        return Cut("asked to end", _GRACE if len(asked) == 1 else 0.1) if asked else None

    # Our own ears first: a signal that comes while it starts ends it too.
    with ending_by(lambda number, _: asked.append(number)), keeping(None) as start:
        ended = start(Command(words, "/", _lasting(environ), stdin), out, err).wait(watch)
    if ended.cut is not None:
        return 0
    if ended.code >= _KILLED:
        err(f"[ralph] The fleet was killed (exit code {ended.code}); nothing is left.\n".encode())
    return ended.code  # otherwise it has said why


def _refuse_taken(host: str, port: int) -> None:
    """ConfigError where nobody can listen, before anything is started."""
    where = f"cannot listen at {host}, port {port}"
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"{where}: {why}", "Name an address of this machine.") from error
    with (
        failing(where, "Name an address of this machine, and a port: --port 0 is any that is free"),
        socket.socket(family, kind, number) as probe,
    ):
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)


def _lasting(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for another current directory."""
    return {**environ, **{n: os.path.abspath(environ[n]) for n in (_STATE,) if environ.get(n)}}
