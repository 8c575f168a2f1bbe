"""The ways to a fleet: an address on this machine, or TLS by the certificates of a team (ADR 50).

Whoever reaches a scheduler can have commands run on every worker, so there is no third way.
"""

import errno
import ipaddress
import os
import re
import socket
import ssl
import stat
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ralph.errors import ConfigError, failing
from ralph.kernel.value import value

if TYPE_CHECKING:
    from distributed import Security

PAGE = "docs/how-to/fleet.md"
USUAL_PORT = 8786
MAKE = f"How a team makes certificates: {PAGE}"
_PLACE = os.path.join("ralph", "fleet")  # in the user's configuration
_FORM = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?\]|[A-Za-z0-9._-]+)"
    r"(?::(?P<port>[0-9]{1,5}))?/?"
)
_MOST_PORTS = 65535
_PATIENCE = 5.0  # seconds
SPEAKS_NO_TLS = "it speaks no TLS"
_NO_TLS = "WRONG_VERSION_NUMBER"  # OpenSSL's word for an answer in plain text
_STEPS = 8  # of a handshake, at most


@value
class Address:
    """A scheduler's place, checked: what is not on this machine has TLS."""

    scheme: str  # tcp or tls
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@value
class Certificates:
    """The three files of a machine, and its own certificate."""

    ca: str
    cert: str
    key: str

    @staticmethod
    def within(directory: str) -> "Certificates":
        return Certificates(*(os.path.join(directory, f"{n}.pem") for n in ("ca", "cert", "key")))


@value
class Certificate:
    """A certificate that the team's authority has signed, and is in time."""

    names: tuple[str, ...]  # hosts and addresses that it is for
    expires: float

    def is_for(self, host: str) -> bool:
        """True if the host is among its names."""
        return host in self.names or f"*.{host.partition('.')[2]}" in self.names


def require_extra() -> None:
    """ConfigError where Dask is not installed."""
    if find_spec("distributed") is None:
        raise ConfigError(
            "a fleet needs the package distributed",
            "Install it: pipx inject ralph-engine distributed, "
            "or pip install 'ralph-engine[fleet]'",
        )


def address_of(text: str) -> Address:
    """The address in a text; ConfigError for one by which secrets or commands could leak."""
    found = _FORM.fullmatch(text.strip())
    if found is None or int(found["port"] or 0) > _MOST_PORTS:
        example = "For example: tcp://127.0.0.1:8786, or tls://build.example.com:8786"
        raise ConfigError(f"{text!r} is no address of a fleet", example)
    host, scheme = found["host"].strip("[]"), (found["scheme"] or "").lower()
    port = int(found["port"] or 0)
    likely = Address("tcp" if is_loopback(host) else "tls", host, port or USUAL_PORT)
    if not scheme or not port:
        raise ConfigError(f"{text!r} is no whole address", f"Write it so: {likely}")
    if scheme not in ("tcp", "tls"):
        raise ConfigError(f"a fleet has no {scheme}:// address", f"Write it so: {likely}")
    if scheme == "tcp" and not is_loopback(host):
        why = "anybody who reaches it could have commands run there"
        raise ConfigError(
            f"{text} is not on this machine and has no TLS: {why}",
            f"Use certificates and {likely}. {MAKE}",
        )
    return Address(scheme, host, port)


