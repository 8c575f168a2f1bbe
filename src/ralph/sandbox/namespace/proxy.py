"""A small proxy for sandboxes whose network has an allow-list.

It runs as `python -I -S proxy.py COUNT FORWARD... HOST...`, outside, and listens on sockets that
the sandbox's first process opened on the sandbox's own loopback: there is no other way out. On the
first it understands CONNECT and plain HTTP requests, and knows names only from its list. On each
other it passes everything on to one port of this machine. It tells Ralph whom it refused, a
message each, and ends when Ralph does.
"""

import os
import signal
import sys
from _socket import SHUT_RD, SHUT_WR
from contextlib import suppress

TYPE_CHECKING = False  # as typing has it; the socket module costs 4 ms to import
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

_LINK, _LISTENER, _FORWARDS = 3, 4, 5
_LARGEST_HEAD = 65536
_CHUNK = 65536
_PATIENCE = 30.0
_USUAL_PORTS = (80, 443)
_MOST_REFUSED = 100
_MOST_CLIENTS = 256  # at a time, on each socket; others wait
_PAUSE = 0.05
_LONGEST_NAME = 300
_OF_A_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_.-:")
_OF_A_FIELD = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~")


class Proxy:
    """Ralph's side: the process is started with the listening sockets, which are then its own.
    `forwards` are `name:port` of this machine, to be had on the sockets that follow the first."""

    def __init__(
        self, listeners: "list[int]", hosts: "Sequence[str]", forwards: "Sequence[str]"
    ) -> None:
        from ralph.processes.keeper_main import link_pair, spawn_python

        ends = [*listeners]  # to be closed, whatever happens
        try:
            self._link, theirs = link_pair()
            ends.insert(0, theirs.detach())
            try:
                self._pid = spawn_python(__file__, (str(len(forwards)), *forwards, *hosts), ends)
            except BaseException:
                self._link.close()
                raise
        finally:
            for descriptor in ends:
                os.close(descriptor)
        self._link.setblocking(False)
        self._refused: list[str] = []

    def refused(self) -> tuple[str, ...]:
        """Hosts that it has refused so far, each once."""
        with suppress(OSError):  # nothing more, or it is closed
            while name := self._link.recv(_LONGEST_NAME):
                self._refused.append(name.decode("ascii"))
        return tuple(self._refused)

    def close(self) -> None:
        """End it. What clients were told has been told to us before."""
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        self.refused()
        self._link.close()


def allows(hosts: "list[str]", host: str, port: int) -> bool:
    """True if a list of `host`, `host:port` and `*.domain` allows calling this one."""
    host = host.rstrip(".").lower()
    for entry in hosts:
        name, _, number = entry.lower().partition(":")
        if number and number != str(port):
            continue
        if name == host or (name.startswith("*.") and host.endswith(name[1:])):
            return True
    return False


def main() -> None:
    import socket
    import threading

    count = int(sys.argv[1])
    forwards, hosts = sys.argv[2 : 2 + count], sys.argv[2 + count :]
    link = socket.socket(fileno=_LINK)
    names: set[str] = set()  # that were told

    def tell(host: str, port: int) -> None:
        """Tell Ralph whom we refused, as a list would have it, each once and not without end."""
        name = host.rstrip(".").lower() + ("" if port in _USUAL_PORTS else f":{port}")
        fits = 0 < len(name) < _LONGEST_NAME and _OF_A_NAME.issuperset(name)
        if fits and name not in names and len(names) < _MOST_REFUSED:
            names.add(name)
            link.send(name.encode("ascii"))

    def begin(listener: int, serve: "Callable[[socket.socket], None]") -> None:
        given = (socket.socket(fileno=listener), serve)
        threading.Thread(target=_accept, args=given, daemon=True).start()

    for number, target in enumerate(forwards):
        begin(_FORWARDS + number, lambda client, to=target: _forward(client, to))  # type: ignore[misc]
    # A client that asks us for such a port, instead of taking it, may have it by either name.
    ports = [target.partition(":")[2] for target in forwards]
    hosts += [f"{name}:{port}" for port in ports for name in ("localhost", "127.0.0.1")]
    begin(_LISTENER, lambda client: _serve(client, hosts, tell))
    link.recv(1)
    os._exit(0)


