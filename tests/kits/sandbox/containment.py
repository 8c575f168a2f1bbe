"""The conformance kit's checks of what a command in a sandbox can reach: files and hosts."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kits.agent.bench import NotApplicable
from kits.sandbox.stage import Stage, text_of
from ralph.sandbox.interface import Network

_HELLO = b"hello from outside"
_CALL = """
import socket
link = socket.create_connection(("127.0.0.1", {port}), 5)
print(link.recv(100).decode())
"""
_CONNECT = """
import base64, os, socket, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
known = urllib.parse.unquote(proxy.netloc.rpartition("@")[0]).encode()
who = b"Proxy-Authorization: Basic " + base64.b64encode(known) + b"\\r\\n" if known else b""
link = socket.create_connection((proxy.hostname, proxy.port), 5)
link.sendall(b"CONNECT {host}:{port} HTTP/1.1\\r\\n" + who + b"\\r\\n")
print(link.recv(1000).decode())
"""


def contains(stage: Stage) -> None:
    """The host is read only, /tmp and /var/tmp are private, the state directory is hidden."""
    stage.needs("contain")
    secret = os.path.join(stage.state, "secret")
    with open(secret, "w", encoding="ascii") as file:
        file.write("x")
    name = os.path.basename(stage.directory)  # nobody else has it
    places = [f"{stage.directory}/beside", f"/tmp/{name}.private", f"/var/tmp/{name}.private"]
    with stage.open() as sandbox:
        for path in (*places, secret):
            sandbox.bash(f"echo changed > {path}")
        private = sandbox.bash(f"echo x > {places[1]} && cat {places[1]}").output
        seen = sandbox.bash(f"cat {secret}").output
    wrong = [path for path in places if os.path.exists(path)]
    for path in wrong:
        os.unlink(path)
    assert not wrong, f"it wrote {wrong}"
    assert (private, seen) == (b"x\n", b"")
    assert text_of(secret) == "x"


def throws_home_away(stage: Stage) -> None:
    """What is written into a home directory works, is no change, and never reaches the host; the
    project and the state directory in it are as without."""
    stage.needs("contain")
    home = stage.directory  # the project lies in it, and so does the state directory
    for path, text in (("settings", "old\n"), ("state/secret", "x\n")):
        with open(os.path.join(home, path), "w", encoding="ascii") as file:
            file.write(text)
    script = "cd ~; mkdir -p .cache/deep; echo new >> settings; echo x > .cache/deep/file; "
    with stage.open(home=home) as sandbox:
        if sandbox.capabilities.lacks:
            raise NotApplicable(f"it says: {sandbox.capabilities.lacks}")
        done = sandbox.bash(
            script + "cat settings .cache/deep/file; ls -A state; echo y > project/new"
        )
        assert done.output == b"old\nnew\nx\n", done
        assert [change.path for change in sandbox.changes()] == ["new"]
        assert not sandbox.commit().spared
    assert stage.text("new") == "y\n"
    assert text_of(os.path.join(home, "settings")) == "old\n"
    assert text_of(os.path.join(home, "state", "secret")) == "x\n"
    assert not os.path.exists(os.path.join(home, ".cache"))


@contextmanager
def _server() -> Iterator[int]:
    """Greets whoever calls it on loopback; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    client.sendall(_HELLO)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def calls_nobody(stage: Stage) -> None:
    """Without a network nobody can be called; with a list only who is on it, by the proxy."""
    stage.needs("egress")
    with _server() as port:
        call = _CALL.format(port=port)
        with stage.open() as sandbox:
            assert sandbox.eval(call).output == b""
        with stage.open(Network(hosts=("localhost",))) as sandbox:
            assert sandbox.eval(call).output == b""
            for host, answer in (("localhost", b"200"), ("127.0.0.1", b"403")):
                said = sandbox.eval(_CONNECT.format(host=host, port=port)).output
                assert said.startswith(b"HTTP/1.1 " + answer), said


def reaches_a_port(stage: Stage) -> None:
    """A port of this machine that is on the list is reached without a proxy, and no other is."""
    stage.only("overlay")
    with _server() as port, _server() as other:
        for name in ("127.0.0.1", "localhost"):
            with stage.open(Network(hosts=(f"{name}:{port}",))) as sandbox:
                assert sandbox.eval(_CALL.format(port=port)).output == _HELLO + b"\n"
                assert sandbox.eval(_CALL.format(port=other)).output == b""


def tells_whom_it_refused(stage: Stage) -> None:
    """`refused` names each host once that was called and is not on the list."""
    stage.only("overlay")
    with stage.open(Network(hosts=("ralph.invalid",))) as sandbox:
        assert sandbox.refused() == ()
        for host, port in (("one.invalid", 443), ("two.invalid", 8080), ("ONE.invalid", 443)):
            sandbox.eval(_CONNECT.format(host=host, port=port))
        assert sandbox.refused() == ("one.invalid", "two.invalid:8080"), sandbox.refused()
    assert sandbox.refused() == ("one.invalid", "two.invalid:8080")


CHECKS: tuple[Callable[[Stage], None], ...] = (
    contains,
    throws_home_away,
    calls_nobody,
    reaches_a_port,
    tells_whom_it_refused,
)
