"""Rules about connections: shells for others, and servers for everybody."""

from ralph.core.danger_paths import FREE_PLACE, ROOT
from ralph.core.danger_rule import EXPOSURE, REMOTE, REVERSE, STRICT, Call, Rule
from ralph.core.shell_text import names

_CLIENTS = names(
    "echo printf grep egrep rg sed awk git curl wget ping nc ncat telnet http xh dig"
    " cat jq test [ ssh nmap"
    " gh find export cut tr sort host nslookup kill lsof ss netstat ab wrk hey k6"
)
_MARKS = "= :/[,\"'"
_TUNNELS = ("exec:", "system:", "shell:", "exec=", "pty,")


def _listens(call: Call) -> bool:
    return call.has_letter("lL", "pswxe") or call.has("--listen")


def _tunnels(call: Call) -> bool:
    return any(word.lower().startswith(_TUNNELS) or ",exec:" in word.lower() for word in call.words)


def _socket(call: Call) -> bool:
    return any("/dev/tcp/" in word or "/dev/udp/" in word for word in call.words)


def _serves_all(call: Call) -> bool:
    """An argument that is the address of every interface, alone or with a port."""
    if call.name in _CLIENTS:
        return False
    for word in call.words:
        text = word.strip("\"'")
        head = text.rpartition("=")[2] if text[:1] == "-" or "=" in text else text
        host = head.removeprefix("tcp://").removeprefix("http://")
        if host == "0.0.0.0" or host.startswith(("0.0.0.0:", "[::]")) or host == "::":  # noqa: S104
            return True
    return False


def _python_server(call: Call) -> bool:
    if call.value("-m") not in ("http.server", "SimpleHTTPServer"):
        return False
    return not (call.value("--bind", "-b") or "").startswith(("127.", "localhost", "::1"))


def _serves_outside(call: Call) -> bool:
    place = call.value("--directory", "-d") or "."
    free = (FREE_PLACE, ROOT)
    return _python_server(call) and call.places.kind(place, call.state.cwd) not in free


def _bare_host(call: Call) -> bool:
    """`vite --host` without an address means every interface."""
    for place, word in enumerate(call.words):
        if word == "--host":
            after = call.words[place + 1 : place + 2]
            return not after or after[0][:1] == "-" or after[0] == "true"
    return False


def _runs_address(call: Call) -> bool:
    return any(word.startswith(("http://", "https://")) for word in call.args[1:2])


def _open_by_default(call: Call) -> bool:
    """`fastapi run` and `ruby -run -e httpd` serve every network if they are not told otherwise."""
    address = call.value("--host", "--bind-address") or ""
    serves = call.args[:1] == ["run"] if call.name == "fastapi" else "httpd" in call.words
    return serves and not address.startswith(("127.", "localhost", "::1"))


RULES = (
    Rule(
        REVERSE,
        "it gives a shell to another machine",
        "nc ncat netcat",
        flags="--exec --sh-exec --lua-exec -e -c",
        letters="ec",
        valued="pswxq",
    ),
    Rule(REVERSE, "it waits for somebody to connect", "nc ncat netcat", test=_listens),
    Rule(REVERSE, "it joins a program to a connection", "socat", test=_tunnels),
    Rule(REVERSE, "it opens a connection to another machine", "*", test=_socket),
    Rule(EXPOSURE, "it serves every network; use 127.0.0.1", "*", test=_serves_all, level=STRICT),
    Rule(
        EXPOSURE,
        "it serves data or a shell to every network; use 127.0.0.1",
        "redis-server valkey-server mongod memcached jupyter jupyter-lab jupyter-notebook"
        " code-server",
        test=_serves_all,
    ),
    Rule(
        EXPOSURE, "it serves files outside the project", "python python3 uv", test=_serves_outside
    ),
    Rule(
        EXPOSURE,
        "it serves every network; add --bind 127.0.0.1",
        "python python2 python3 python3.11 python3.12 python3.13 python3.14 uv",
        test=_python_server,
        level=STRICT,
    ),
    Rule(
        EXPOSURE,
        "--host without an address serves every network",
        "vite npm npx pnpm yarn bun ng nuxt astro next webpack",
        test=_bare_host,
        level=STRICT,
    ),
    Rule(
        EXPOSURE,
        "it serves every network; name the host 127.0.0.1",
        "fastapi ruby busybox",
        test=_open_by_default,
        level=STRICT,
    ),
    Rule(
        REMOTE, "it runs a program from the network", "deno bun", sub="run|eval", test=_runs_address
    ),
)