def _accept(listener: "socket.socket", serve: "Callable[[socket.socket], None]") -> None:
    """Serve for ever; without descriptors or threads, clients are refused until there are some."""
    import threading
    import time

    room = threading.BoundedSemaphore(_MOST_CLIENTS)

    def served(client: "socket.socket") -> None:
        with client:
            try:
                serve(client)
            finally:
                room.release()

    while True:
        room.acquire()
        try:
            client, _ = listener.accept()
        except OSError:
            room.release()
            time.sleep(_PAUSE)
            continue
        try:
            threading.Thread(target=served, args=(client,), daemon=True).start()
        except RuntimeError:
            client.close()
            room.release()


def _forward(client: "socket.socket", to: str) -> None:
    """Pass a connection on; if nobody is there, it is closed."""
    import socket

    name, _, port = to.partition(":")
    try:
        server = socket.create_connection((name, int(port)), _PATIENCE)
    except OSError:
        return
    with server:
        _relay(client, server, b"")


def _serve(client: "socket.socket", hosts: "list[str]", tell: "Callable[[str, int], None]") -> None:
    import socket

    client.settimeout(_PATIENCE)
    try:
        data = b""
        while b"\r\n\r\n" not in data:
            chunk = client.recv(_CHUNK)
            if not chunk or len(data) > _LARGEST_HEAD:
                raise ValueError
            data += chunk
        head, _, rest = data.partition(b"\r\n\r\n")
        method, host, port, forward = _asked(head)
    except (OSError, ValueError):
        _refuse(client, "400 Bad Request", "this is a proxy for HTTP and CONNECT")
        return
    if not allows(hosts, host, port):
        tell(host, port)
        _refuse(client, "403 Forbidden", f"{host}:{port} is not on the sandbox's list")
        return
    try:
        server = socket.create_connection((host, port), _PATIENCE)
    except OSError as error:
        _refuse(client, "502 Bad Gateway", f"{host}:{port}: {error}")
        return
    with server:
        if method == "CONNECT":
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        _relay(client, server, forward + rest)


def _asked(head: bytes) -> tuple[str, str, int, bytes]:
    """Method, host, port, and what to send on; ValueError for what is no request to a proxy."""
    line, _, fields = head.partition(b"\r\n")
    method, target, version = line.decode("latin-1").split(" ")
    if not line.isascii() or not line.decode("ascii").isprintable():
        raise ValueError
    if method == "CONNECT":
        host, _, port = target.rpartition(":")
        return method, host.strip("[]"), int(port), b""
    if not target.lower().startswith("http://"):
        raise ValueError
    place, _, path = target[7:].partition("/")
    place = place.rpartition("@")[2]
    host, colon, port = place.rpartition(":") if not place.endswith("]") else ("", "", "")
    where = (host, int(port)) if colon else (place, 80)
    request = f"{method} /{path} {version}".encode("latin-1")
    own = (b"Host: " + place.encode("latin-1"), b"Connection: close")
    # Whom to call is in the request's first line only: a server may have others by other names.
    # And nothing that two programs could read in two ways.
    kept, names = [], []
    for field in filter(None, fields.split(b"\r\n")):
        name, there, rest = field.partition(b":")
        name = name.lower()
        plain = b"\n" not in rest and b"\r" not in rest and _OF_A_FIELD.issuperset(name)
        if not (there and name and plain):
            raise ValueError
        names.append(name)
        if name not in (b"host", b"connection", b"keep-alive") and not name.startswith(b"proxy-"):
            kept.append(field)
    if b"transfer-encoding" in names and b"content-length" in names:
        raise ValueError
    forward = b"\r\n".join([request, *own, *kept, b"", b""])
    return method, where[0].strip("[]"), where[1], forward


def _relay(client: "socket.socket", server: "socket.socket", first: bytes) -> None:
    """Pass bytes both ways until both sides have said all."""
    import threading

    server.settimeout(None)
    client.settimeout(None)
    if first:
        server.sendall(first)
    back = threading.Thread(target=_pump, args=(server, client), daemon=True)
    back.start()
    _pump(client, server)
    back.join()


def _pump(source: "socket.socket", to: "socket.socket") -> None:
    with suppress(OSError):
        while chunk := source.recv(_CHUNK):
            to.sendall(chunk)
    for end, how in ((to, SHUT_WR), (source, SHUT_RD)):
        with suppress(OSError):
            end.shutdown(how)


def _refuse(client: "socket.socket", status: str, why: str) -> None:
    body = f"{why}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    with suppress(OSError):
        client.sendall(head.encode() + body)


if __name__ == "__main__":
    main()
