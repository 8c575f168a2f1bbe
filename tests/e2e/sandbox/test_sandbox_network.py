"""`ralph sandbox run`: whom a command may call, and what it leaves at home."""

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from run_support import Done, assert_clear, ralph

from kits.sandbox.stage import overlay_is_usable

# Python 3.12 warns that forking a process with threads may hang; the child executes at once.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
    pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces"),
]


def run(*arguments: str) -> Done:
    return ralph("sandbox", "run", *arguments)


@pytest.fixture
def project(workspace: Path) -> Path:
    (workspace / "a").write_text("1\n")
    return workspace


@contextmanager
def server() -> Iterator[int]:
    """Answers every HTTP request on loopback; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    client.recv(10_000)
                    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def echo() -> Iterator[int]:
    """Answers with what it was asked; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                client.sendall(client.recv(10_000))

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


GET = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())
"""
RAW = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5); print(1)"


@pytest.mark.parametrize(
    ("network", "host", "works"),
    [
        ("off", "127.0.0.1", False),
        ("on", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("localhost", "localhost", True),
        ("example.org,localhost:{port}", "localhost", True),
        ("localhost:1", "localhost", False),
        ("*.localhost", "localhost", False),
        ("example.org", "127.0.0.1", False),
    ],
)
def test_whom_a_command_may_call(project: Path, network: str, host: str, works: bool) -> None:
    """Backends: "network off or an allow-list through a proxy on loopback"."""
    with server() as port:
        flags = ("--discard", "--network", network.format(port=port), "--")
        got = run(*flags, sys.executable, "-c", GET, f"http://{host}:{port}/")
        raw = run(*flags, sys.executable, "-c", RAW, str(port))
    assert got.out == ("hi\n" if works else ""), got.err
    # Past the proxy there is no way but to a port that is named: `nc` to a blocked host fails.
    assert raw.out == ("1\n" if network == "on" or "{port}" in network else "")


CALL = """
import sys, urllib.request
for url in sys.argv[1:]:
    try:
        urllib.request.urlopen(url, timeout=5)
    except OSError:
        pass
"""


def test_whom_a_command_called_in_vain_is_told(project: Path) -> None:
    """With what to type so that it may."""
    urls = ("http://one.invalid/", "http://two.invalid:81/", "http://one.invalid/x")
    flags = ("--discard", "--network", "ralph.invalid")
    done = run(*flags, "--", sys.executable, "-c", CALL, *urls)
    allowed = "--network ralph.invalid,one.invalid,two.invalid:81"
    assert f"[ralph] one.invalid, two.invalid:81 were refused. To allow them: {allowed}" in done.err
    done = run(*flags, "--json", "--", sys.executable, "-c", CALL, *urls)
    assert json.loads(done.out)["refused"] == ["one.invalid", "two.invalid:81"]
    assert json.loads(run("--discard", "--json", "--", "true").out)["refused"] == []


HOSTS = """
import socket, sys, urllib.parse, os
proxy = urllib.parse.urlsplit(os.environ["http_proxy"])
head = sys.argv[1].encode().decode("unicode_escape").encode()
with socket.create_connection((proxy.hostname, proxy.port), 5) as call:
    call.sendall(head)
    call.shutdown(socket.SHUT_WR)
    print(call.makefile("rb").read().decode())
"""


@pytest.mark.parametrize(
    "fields",
    [
        "Host: internal.invalid\\r\\n",
        "host: internal.invalid\\r\\nHost: internal.invalid\\r\\n",
        "",
    ],
)
def test_a_server_is_asked_for_whom_the_list_allows(project: Path, fields: str) -> None:
    """One address may serve many names."""
    with echo() as port:
        head = f"GET http://127.0.0.1:{port}/x HTTP/1.1\\r\\n{fields}A: b\\r\\n\\r\\n"
        done = run("--discard", "--network", "127.0.0.1", "--", sys.executable, "-c", HOSTS, head)
    asked = done.out.lower().split("\n")
    assert [line.strip() for line in asked if line.startswith("host")] == [
        f"host: 127.0.0.1:{port}"
    ], done
    assert "a: b\r" in asked
    assert "internal.invalid" not in done.out


@pytest.mark.parametrize(
    "fields",
    [
        "Host : internal.invalid\\r\\n",
        "A: b\\r\\n Host: internal.invalid\\r\\n",
        "A: b\\nHost: internal.invalid\\r\\n",
        ": b\\r\\n",
        "Content-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n",
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(project: Path, fields: str) -> None:
    with echo() as port:
        head = f"GET http://127.0.0.1:{port}/ HTTP/1.1\\r\\n{fields}\\r\\n"
        done = run("--discard", "--network", "127.0.0.1", "--", sys.executable, "-c", HOSTS, head)
    assert done.out.startswith("HTTP/1.1 400")


@pytest.mark.parametrize("port", ["0", "65536", "99999"])
def test_what_is_no_port(project: Path, port: str) -> None:
    done = run("--keep", "--network", f"localhost:{port}", "--", "rm", "a")
    assert_clear(done, 2, "is no port", "--network localhost:8080")
    assert (project / "a").read_text() == "1\n"


def test_the_home_directory_can_be_written_and_stays_as_it_is(project: Path) -> None:
    """So that caches and the settings of agents work."""
    home = Path(os.environ["HOME"])
    done = run("--keep", "--", "sh", "-c", "mkdir -p ~/.npm; echo x > ~/.npm/y; cat ~/.npm/y")
    assert (done.out, done.code) == ("x\n", 0)
    assert "Nothing was changed" in done.err
    assert not (home / ".npm").exists()
