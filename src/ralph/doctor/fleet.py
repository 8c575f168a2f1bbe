"""A fleet, as a run would use it: the way there, its certificates, and each of its machines."""

import os
import shlex
import ssl
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING

from ralph import __version__
from ralph.doctor.checks import Area, Check, ok, problem, warning
from ralph.errors import ConfigError
from ralph.fleet import security
from ralph.fleet.security import Address
from ralph.kernel.value import value

if TYPE_CHECKING:
    from ralph.fleet.cluster.asking import Fleet, Worker
    from ralph.fleet.cluster.on_worker import Told

_SOON = 14 * 86400.0  # seconds before a certificate's end
_WAIT = 90.0  # seconds for a machine: three calls of git, and a sandbox
_APART = 1.0  # seconds of clocks that are worth a word


@value
class Wanted:
    """What a run would need of every machine."""

    address: str | None
    tls: str | None
    environ: Mapping[str, str]
    agent: str  # its command, as a machine would get it; "" where none is known
    sandbox: str
    project: str = "."
    remote: str = ""
    no_remote: str = ""  # why there is none
    remedy: str = ""


def areas(wanted: Wanted) -> Iterator[Area]:
    """Each part as soon as it is known. After a problem that hides the rest nothing more comes."""
    way = tuple(_way(wanted))
    yield Area("Way to the fleet", way)
    if not any(check.name == "address" and check.state == "problem" for check in way):
        yield Area("Remote repository", (_remote_here(wanted),))
    if any(check.state == "problem" for check in way):
        return
    from ralph.fleet.cluster.asking import visit

    async def ask(fleet: "Fleet") -> "list[tuple[Worker, Told | Exception]]":
        from ralph.fleet.cluster import probe

        workers = await fleet.workers()
        words = {"agent": wanted.agent, "sandbox": wanted.sandbox, "remote": wanted.remote}
        names = [worker.address for worker in workers]
        told = await fleet.ask(names, probe.machine, words, wait=_WAIT)
        return list(zip(workers, told, strict=True))  # type: ignore[arg-type]

    try:
        found = visit(wanted.address, wanted.tls, wanted.environ, ask)
    except ConfigError as error:
        yield Area("Scheduler", (problem("scheduler", error.message, error.remedy),))
        return
    yield Area("Scheduler", tuple(_scheduler(wanted, [worker for worker, _ in found])))
    for worker, told in found:
        yield Area(f"Worker {worker.name}", tuple(_machine(wanted, worker, told)))


def _way(wanted: Wanted) -> Iterator[Check]:
    try:
        security.require_extra()
    except ConfigError as error:
        yield problem("extra", error.message, error.remedy)
        return
    yield ok("extra", f"Dask distributed {version('distributed')}")
    if not wanted.address or wanted.address in ("local", "none"):
        remedy = "Name it: --fleet ADDRESS, or the setting fleet.address"
        yield problem("address", "no fleet is named", remedy)
        return
    try:
        place = security.address_of(wanted.address)
    except ConfigError as error:
        yield problem("address", error.message, error.remedy)
        return
    if place.scheme == "tcp":
        who = "every user and every program of this machine may use it"
        yield ok("address", f"{place}, without TLS on this machine alone: {who}")
        return
    yield ok("address", str(place))
    yield from _certificates(wanted, place)


def _certificates(wanted: Wanted, place: Address) -> Iterator[Check]:
    directory = security.tls_directory(wanted.tls, wanted.environ)
    try:
        files = security.certificates_in(directory)
        ours = security.security_from(files)
        certificate = security.examine(files, ours)
    except ConfigError as error:
        yield problem("certificate", error.message, error.remedy)
        return
    yield _in_time("certificate", certificate, f"{files.cert}, signed by {files.ca}")
    try:
        theirs = security.certificate_at(place, ours)
    except OSError as error:
        yield _untold(place, error)
        return
    named = ", ".join(theirs.names) or "no host"
    yield _in_time("scheduler's", theirs, f"for {named}")
    if not theirs.is_for(place.host):
        found = f"{place.host} is not among its names; Dask does not look at them"
        yield warning("host name", found, f"Make it for DNS:{place.host}. {security.MAKE}")


