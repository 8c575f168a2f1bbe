"""Rules about connections: shells for others, and servers for everybody."""

from ralph.guard.rules.rule import Call, rules
from ralph.guard.shell.text import names

_CLIENTS = names(
    "echo printf grep egrep rg sed awk git curl wget ping nc ncat telnet http xh dig cat jq test ["
    " ssh nmap gh find export cut tr sort host nslookup kill lsof ss netstat ab wrk hey k6"
)
_TUNNELS = ("exec:", "system:", "shell:", "exec=", "pty,")


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


def _bare_host(call: Call) -> bool:
    """`vite --host` without an address means every interface."""
    for place, word in enumerate(call.words):
        if word == "--host":
            after = call.words[place + 1 : place + 2]
            return not after or after[0][:1] == "-" or after[0] == "true"
    return False


def _open_by_default(call: Call) -> bool:
    """`fastapi run` and `ruby -run -e httpd` serve every network if they are not told otherwise."""
    address = call.value("--host", "--bind-address") or ""
    serves = call.args[:1] == ["run"] if call.name == "fastapi" else "httpd" in call.words
    return serves and not address.startswith(("127.", "localhost", "::1"))


_TABLE = """\
reverse-shell: it gives a shell to another machine
    nc|ncat|netcat --exec --sh-exec --lua-exec -e -c/pswxq
reverse-shell: it waits for somebody to connect
    nc|ncat|netcat (listens)
reverse-shell: it joins a program to a connection
    socat (tunnels)
reverse-shell: it opens a connection to another machine
    * (socket)
exposure strict: it serves every network; use 127.0.0.1
    * (serves all)
exposure: it serves data or a shell to every network; use 127.0.0.1
    redis-server|valkey-server|mongod|memcached|jupyter|jupyter-lab|jupyter-notebook|
        code-server (serves all)
exposure: it serves files outside the project
    python|python3|uv (serves outside)
exposure strict: it serves every network; add --bind 127.0.0.1
    python|python2|python3|python3.11|python3.12|python3.13|python3.14|uv (python server)
exposure strict: --host without an address serves every network
    vite|npm|npx|pnpm|yarn|bun|ng|nuxt|astro|next|webpack (bare host)
exposure strict: it serves every network; name the host 127.0.0.1
    fastapi|ruby|busybox (open by default)
remote-code: it runs a program from the network
    deno|bun run|eval (runs address)
"""
RULES = rules(
    _TABLE,
    *(_serves_all, _python_server, _bare_host, _open_by_default),
    listens=lambda c: c.has_letter("lL", "pswxe") or c.has("--listen"),
    tunnels=lambda c: any(
        word.lower().startswith(_TUNNELS) or ",exec:" in word.lower() for word in c.words
    ),
    socket=lambda c: c.mentions("/dev/tcp/", "/dev/udp/"),
    serves_outside=lambda c: (
        _python_server(c) and not c.is_ours(c.value("--directory", "-d") or ".")
    ),
    runs_address=lambda c: any(word.startswith(("http://", "https://")) for word in c.args[1:2]),
)
