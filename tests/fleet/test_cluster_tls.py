"""A fleet with certificates: who has none of the team's is told nothing, at every port."""

import asyncio
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from distributed import Security
from distributed.comm import connect

from kits.certificates import authority, machine
from kits.fleet_up import Started, Up, ralph
from ralph.fleet.cluster.dask_nodes import is_there
from ralph.fleet.security import address_of, security_of

_PATIENCE = 30.0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificates of a team, of a stranger, and a fleet's that is up."""
    base = tmp_path_factory.mktemp("tls")
    machine(authority(base / "team"), base / "ours")
    machine(authority(base / "strangers"), base / "theirs")
    return base


@pytest.fixture
def up(place: Path, tmp_path: Path) -> Iterator[Up]:
    yield Up(tmp_path / "said", "--tls", str(place / "ours"))
    Started.end_all()


def ports(up: Up, place: Path) -> list[str]:
    """The addresses of the scheduler and of its worker."""
    done = ralph("fleet", "status", "--fleet", up.address, "--tls", str(place / "ours"))
    assert done.returncode == 0, done.stderr
    worker = next(
        word
        for word in done.stdout.split()
        if word.startswith("tls://") and word[-1] != ":" and word != up.address
    )
    return [up.address, worker]


def raw(address: str, context: ssl.SSLContext | None) -> bytes:
    """All that somebody hears there who says hello, in plain text or by TLS."""
    there = address_of(address)
    with ExitStack() as stack:
        line = stack.enter_context(
            socket.create_connection((there.host, there.port), timeout=_PATIENCE)
        )
        try:
            if context is not None:
                line = stack.enter_context(context.wrap_socket(line))
            line.sendall(b"\x08" + bytes(23))
            return line.recv(4096)
        except TimeoutError:
            raise AssertionError("it was left waiting") from None
        except OSError:
            return b""


def context(directory: Path | None) -> ssl.SSLContext:
    """A client's that trusts everybody, with the certificate in that directory."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    if directory:
        made.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    return made


def test_only_the_team_is_heard(up: Up, place: Path) -> None:
    assert up.address.startswith("tls://127.0.0.1:")
    for address in ports(up, place):
        assert raw(address, context(place / "ours")), "a member of the team is spoken to"
        assert raw(address, context(None)) == b"", "without a certificate"
        assert raw(address, context(place / "theirs")) == b"", "with a stranger's"
        assert raw(address, None) == b"", "in plain text"


@pytest.mark.slow
def test_what_people_read_who_are_not_of_the_team(up: Up, place: Path) -> None:
    told = ralph("fleet", "status", "--fleet", up.address, "--tls", str(place / "theirs"))
    assert told.returncode == 2
    assert "its certificate is not good by the authority in our ca.pem" in told.stderr
    assert "_ssl.c" not in told.stderr
    assert "of one authority" in told.stderr
    worker = ralph("fleet", "worker", "--scheduler", up.address, "--tls", str(place / "theirs"))
    assert worker.returncode == 2
    assert "cannot be trusted" in worker.stderr
    plain = ralph("fleet", "status", "--fleet", up.address.replace("tls", "tcp"))
    assert plain.returncode == 2
    assert "is it tls://?" in plain.stderr
    ill = ralph("fleet", "doctor", "--fleet", up.address, "--tls", str(place / "theirs"))
    assert f"{up.address}: its certificate is not good" in ill.stdout
    assert "ralph fleet doctor" not in ill.stdout, "they have typed that"


@pytest.mark.slow
def test_tls_where_nobody_speaks_it(place: Path, tmp_path: Path) -> None:
    plain = Up(tmp_path / "said").address.replace("tcp", "tls")
    for words in (("status", "--fleet"), ("worker", "--scheduler")):
        done = ralph("fleet", *words, plain, "--tls", str(place / "ours"))
        assert done.returncode == 2
        assert "it speaks no TLS" in done.stderr
        assert "is it tcp://?" in done.stderr
    Started.end_all()


def test_no_plain_text_by_whoever_has_the_certificates(up: Up, place: Path) -> None:
    security = security_of(up.address, str(place / "ours"))
    assert isinstance(security, Security)
    given = security.get_connection_args("client")
    with pytest.raises(RuntimeError, match="encryption required"):
        asyncio.run(connect(up.address.replace("tls", "tcp"), timeout=1, **given))
    assert asyncio.run(is_there(address_of(up.address), security)) == ""


@pytest.mark.slow
def test_certificates_that_are_over(place: Path, tmp_path: Path) -> None:
    late = machine(place / "team", tmp_path / "late", days=-1)
    for words in (("up",), ("worker", "--scheduler", "tls://127.0.0.1:1")):
        done = ralph("fleet", *words, "--tls", str(late))
        assert done.returncode == 2
        assert "certificate has expired" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_doctor_sees_the_certificates(up: Up, place: Path, repo: Path) -> None:
    done = ralph(
        "fleet", "doctor", "--fleet", up.address, "--tls", str(place / "ours"), "-C", str(repo)
    )
    assert "certificate" in done.stdout
    assert time.strftime("%Y") in done.stdout
    assert done.returncode == 0, done.stdout
    there = done.stdout.partition("Scheduler")[0]
    assert "for 127.0.0.1" in there, "the scheduler's own certificate was looked at"
