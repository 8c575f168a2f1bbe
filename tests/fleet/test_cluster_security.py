"""Addresses and certificates of a fleet: what is refused before anything is sent."""

import ssl
from pathlib import Path

import pytest

from kits.certificates import authority, machine
from ralph.errors import ConfigError
from ralph.fleet.security import (
    Certificates,
    address_of,
    certificates_in,
    examine,
    is_loopback,
    security_from,
    security_of,
    tls_directory,
)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return authority(tmp_path_factory.mktemp("team") / "ca")


@pytest.fixture
def ours(team: Path, tmp_path: Path) -> Path:
    return machine(team, tmp_path / "ours", "DNS:build.example.com", "IP:127.0.0.1")


@pytest.mark.parametrize(
    "text", ["tcp://127.0.0.1:8786", "tcp://127.9.9.9:1", "tcp://[::1]:8786", "tcp://localhost:80"]
)
def test_this_machine_needs_no_tls(text: str) -> None:
    assert str(address_of(text)) == text
    assert security_of(text) is None


@pytest.mark.parametrize(
    ("text", "likely"),
    [
        ("tcp://build.example.com:8786", "tls://build.example.com:8786"),
        ("tcp://0.0.0.0:8786", "tls://0.0.0.0:8786"),
        ("tcp://10.0.0.1:8786", "tls://10.0.0.1:8786"),
        ("tcp://[fe80::1]:8786", "tls://[fe80::1]:8786"),
        ("tcp://127.0.0.1.example.com:1", "tls://127.0.0.1.example.com:1"),
        ("tcp://localhost.example.com:1", "tls://localhost.example.com:1"),
        ("build.example.com", "tls://build.example.com:8786"),
        ("build:99", "tls://build:99"),
        ("127.0.0.1:99", "tcp://127.0.0.1:99"),
        ("tls://build", "tls://build:8786"),
        ("ws://build:99", "tls://build:99"),
        ("inproc://127.0.0.1:99", "tcp://127.0.0.1:99"),
    ],
)
def test_what_is_refused_says_what_to_write(text: str, likely: str) -> None:
    with pytest.raises(ConfigError) as refused:
        address_of(text)
    assert likely in refused.value.remedy


@pytest.mark.parametrize(
    "text",
    ["", "tcp://", "tcp://a b:1", "tcp://127.0.0.1:99999", "tcp://x@127.0.0.1:1", "tls://h:1/x"],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match="is no address"):
        address_of(text)


def test_a_name_that_only_looks_like_loopback_is_none() -> None:
    assert not any(map(is_loopback, ("127.evil.com", "localhost.", "::", "0", "::ffff:10.0.0.1")))


def test_tls_both_ways_and_nothing_older(ours: Path) -> None:
    security = security_of("tls://build.example.com:8786", str(ours))
    assert security is not None
    assert security.require_encryption is True
    for context in (
        security.get_connection_args("client")["ssl_context"],
        security.get_listen_args("scheduler")["ssl_context"],
        security.get_listen_args("worker")["ssl_context"],
    ):
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_certificate_tells_its_names(ours: Path) -> None:
    files = Certificates.within(str(ours))
    told = examine(files, security_from(files))
    assert told.names == ("build.example.com", "127.0.0.1")
    assert told.is_for("build.example.com")
    assert not told.is_for("example.com")


@pytest.mark.parametrize("name", ["ca.pem", "cert.pem", "key.pem"])
def test_each_file_is_needed(ours: Path, name: str) -> None:
    (ours / name).unlink()
    with pytest.raises(ConfigError, match=f"there is no .*{name}"):
        security_of("tls://127.0.0.1:1", str(ours))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_read_is_refused(ours: Path, mode: int) -> None:
    (ours / "key.pem").chmod(mode)
    with pytest.raises(ConfigError, match="others can read") as refused:
        certificates_in(str(ours))
    assert f"chmod 600 {ours / 'key.pem'}" in refused.value.remedy


def test_files_that_do_not_belong_together(team: Path, ours: Path, tmp_path: Path) -> None:
    other = machine(team, tmp_path / "other")
    strange = machine(authority(tmp_path / "strange"), tmp_path / "third")
    late = machine(team, tmp_path / "late", days=-1)
    for files, why in (
        (
            Certificates(str(ours / "ca.pem"), str(ours / "cert.pem"), str(other / "key.pem")),
            "mismatch",
        ),
        (
            Certificates(str(strange / "ca.pem"), str(ours / "cert.pem"), str(ours / "key.pem")),
            "not good",
        ),
        (Certificates.within(str(late)), "expired"),
    ):
        with pytest.raises(ConfigError, match=why):
            security_from(files)


def test_no_key_with_a_passphrase(ours: Path) -> None:
    key = ours / "key.pem"
    key.write_text(
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n"
    )
    with pytest.raises(ConfigError, match="passphrase"):
        certificates_in(str(ours))


def test_the_place_of_certificates() -> None:
    assert tls_directory(None, {"HOME": "/home/a"}) == "/home/a/.config/ralph/fleet"
    assert tls_directory("", {"HOME": "/h", "XDG_CONFIG_HOME": "/c"}) == "/c/ralph/fleet"
    assert tls_directory("~/x", {"HOME": "/home/a"}) == "/home/a/x"
    assert tls_directory("/y", {}) == "/y"
