"""The rules that a request must pass before anything is looked at (ADR 40). Pure.

Order is data: the first rule that objects answers. No rule looks at the path of a file or at a run.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping

from ralph.kernel.value import value

COOKIE_READS = "Log in first: open the link that ralph web has printed."
_OPEN_AGAIN = "Open the link that ralph web has printed again, in this browser."
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::[0-9]{1,5})?")
_READING = ("GET", "HEAD")
LARGEST_HEAD = 16 * 1024  # bytes of a request's line and headers
LOGIN = "/api/login"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Of the report, which has its style and its pictures in itself, and no script.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
)
HEADERS: Mapping[str, str] = {  # of every answer
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@value
class Site:
    """The settings of a server that its rules look at."""

    scheme: str = "http"
    names: frozenset[str] = frozenset()  # hosts that people have declared, in lower case
    read_only: bool = False


@value
class Incoming:
    """A request as its rules see it. Of each header all values, by its name in lower case; `reader`
    and `writer` are what its secrets have proved."""

    method: str
    path: str
    headers: Mapping[str, tuple[str, ...]]
    reader: bool = False
    writer: bool = False
    mistaken: bool = False  # it shows a token, and not ours
    size: int = 0  # bytes of its line and headers

    def one(self, name: str) -> str | None:
        """The only value of a header; None where there is none, or several."""
        values = self.headers.get(name, ())
        return values[0] if len(values) == 1 else None

    @property
    def is_data(self) -> bool:
        """True for everything but the shell of the page, which is the same for everybody."""
        return self.path.startswith("/api/")


@value
class Refusal:
    """An answer that is no more than why not."""

    status: int
    error: str
    remedy: str = ""


Rule = Callable[[Incoming, Site], Refusal | None]


def host_is_ours(asked: Incoming, site: Site) -> Refusal | None:
    """Refuse names that nobody has declared: another site's name may lead to our address."""
    host = asked.one("host")
    if host is not None and is_known(host, site.names):
        return None
    remedy = "Open it by its address, or declare the name: ralph web --allow-host NAME"
    return Refusal(403, "this host name is not known here", remedy)


def is_known(host: str, names: frozenset[str]) -> bool:
    """True for a `Host` that is an IP address, localhost or declared, with or without a port."""
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = found[1].lower()
    if name == "localhost" or name in names:
        return True
    try:
        if name.startswith("["):
            ipaddress.IPv6Address(name[1:-1])
        else:
            ipaddress.IPv4Address(name)
    except ValueError:
        return False
    return True


def head_is_small(asked: Incoming, site: Site) -> Refusal | None:
    """Refuse more than a browser of ours would ever send."""
    remedy = "Delete the cookies of this host: another server here may have set too many."
    return Refusal(431, "the request is too long", remedy) if asked.size > LARGEST_HEAD else None


def target_is_a_path(asked: Incoming, site: Site) -> Refusal | None:
    """Refuse what asks us to be a proxy, or hides a path in another."""
    odd = not asked.path.startswith("/") or "\\" in asked.path or "\0" in asked.path
    return Refusal(400, "this is no path") if odd else None


def body_is_told_once(asked: Incoming, site: Site) -> Refusal | None:
    """Refuse two lengths of one body: whoever stands before us may have read the other."""
    both = "content-length" in asked.headers and "transfer-encoding" in asked.headers
    return Refusal(400, "this body has two lengths") if both else None


def method_is_known(asked: Incoming, site: Site) -> Refusal | None:
    """Refuse methods that nothing here has."""
    if asked.method in (*_READING, "POST"):
        return None
    return Refusal(405, f"{asked.method[:20]} is not allowed")


def asked_by_this_site(asked: Incoming, site: Site) -> Refusal | None:
    """Refuse what other sites' pages ask for: also those of other ports of this machine, which get
    our cookies. A link to the page itself may be anywhere."""
    fetched = asked.headers.get("sec-fetch-site", ())
    if asked.is_data or asked.method not in _READING:
        ours = all(word in ("same-origin", "none") for word in fetched)
    else:
        ours = all(word != "cross-site" for word in fetched) or _is_visit(asked)
    origins = asked.headers.get("origin", ())
    # Who stands before us may have ended the encryption: https is never less than what we speak.
    here = [f"{scheme}://{asked.one('host')}".lower() for scheme in (site.scheme, "https")]
    if ours and all(origin.lower() in here for origin in origins):
        return None
    return Refusal(403, "another site asks for this", "Open it in a tab of its own.")


def _is_visit(asked: Incoming) -> bool:
    return asked.path == "/" and asked.one("sec-fetch-mode") == "navigate"


def token_is_right(asked: Incoming, site: Site) -> Refusal | None:
    """Refuse a wrong token, whatever else there is beside it."""
    return Refusal(401, "this is not the token", _OPEN_AGAIN) if asked.mistaken else None


def reader_is_known(asked: Incoming, site: Site) -> Refusal | None:
    """Refuse data to whoever has shown neither the cookie nor the token."""
    if asked.reader or not asked.is_data:
        return None
    return Refusal(401, "this needs a login", COOKIE_READS)


def writer_has_token(asked: Incoming, site: Site) -> Refusal | None:
    """Refuse changes to whoever has not the token in its own header. Nothing that a browser sends
    by itself is enough."""
    if asked.method in _READING or asked.path == LOGIN:
        return None
    if site.read_only:
        remedy = "Start it without --read-only to steer runs."
        return Refusal(403, "this server only shows", remedy)
    return None if asked.writer else Refusal(403, "this needs the token", _OPEN_AGAIN)


RULES: tuple[Rule, ...] = (
    host_is_ours,
    head_is_small,
    target_is_a_path,
    body_is_told_once,
    method_is_known,
    asked_by_this_site,
    token_is_right,
    reader_is_known,
    writer_has_token,
)


def refusal(asked: Incoming, site: Site) -> Refusal | None:
    """The first objection to a request; None where there is none."""
    return next((said for rule in RULES if (said := rule(asked, site)) is not None), None)
