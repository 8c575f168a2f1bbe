"""Rules about connections: shells for others, servers for everybody, what leaves the machine."""

import re

from ralph.guard.rules.rule import Call, rules
from ralph.guard.shell.text import ANY, CODED, NAMED, READ, SECRET, WHO, names, unknown

_CLIENTS = names(
    "echo printf grep egrep rg sed awk git curl wget ping nc ncat telnet http xh dig cat jq test ["
    " ssh nmap gh find export cut tr sort host nslookup kill lsof ss netstat ab wrk hey k6"
)
_TUNNELS = ("exec:", "system:", "shell:", "exec=", "pty,")
_LOCAL = names("localhost host.docker.internal ::1 [::1] 0.0.0.0")
_METADATA = ("169.254.169.254", "metadata.google.internal", "100.100.100.200", "fd00:ec2::254")
_CURL_VALUED = "HXuAeombcxwEr"
_DATA = (
    *("--data", "--data-binary", "--data-raw", "--data-urlencode", "--data-ascii", "--form"),
    *("--json", "--post-data", "--form-string", "--body-data"),
)


def _serves_all(call: Call) -> bool:
    """An argument that is the address of every interface, alone or with a port."""
    if call.name in _CLIENTS:
        return False
    for word in call.words:
        address = word.strip("\"'").rpartition("=")[2]
        host = address.removeprefix("tcp://").removeprefix("http://")
        if host == "0.0.0.0" or host.startswith(("0.0.0.0:", "[::]")) or host == "::":  # noqa: S104
            return True
    return False


def _python_server(call: Call) -> bool:
    if call.value("-m") not in ("http.server", "SimpleHTTPServer"):
        return False
    return not (call.value("--bind", "-b") or "").startswith(("127.", "localhost", "::1"))


def _open_by_default(call: Call) -> bool:
    """`fastapi run` and `ruby -run -e httpd` serve every network if they are not told otherwise."""
    address = call.value("--host", "--bind-address") or ""
    serves = call.args[:1] == ["run"] if call.name == "fastapi" else "httpd" in call.words
    return serves and not address.startswith(("127.", "localhost", "::1"))


def is_local(call: Call) -> bool:
    found = [word for word in call.args if "://" in word or _is_here(word)]
    return bool(found) and all(map(_is_here, found))


def _is_here(address: str) -> bool:
    """True if an address, with or without its scheme, user and port, is this machine's."""
    host = re.split("[/?#]", address.partition("://")[2] or address)[0].rpartition("@")[2]
    host = host if host.startswith("[") or host.count(":") > 1 else host.partition(":")[0]
    numbers = host.split(".")
    loopback = len(numbers) == 4 and numbers[0] == "127" and all(n.isdecimal() for n in numbers)
    return loopback or host in _LOCAL or host.partition("]")[0] == "[::1"


def _uploads(call: Call) -> bool:
    if is_local(call):
        return False
    sent = call.values(*_DATA)
    whole = call.values("--upload-file", "--post-file", "--body-file")
    if call.name == "curl":
        sent += [*call.clustered("d", f"{_CURL_VALUED}F"), *call.clustered("F", f"{_CURL_VALUED}d")]
        whole += call.clustered("T", f"{_CURL_VALUED}dF")
    return bool(whole) or any(
        text[:1] == "@" or any(mark in text for mark in ("=@", "=<", CODED, ANY)) for text in sent
    )


def _forwards(call: Call) -> bool:
    """`-R`; and `-L` for other machines too."""
    open_way = any(way.startswith(("0.0.0.0:", "*:")) for way in call.values("-L", "-D"))
    return open_way or call.has_letter("gR", "iploFJLDW")


_WEB, _NAMES = "curl|wget|http|https|xh", "dig|nslookup|host|drill|ping"
_SENDERS = f"{_WEB}|{_NAMES}|nc|ncat|netcat|socat|telnet|mail|mutt|ssh|scp"
RULES = rules(
    f"""\
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
exfiltration: it sends a secret of the environment
    {_SENDERS} (sends secret)
exfiltration: it uploads what a file or a command holds
    {_WEB} (uploads)
exfiltration: what a command has read, encoded or printed stands in the address
    {_SENDERS} (hidden in address)
exfiltration: the name of this user or machine stands in the address
    {_WEB}|{_NAMES} (tells who)
credentials: there the cloud hands out credentials
    {_SENDERS} (asks metadata)
exfiltration: it sends what it reads to another machine
    nc|ncat|netcat|telnet|socat|ftp|tftp|sftp (talks)
    ssh (pipes)
    openssl (sends file)
exfiltration: it copies files to another machine
    scp|rsync|rclone (copies away)
exfiltration: a name that nobody knows can carry data out
    {_NAMES} (asks by name)
exfiltration: it sends mail
    mail|mailx|mutt|sendmail|msmtp|swaks
exfiltration: it publishes what it reads
    pastebinit|gist|transfer|croc|wormhole|magic-wormhole|ffsend|termbin
exfiltration: it publishes a file
    gh gist create|edit
exposure: it opens a way into this machine
    ngrok|cloudflared|localtunnel|lt|bore|frpc|tailscale|zrok
    ssh|autossh (forwards)
""",
    *(_serves_all, _python_server, _open_by_default, _forwards, _uploads),
    sends_secret=lambda c: any(SECRET in text for text in c.texts) and not is_local(c),
    hidden_in_address=lambda c: (
        (c.mentions(CODED) or any(READ in word.partition("?")[2] for word in c.args))
        and not is_local(c)
    ),
    # What a pipe or a file brings goes to the other machine.
    pipes=lambda c: (c.state.fed or (c.state.piped and c.state.stdin)) and not is_local(c),
    sends_file=lambda c: "s_client" in c.args and (c.state.fed or READ in (c.state.stdin or "")),
    copies_away=lambda c: any(
        ":" in path and not path.startswith(("/", "./")) and not _is_here(path)
        for path in c.args[-1:]
    ),
    # `vite --host` without an address means every interface.
    bare_host=lambda c: any(host in ("", "true") or host[0] == "-" for host in c.values("--host")),
    listens=lambda c: c.given("--listen -l -L/pswxe"),
    tunnels=lambda c: c.says(",exec:") or any(w.lower().startswith(_TUNNELS) for w in c.words),
    socket=lambda c: c.mentions("/dev/tcp/", "/dev/udp/"),
    serves_outside=lambda c: (
        _python_server(c) and not c.is_ours(c.value("--directory", "-d") or ".")
    ),
    runs_address=lambda c: any(word.startswith(("http://", "https://")) for word in c.args[1:2]),
    tells_who=lambda c: c.mentions(WHO) and not is_local(c),
    asks_metadata=lambda c: c.mentions(*_METADATA),
    # Looking whether a port is open is fine.
    talks=lambda c: bool(c.args) and not c.has_letter("z", "wpsx") and not is_local(c),
    asks_by_name=lambda c: any((unknown(word) or NAMED in word) and "." in word for word in c.args),
)