def _untold(place: Address, error: OSError) -> Check:
    if isinstance(error, ssl.SSLCertVerificationError):
        remedy = f"Both must be of one authority, and in time. {security.MAKE}"
        return problem("scheduler's", f"{place}: {security.tls_trouble(error)}", remedy)
    if isinstance(error, ssl.SSLError):
        why = security.tls_trouble(error)
        return problem("scheduler's", f"{place}: {why}", security.to_trust(why))
    remedy = "Start it there: ralph fleet up --workers 0 --tls DIR --host NAME --port P"
    return problem("scheduler's", f"no certificate at {place}: {error.strerror or error}", remedy)


def _in_time(name: str, certificate: security.Certificate, words: str) -> Check:
    until = time.strftime("%Y-%m-%d", time.gmtime(certificate.expires))
    if certificate.expires - time.time() < _SOON:
        return warning(name, f"{words}; only until {until}", f"Make it again. {security.MAKE}")
    return ok(name, f"{words}; until {until}")


def _remote_here(wanted: Wanted) -> Check:
    if not wanted.remote:
        return problem("remote", wanted.no_remote, wanted.remedy)
    from ralph.fleet.cluster.probe import way_to

    return _remote("remote", wanted.remote, way_to(wanted.remote), "here")


def _remote(name: str, remote: str, why: str, where: str) -> Check:
    if not why:
        return ok(name, f"{remote}: refs of ralph can be read, pushed and deleted {where}")
    remedy = f"It must work {where}: git ls-remote {shlex.quote(remote)}"
    return problem(name, f"{remote}: {why}", remedy)


def _scheduler(wanted: Wanted, workers: "list[Worker]") -> Iterator[Check]:
    slots = sum(worker.slots for worker in workers)
    if workers:
        yield ok("scheduler", f"answers; workers: {len(workers)}, slots: {slots}")
    else:
        remedy = f"On each machine: ralph fleet worker --scheduler {wanted.address}"
        yield problem("workers", "there are none, so nothing would be begun", remedy)
    if workers and all(worker.draining for worker in workers):
        remedy = "Start others, or these again: ralph fleet worker"
        yield problem("workers", "all of them are draining", remedy)


def _machine(wanted: Wanted, worker: "Worker", told: "Told | Exception") -> Iterator[Check]:
    if isinstance(told, Exception):
        lacks = f"Its Python must have ralph-engine[fleet]=={__version__}"
        yield problem("answer", f"{type(told).__name__}: {told}", lacks)
        return
    host = str(told.get("hostname", worker.name))
    yield _version(host, str(told.get("version", "")))
    git = str(told.get("git") or "")
    if git:
        yield ok("git", git)
    else:
        yield problem("git", f"not on PATH at {host}", f"Install git on {host}")
    yield _agent(wanted, told, host)
    yield _sandbox(wanted.sandbox, told, host)
    if wanted.remote and git:
        yield _remote("remote", wanted.remote, str(told.get("remote") or ""), f"at {host}")
    apart = float(worker.told.get("apart", 0.0))
    if abs(apart) > _APART:
        which = "ahead of" if apart > 0 else "behind"
        yield ok("clock", f"{abs(apart):.0f} s {which} ours; nothing depends on it")
    if worker.draining:
        yield warning("draining", "takes no new attempt", f"Start it again on {host}")


def _version(host: str, there: str) -> Check:
    if there == __version__:
        return ok("ralph", there)
    remedy = f"On {host}: pip install 'ralph-engine[fleet]=={__version__}', and start it again"
    return problem("ralph", f"{there or 'unknown'}, and here it is {__version__}", remedy)


def _sandbox(wanted: str, told: "Told", host: str) -> Check:
    if wanted == "direct":
        free = f"none: an agent can use what {host} may do with this fleet"
        return warning("sandbox", free, "Contain them: --sandbox")
    found = told.get("sandbox") or {}
    if found.get("name"):
        return ok("sandbox", str(found["name"]))
    return problem("sandbox", str(found.get("why")), f"On {host}: ralph sandbox probe")


def _agent(wanted: Wanted, told: "Told", host: str) -> Check:
    command = wanted.agent
    if not command:
        return warning("agent", "none is known here to look for", "Name it: agent.command")
    program = command.split(maxsplit=1)[0]
    if os.sep in program and not os.path.isabs(program):
        if os.path.exists(os.path.join(wanted.project, program)):
            return ok("agent", f"{program}, which comes with the project's files")
        return problem("agent", f"{program} is not in the project", "Look at agent.command")
    if path := told.get("agent"):
        return ok("agent", f"{program} at {path}")
    remedy = f"Install {os.path.basename(program)} on {host}, and log in there"
    return problem("agent", f"{program} is not on PATH at {host}", remedy)
