"""Starts the server, tells where it is, and ends it."""

import asyncio
import ipaddress
import os
import secrets
import socket
import stat
from collections.abc import Callable, Iterable, Mapping

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ralph.errors import ConfigError, failing
from ralph.files.state_dir import lstat, state_root
from ralph.kernel.value import value
from ralph.processes.signals import ending_by
from ralph.text.redact import know
from ralph.web.api import Api, Parts
from ralph.web.gate import Keys
from ralph.web.security import LARGEST_HEAD, Site, is_known

TOKEN = "RALPH_WEB_TOKEN"  # noqa: S105  the variable's name
_SHORTEST_TOKEN = 32
_PATIENCE = 15.0  # seconds for a client to do something
_PROBED = 1.0
_MOST_WAITING = 256  # clients at once
_MOST_CONNECTIONS = 512


@value
class Options:
    """The wishes of who starts a server."""

    host: str = "127.0.0.1"
    port: int = 0
    socket: str | None = None
    read_only: bool = False
    names: tuple[str, ...] = ()  # hosts that are ours too
    tls_cert: str | None = None
    tls_key: str | None = None


@value
class Place:
    """The place where a server listens; `link` is what opens the page, and logs in. `names` are
    others by which it answers."""

    url: str
    link: str
    port: int | None
    socket: str | None
    root: str
    names: tuple[str, ...] = ()


