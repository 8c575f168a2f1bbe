"""Where `ralph web` listens, and where it refuses to; clients that take nothing."""

import asyncio
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from run_support import RALPH, Done, Running, assert_clear, journals, prepare, ralph, text

from kits.web_server import WebServer, soon
from ralph.ui.status.known import KnownRuns
from ralph.web.listing import told_of
from ralph.web.sse import EventStream


def refused(*flags: str, env: dict[str, str] | None = None) -> Done:
    """`ralph web` where it cannot begin."""
    return ralph("web", *flags, env=env)


REFUSED = [
    (("--host", "0.0.0.0"), {}, "at 0.0.0.0 others could read the token"),
    (("--host", "192.0.2.1"), {}, "--tls-cert FILE --tls-key FILE"),
    (("--host", "::"), {}, "at :: others could read the token"),
    (("--tls-cert", "x.pem"), {}, "a certificate and its key belong together"),
    (("--tls-cert", "x.pem", "--tls-key", "y.pem"), {}, "cannot use the certificate and its key"),
    (("--socket", "x", "--port", "1"), {}, "--socket excludes --port"),
    (("--allow-host", "http://x/"), {}, "is no host name"),
    (("--port", "70000"), {}, "70000 is not in the range"),
    ((), {"RALPH_WEB_TOKEN": "short"}, "RALPH_WEB_TOKEN needs 32 letters or more"),
    ((), {"RALPH_RUN": "20260101-000000-0000"}, "an agent may not steer runs by ralph web"),
]


@pytest.mark.parametrize(("flags", "env", "why"), REFUSED)
def test_what_is_not_safe_is_refused(
    workspace: Path, flags: tuple[str, ...], env: dict[str, str], why: str
) -> None:
    done = refused(*flags, env=env)
    assert_clear(done, 2, why)
    assert "#token=" not in done.out


def test_a_port_that_is_taken_is_refused(workspace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert_clear(refused("--port", port), 2, f"port {port}: Address already in use")


def test_without_its_packages_it_says_what_to_install(workspace: Path) -> None:
    """The extra is missing: not a traceback, but the command to type."""
    hidden = "import sys; sys.modules['uvicorn'] = None; from ralph.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "web"], capture_output=True, timeout=60, check=False
    )
    told = Done(done.returncode, text(done.stdout), text(done.stderr))
    assert_clear(told, 2, "ralph web needs the package uvicorn", "pip install 'ralph-engine[web]'")


def test_a_socket_is_this_users_alone_and_replaces_no_other(tmp_path: Path) -> None:
    path = tmp_path / "web.sock"
    with socket.socket(socket.AF_UNIX) as left:  # behind by one that was killed
        left.bind(str(path))
    server = WebServer(tmp_path / "state", "--socket", str(path))
    try:
        assert (server.told["socket"], server.told["port"]) == (str(path), None)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as there:
            there.connect(str(path))
            head = (
                f"GET /api/me HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}"
            )
            there.sendall(f"{head}\r\nConnection: close\r\n\r\n".encode())
            assert there.recv(100).startswith(b"HTTP/1.1 200")
        assert_clear(refused("--socket", str(path)), 2, "somebody listens at")
    finally:
        server.close()
    assert not path.exists()
    path.write_text("precious")
    assert_clear(refused("--socket", str(path)), 2, "is there and is no socket")
    assert path.read_text() == "precious"


def test_the_link_is_where_it_listens_and_the_names_stand_apart(tmp_path: Path) -> None:
    """Behind a proxy a name with our port leads nowhere."""
    with subprocess.Popen(
        [*RALPH, "web", "--allow-host", "box.lan"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "RALPH_STATE_DIR": str(tmp_path)},
    ) as web:
        assert web.stdout is not None
        link = web.stdout.readline().decode()
        web.send_signal(signal.SIGINT)
        _, said = web.communicate(timeout=60)
    found = re.fullmatch(r"\[ralph\] http://(127\.0\.0\.1:\d+)/#token=\S+\n", link)
    assert found is not None
    words = f"[ralph] It also answers as box.lan: behind a proxy type that for {found[1]}.\n"
    assert words in said.decode()


def test_the_link_names_the_address_that_it_listens_at(tmp_path: Path) -> None:
    """`localhost` may be two; at the other somebody else may wait for the token."""
    server = WebServer(tmp_path / "state", "--host", "localhost")
    try:
        link = server.told["url"]
        assert link.startswith((f"http://127.0.0.1:{server.port}/", f"http://[::1]:{server.port}/"))
    finally:
        server.close()


def test_a_socket_that_another_has_made_is_left(tmp_path: Path) -> None:
    path = tmp_path / "web.sock"
    server = WebServer(tmp_path / "state", "--socket", str(path))
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        server.close()
        assert path.is_socket()