def is_loopback(host: str) -> bool:
    """True for what no other machine reaches: 127.0.0.0/8, ::1 and localhost."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def tls_directory(given: str | None, environ: Mapping[str, str]) -> str:
    """The directory of a machine's certificates: the given one, else the user's."""
    if given:
        home = environ.get("HOME", "")
        return os.path.abspath(f"{home}{given[1:]}" if given.startswith("~/") and home else given)
    base = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    return os.path.join(base, _PLACE)


def security_of(
    address: str, tls_dir: str | None = None, environ: Mapping[str, str] = os.environ
) -> "Security | None":
    """What Dask needs to speak with that address: None for one on this machine without TLS.
    ConfigError for every other way."""
    require_extra()
    if address_of(address).scheme == "tcp":
        return None
    return security_from(certificates_in(tls_directory(tls_dir, environ)))


def certificates_in(directory: str) -> Certificates:
    """The three files of a directory; ConfigError if one is missing, or if others read the key."""
    files = Certificates.within(directory)
    for path in (files.ca, files.cert, files.key):
        if not os.path.isfile(path):
            words = "tls:// needs ca.pem, cert.pem and key.pem"
            raise ConfigError(
                f"{words}; there is no {path}", f"Name their place: --tls DIR. {MAKE}"
            )
    with (
        failing(f"cannot read {files.key}", "It must be yours."),
        open(files.key, encoding="latin-1") as file,
    ):
        mode, text = os.fstat(file.fileno()).st_mode, file.read(1 << 20)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"others can read {files.key}", f"Try: chmod 600 {files.key}")
    if "ENCRYPTED" in text:  # OpenSSL would ask at the terminal
        remedy = "Take the passphrase off: openssl pkey -in key.pem -out key.new"
        raise ConfigError(f"{files.key} has a passphrase, and nobody is there to type it", remedy)
    return files


def security_from(files: Certificates) -> "Security":
    """TLS both ways by these files, with every part of a fleet; nothing falls back to plain text.
    ConfigError if they do not belong together or are out of date."""
    from distributed import Security

    roles = ("client", "scheduler", "worker")
    security = Security(
        require_encryption=True,
        tls_ca_file=files.ca,
        tls_min_version=ssl.TLSVersion.TLSv1_2,
        **{f"tls_{role}_cert": files.cert for role in roles},
        **{f"tls_{role}_key": files.key for role in roles},
    )
    examine(files, security)
    return security


def examine(files: Certificates, security: "Security") -> Certificate:
    """Shake hands with ourselves, in memory: what a fleet would refuse is refused here."""
    remedy = f"Make them again. {MAKE}"
    try:
        here = security.get_connection_args("client")["ssl_context"]
        there = security.get_listen_args("scheduler")["ssl_context"]
        told = _handshake(here, there)
    except ssl.SSLCertVerificationError as error:
        why = error.verify_message.rstrip(".")
        raise ConfigError(f"{files.cert} is not good by {files.ca}: {why}", remedy) from error
    except (ssl.SSLError, OSError) as error:
        why = getattr(error, "reason", None) or error.strerror or str(error)
        words = why.replace("_", " ").lower()
        raise ConfigError(f"{files.cert} with its key is not usable: {words}", remedy) from error
    return _certificate(told)


def certificate_at(place: Address, security: "Security") -> Certificate:
    """The certificate that a scheduler shows; OSError where none is there, or none that is good."""
    context = security.get_connection_args("client")["ssl_context"]
    with (
        socket.create_connection((place.host, place.port), timeout=_PATIENCE) as raw,
        context.wrap_socket(raw) as there,
    ):
        return _certificate(there.getpeercert() or {})


def tls_trouble(error: ssl.SSLError) -> str:
    """Why two ends cannot speak by TLS, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message.rstrip(".")
        return f"its certificate is not good by the authority in our ca.pem: {why}"
    words = (error.reason or error.strerror or str(error)).replace("_", " ").lower()
    if "alert" in words:  # which is the other end's
        return f"it does not take our certificate: {words}"
    return SPEAKS_NO_TLS if error.reason == _NO_TLS else f"no TLS with it: {words}"


def to_trust(why: str) -> str:
    """What to do about a reason of `tls_trouble`, which waiting does not change; "" of others."""
    if "certificate" in why:
        return "Its certificate and ours must be of one authority: see ralph fleet doctor"
    return "Look at its address: is it tcp://?" if "TLS" in why else ""


def unreached(place: Address, why: str) -> ConfigError:
    """The error of whoever finds no fleet there."""
    remedy = to_trust(why) or "Start it there: ralph fleet up; or name another: --fleet ADDRESS"
    if place.scheme == "tcp" and why == os.strerror(errno.ECONNRESET):
        remedy = "Look at its address: is it tls://?"
    return ConfigError(f"no fleet answers at {place}: {why}", remedy)


def _certificate(told: dict[str, Any]) -> Certificate:
    names = tuple(name for _, name in told.get("subjectAltName", ()))
    return Certificate(names, float(ssl.cert_time_to_seconds(told["notAfter"])))


def _handshake(here: ssl.SSLContext, there: ssl.SSLContext) -> dict[str, Any]:
    """The certificate of the other end, as ours has proved it."""
    out, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = here.wrap_bio(back, out)
    server = there.wrap_bio(out, back, server_side=True)
    ends = [client, server]
    for _ in range(_STEPS):
        for end in list(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)
    return client.getpeercert() or {}
