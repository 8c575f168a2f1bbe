"""The network that people allow a sandbox, in the words of `--network`."""

import re

from ralph.sandbox.interface import ON, Network

_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?(:[0-9]{1,9})?")
_LARGEST_PORT = 65535


def network_of(text: str) -> Network:
    """`off`, `on`, or hosts with commas between; ValueError for anything else."""
    if text in ("off", "on"):
        return ON if text == "on" else Network()
    hosts = [host.strip() for host in text.split(",") if host.strip()]
    why = next(filter(None, map(_wrong, hosts)), "" if hosts else f"{text!r} is no host")
    if why:
        raise ValueError(f"{why}: say off, on, or hosts as in pypi.org,*.npmjs.org:443.")
    return Network(hosts=tuple(hosts))


def _wrong(host: str) -> str:
    """Why something on the list can be no host; "" if it can be one."""
    if host.lower() in ("on", "off"):
        return f"{host!r} stands alone and in small letters"
    if host.startswith("[") or host.count(":") > 1:
        return f"{host!r}: an address of IPv6 cannot be on the list, only its name"
    if not _HOST.fullmatch(host):
        return f"{host!r} is no host"
    name, colon, port = host.partition(":")
    if colon and not 0 < int(port) <= _LARGEST_PORT:
        example = f"--network {name}:8080"
        return f"{host!r}: {port!r} is no port, which is from 1 to {_LARGEST_PORT} ({example})"
    return ""