def serve(
    options: Options,
    environ: Mapping[str, str],
    ready: Callable[[Place], None],
    tell: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM. `ready` is told the place once it listens."""
    token = environ.get(TOKEN) or secrets.token_urlsafe(32)
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        remedy = f"Make one: {TOKEN}=$(openssl rand -hex 32)"
        raise ConfigError(f"{TOKEN} needs {_SHORTEST_TOKEN} letters or more", remedy)
    know([token])
    _refuse_unsafe(options)
    root = state_root(environ)
    listener = _unix_listener(options.socket) if options.socket else _listener(options)
    made = _which(options.socket) if options.socket else None
    try:
        scheme = "https" if options.tls_cert else "http"
        port = None if options.socket else listener.getsockname()[1]
        host = _host(options, scheme, listener)
        names = frozenset(name.lower() for name in (*options.names, options.host, host))
        url = _url(host, scheme, port)
        others = tuple(name for name in options.names if name != host)
        place = Place(url, f"{url}#token={token}", port, options.socket, root, others)
        ours = {name: value for name, value in environ.items() if name != TOKEN}
        keys = Keys(token, f"ralph-{port}" if port else "ralph")
        parts = Parts(Site(scheme, names, options.read_only), keys, root, ours, tell)
        asyncio.run(_serve(parts, options, listener, lambda: ready(place)))
    finally:
        listener.close()
        if options.socket and made == _which(options.socket):
            os.unlink(options.socket)


def _refuse_unsafe(options: Options) -> None:
    """Refuse to send the token over a network that may read it."""
    if bool(options.tls_cert) != bool(options.tls_key):
        remedy = "Give both: --tls-cert FILE --tls-key FILE"
        raise ConfigError("a certificate and its key belong together", remedy)
    if options.socket:
        if options.port or options.tls_cert:
            raise ConfigError("--socket excludes --port and --tls-cert", "Leave one of them out.")
        return
    wrong = [name for name in options.names if not is_known(name, frozenset({name.lower()}))]
    if wrong:
        raise ConfigError(f"{wrong[0]!r} is no host name", "For example: --allow-host box.lan")
    if not options.tls_cert and not _is_loopback(options.host):
        remedy = (
            "Give --tls-cert FILE --tls-key FILE, or stay on this machine and reach it by ssh -L."
        )
        raise ConfigError(f"at {options.host} others could read the token", remedy)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _host(options: Options, scheme: str, listener: socket.socket) -> str:
    """The host to type: where it listens. One that listens everywhere goes by a name. `localhost`
    may be two addresses, and an agent may listen at the other: its page would read the token."""
    if options.socket:
        return "localhost"
    address = str(listener.getsockname()[0])
    if ipaddress.ip_address(address.partition("%")[0]).is_unspecified:
        return options.names[0] if options.names else socket.gethostname()
    return options.host if scheme == "https" else address


def _url(host: str, scheme: str, port: int | None) -> str:
    """The address to type. That of a socket is for whoever forwards it."""
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{port}/" if port else "http://localhost/"


async def _serve(
    parts: Parts, options: Options, listener: socket.socket, ready: Callable[[], None]
) -> None:
    api = Api(parts)
    config = uvicorn.Config(
        api.app(),
        http=_Protocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        interface="asgi3",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
    )
    with failing("cannot use the certificate and its key", "Both are files in PEM."):
        config.load()
    server = uvicorn.Server(config)
    loop = asyncio.get_running_loop()

    def end() -> None:
        server.force_exit = server.should_exit  # asked twice
        server.should_exit = True
        api.close()

    with ending_by(lambda *_: loop.call_soon_threadsafe(end)):
        serving = asyncio.ensure_future(server._serve([listener]))  # noqa: SLF001  its signals are ours
        while not (server.started or serving.done()):
            await asyncio.sleep(0.005)
        ready()
        await serving


class _Protocol(H11Protocol):
    """A connection that lets its answers cut it off, and waits for nobody for ever.

    Whoever neither sends a request nor takes an answer is left. Where there are many of those, the
    one that has done nothing for longest makes room: they keep nobody out."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, "transport": transport}
        self.since, self._stood = self.loop.time(), (None, 0)
        self._late = self.loop.call_later(_PATIENCE, self._look)
        waiting = [each for each in self._all() if each.is_waiting]
        if len(waiting) > _MOST_WAITING:
            min(waiting, key=lambda each: each.since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._late.cancel()
        super().connection_lost(exc)

    @property
    def is_waiting(self) -> bool:
        """True while the next word, or the next look at what was said, is the client's."""
        cycle = getattr(self, "cycle", None)  # None before the first request; its type says not
        idle = cycle is None or cycle.response_complete or self.flow.write_paused
        return idle and not self.transport.is_closing()

    def _all(self) -> Iterable["_Protocol"]:
        return self.connections  # type: ignore[return-value]

    def _look(self) -> None:
        stands = getattr(self, "cycle", None), self.transport.get_write_buffer_size()
        if self.is_waiting and stands == self._stood:
            self.transport.abort()
            return
        self.since, self._stood = self.loop.time(), stands
        self._late = self.loop.call_later(_PATIENCE, self._look)


def _listener(options: Options) -> socket.socket:
    where = f"cannot listen at {options.host}, port {options.port}"
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{where}: {error}", "Name an address of this machine.") from error
    with failing(where, "Take another: --port 0 is any that is free"):
        listener = socket.socket(family, kind, number)
        try:
            if options.port:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(128)
        except OSError:
            listener.close()
            raise
    return listener


def _unix_listener(path: str) -> socket.socket:
    """A socket for this user only, in place of one that nobody listens on any more."""
    remedy = "Give another path: --socket PATH"
    with failing(f"cannot listen at {path}", remedy):
        try:
            is_socket = stat.S_ISSOCK(os.lstat(path).st_mode)
        except FileNotFoundError:
            pass
        else:
            if not is_socket:
                raise ConfigError(f"{path} is there and is no socket", remedy)
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(_PROBED)  # whoever listens may hang
                try:
                    probe.connect(path)
                except ConnectionRefusedError:
                    os.unlink(path)
                else:
                    raise ConfigError(f"somebody listens at {path} already", remedy)
        listener = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            listener.bind(path)
            listener.listen(128)
        except OSError:
            listener.close()
            raise
        finally:
            os.umask(before)
    return listener


def _which(path: str) -> tuple[int, int] | None:
    """The file that stands there; another may have taken its place."""
    found = lstat(path)
    return (found.st_dev, found.st_ino) if found else None
