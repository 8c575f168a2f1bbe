"""A small proxy for sandboxes whose network has an allow-list.

It runs as `python -I -S proxy.py`, outside, and listens on a socket that the sandbox's first
process opened on the sandbox's own loopback: there is no other way out. It understands CONNECT
and plain HTTP requests, knows names only from its list, and ends when Ralph does.
"""

import os
import sys

TYPE_CHECKING = False  # as typing has it
if TYPE_CHECKING:
    import socket

_LINK, _LISTENER = 3, 4
_LARGEST_HEAD = 65536
_CHUNK = 65536
_PATIENCE = 30.0
_DEFAULT_PORT = 80


class Proxy:
    """Ralph's side: the process is started with the listening socket, which is then its own."""

    def __init__(self, listener: int, hosts: tuple[str, ...]) -> None:
        ours, theirs = os.pipe()
        nowhere = os.open(os.devnull, os.O_RDWR)
        try:
            self._pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", __file__, *hosts],
                os.environ,
                file_actions=[
                    *((os.POSIX_SPAWN_DUP2, nowhere, standard) for standard in (0, 1, 2)),
                    # First out of the way of each other's numbers.
                    (os.POSIX_SPAWN_DUP2, ours, 103),
                    (os.POSIX_SPAWN_DUP2, listener, 104),
                    (os.POSIX_SPAWN_DUP2, 103, _LINK),
                    (os.POSIX_SPAWN_DUP2, 104, _LISTENER),
                    (os.POSIX_SPAWN_CLOSE, 103),
                    (os.POSIX_SPAWN_CLOSE, 104),
                ],
                setsid=True,
            )
        finally:
            for descriptor in (ours, nowhere, listener):
                os.close(descriptor)
        self._link = theirs

    def close(self) -> None:
        """End it."""
        os.close(self._link)
        try:
            os.waitpid(self._pid, 0)
        except ChildProcessError:
            pass


def allows(hosts: "list[str]", host: str, port: int) -> bool:
    """Whether a list of `host`, `host:port` and `*.domain` allows to call this one."""
    host = host.rstrip(".").lower()
    for entry in hosts:
        name, _, number = entry.lower().partition(":")
        if number and number != str(port):
            continue
        if name == host or (name.startswith("*.") and host.endswith(name[1:])):
            return True
    return False


def main() -> None:
    """Serve until the pipe to Ralph is closed."""
    import socket
    import threading

    hosts = sys.argv[1:]
    listener = socket.socket(fileno=_LISTENER)
    threading.Thread(target=_accept, args=(listener, hosts), daemon=True).start()
    os.read(_LINK, 1)
    os._exit(0)


def _accept(listener: "socket.socket", hosts: "list[str]") -> None:
    import threading

    while True:
        client, _ = listener.accept()
        threading.Thread(target=_serve, args=(client, hosts), daemon=True).start()


def _serve(client: "socket.socket", hosts: "list[str]") -> None:
    import socket

    with client:
        client.settimeout(_PATIENCE)
        try:
            head, rest = _head(client)
            method, host, port, forward = _asked(head)
        except (OSError, ValueError):
            _refuse(client, "400 Bad Request", "this is a proxy for HTTP and CONNECT")
            return
        if not allows(hosts, host, port):
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


def _head(client: "socket.socket") -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = client.recv(_CHUNK)
        if not chunk or len(data) > _LARGEST_HEAD:
            raise ValueError
        data += chunk
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _asked(head: bytes) -> tuple[str, str, int, bytes]:
    """Method, host, port, and what to send on; ValueError for what is no request to a proxy."""
    line, _, fields = head.partition(b"\r\n")
    method, target, version = line.decode("latin-1").split(" ")
    if method == "CONNECT":
        host, _, port = target.rpartition(":")
        return method, host.strip("[]"), int(port), b""
    if not target.lower().startswith("http://"):
        raise ValueError
    place, _, path = target[7:].partition("/")
    place = place.rpartition("@")[2]
    host, colon, port = place.rpartition(":") if not place.endswith("]") else ("", "", "")
    where = (host, int(port)) if colon else (place, _DEFAULT_PORT)
    kept = [f for f in fields.split(b"\r\n") if f and not f.lower().startswith(_HOP)]
    request = f"{method} /{path} {version}".encode("latin-1")
    forward = b"\r\n".join([request, *kept, b"Connection: close", b"", b""])
    return method, where[0].strip("[]"), where[1], forward


_HOP = (b"proxy-", b"connection:", b"keep-alive:")


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
    import socket

    try:
        while chunk := source.recv(_CHUNK):
            to.sendall(chunk)
    except OSError:
        pass
    for end, how in ((to, socket.SHUT_WR), (source, socket.SHUT_RD)):
        try:
            end.shutdown(how)
        except OSError:
            pass


def _refuse(client: "socket.socket", status: str, why: str) -> None:
    body = f"{why}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    try:
        client.sendall(head.encode() + body)
    except OSError:
        pass


if __name__ == "__main__":
    main()
