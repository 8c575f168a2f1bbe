"""Certificates of a team for tests, made by openssl as docs/how-to/fleet.md has it."""

import subprocess
from pathlib import Path

_KEY = ("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")


def authority(place: Path) -> Path:
    """A new authority, in a directory of its own."""
    place.mkdir(mode=0o700)
    _call(*_KEY, "-out", place / "ca-key.pem")
    subject = ("-subj", "/CN=Fleet of the tests", "-days", "2")
    _call(
        "openssl",
        "req",
        "-x509",
        "-new",
        "-key",
        place / "ca-key.pem",
        *subject,
        "-out",
        place / "ca.pem",
    )
    return place


def machine(ca: Path, place: Path, *names: str, days: int = 1) -> Path:
    """The directory of a machine that the authority knows by these names."""
    place.mkdir(mode=0o700)
    (place / "ca.pem").write_bytes((ca / "ca.pem").read_bytes())
    _call(*_KEY, "-out", place / "key.pem")
    (place / "key.pem").chmod(0o600)
    named = ",".join(names or ("IP:127.0.0.1",))
    asked = ("-subj", "/CN=a machine", "-addext", f"subjectAltName={named}")
    _call("openssl", "req", "-new", "-key", place / "key.pem", *asked, "-out", place / "asked.csr")
    signed = ("-CA", ca / "ca.pem", "-CAkey", ca / "ca-key.pem", "-copy_extensions", "copy")
    asks, gets = ("-in", place / "asked.csr"), ("-days", days, "-out", place / "cert.pem")
    _call("openssl", "x509", "-req", *asks, *signed, *gets)
    return place


def _call(*words: object) -> None:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