def test_with_a_certificate_it_listens_anywhere(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    words = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject)
    made = subprocess.run(
        [*words, "-keyout", key, "-out", cert], capture_output=True, check=False, timeout=60
    )
    if made.returncode:
        pytest.skip("there is no openssl here")
    flags = ("--host", "0.0.0.0", "--tls-cert", str(cert), "--tls-key", str(key))
    server = WebServer(tmp_path / "state", *flags, "--allow-host", "localhost")
    try:
        assert server.told["url"].startswith(f"https://localhost:{server.port}/#token=")
        context = ssl.create_default_context(cafile=str(cert))
        with (
            socket.create_connection(("127.0.0.1", server.port), timeout=30) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as there,
        ):
            host = f"Host: localhost:{server.port}\r\nOrigin: https://localhost:{server.port}"
            token = f"Authorization: Bearer {server.token}\r\nConnection: close"
            there.sendall(f"POST /api/login HTTP/1.1\r\n{host}\r\n{token}\r\n\r\n".encode())
            answer = there.recv(4096).lower()
        assert b" 204 " in answer
        assert b"; secure" in answer
    finally:
        server.close()
    server = WebServer(tmp_path / "state", *flags)
    try:  # nobody can type 0.0.0.0
        named = f"https://{socket.gethostname()}:{server.port}/#token="
        assert server.told["url"].startswith(named)
    finally:
        server.close()


def test_the_browser_is_led_by_a_file_that_holds_the_link(tmp_path: Path) -> None:
    """Anybody may read the words of a process; the token is not among them."""
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nf="${{1#file://}}"\nstat -c %a "$f" > {seen}.mode\n')
    with browser.open("a") as file:
        file.write(f'env > {seen}.env\nprintf "%s" "$*" > {seen}.words\ncp "$f" {seen}\n')
    browser.chmod(0o755)
    token = "x" * 40
    server = WebServer(
        tmp_path / "state", "--open", env={"BROWSER": f"{browser} %s", "RALPH_WEB_TOKEN": token}
    )
    soon(lambda: seen.exists() and seen.read_text().endswith("</a>"))
    assert server.token == token
    assert f"#token={token}" in seen.read_text()
    assert token not in Path(f"{seen}.words").read_text() + Path(f"{seen}.env").read_text()
    assert Path(f"{seen}.mode").read_text() == "600\n"
    led = Path(Path(f"{seen}.words").read_text().removeprefix("file://"))
    server.close()
    assert not led.exists()


def test_who_only_waits_keeps_nobody_out(tmp_path: Path) -> None:
    """Any user of this machine may connect. Who says nothing makes room for the next."""
    server = WebServer(tmp_path / "state")
    try:
        with ExitStack() as at_end:
            silent = []
            for number in range(560):
                there = socket.create_connection(("127.0.0.1", server.port), timeout=30)
                silent.append(at_end.enter_context(there))
                if not number % 50:  # no burst, whose answers would end it
                    assert server.ask("GET", "/").status == 200
            silent[0].settimeout(30)
            with suppress(ConnectionResetError):
                assert silent[0].recv(1) == b"", "the first is not left"
            assert server.ask("GET", "/").status == 200
    finally:
        server.close()


def test_a_client_that_takes_nothing_is_cut_off() -> None:
    """Nothing is kept for it meanwhile; it comes back where it was."""
    cut, sent = [], []

    class Transport:
        def abort(self) -> None:
            cut.append(True)

    async def more(number: int) -> tuple[bytes, int]:
        return b"data: x\n\n", number + 1

    async def send(message: Any) -> None:  # noqa: ANN401
        sent.append(message)
        if len(sent) > 4:
            await asyncio.sleep(3600)

    async def receive() -> Any:  # noqa: ANN401
        await asyncio.sleep(3600)

    async def listen() -> None:
        scope = {"method": "GET", "state": {"transport": Transport()}}
        stream = EventStream(more, 0, asyncio.Event(), patience=0.05)
        async with asyncio.timeout(30):
            await stream(scope, receive, send)

    asyncio.run(listen())
    assert cut == [True]
    assert len(sent) == 5


def test_the_list_follows_runs_that_begin_go_on_and_are_removed(workspace: Path) -> None:
    root = os.environ["RALPH_STATE_DIR"]
    wait = {"text": "", "tools": [{"name": "Bash", "run": "until [ -e go ]; do sleep 0.02; done"}]}
    prepare(workspace, {"text": "x", "response": "DONE"}, wait)
    listing = KnownRuns(root, told_of)
    assert listing.newest(10) == ([], 0)
    assert ralph("run", "-p", "First").code == 0
    soon(lambda: listing.newest(10)[0])
    ((first,), more) = listing.newest(10)
    assert (first["state"], first["asked"], first["iteration"], more) == (
        "completed",
        "First",
        1,
        0,
    )
    again = Running(workspace, "-p", "Second")
    again.await_that(lambda: listing.newest(10)[0][0]["state"] == "running")
    entries, more = listing.newest(1)
    assert [entry["asked"] for entry in entries] == ["Second"]
    assert more == 1
    assert [entry["state"] for entry in listing.newest(10)[0]] == ["running", "completed"]
    assert entries[0]["pid"] == again.process.pid
    name = entries[0]["run"]
    found = listing.named(name)
    assert found is not None
    assert found.live
    assert listing.named(name[:-1]) is None
    assert listing.named("..") is None
    again.process.kill()
    again.process.wait()
    soon(lambda: listing.newest(10)[0][0]["state"] == "crashed")
    shutil.rmtree(journals()[0].parent)
    soon(lambda: len(listing.newest(10)[0]) == 1)
