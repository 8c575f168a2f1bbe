"""Rules about what leaves the machine, and about ways into it."""

from ralph.core.danger_rule import CREDENTIALS, EXFILTRATION, EXPOSURE, Call, Rule
from ralph.core.shell_text import ANY, CODED, NAMED, READ, SECRET, WHO, names, unknown

_WEB = "curl wget http https xh"
_NAMES = "dig nslookup host drill ping"
_SENDERS = f"{_WEB} {_NAMES} nc ncat netcat socat telnet mail mutt ssh scp"
_LOCAL = names("localhost host.docker.internal ::1 [::1] 0.0.0.0")
_METADATA = ("169.254.169.254", "metadata.google.internal", "100.100.100.200", "fd00:ec2::254")
_CURL_VALUED = "HXuAeombcxwEr"
_DATA = (
    *("--data", "--data-binary", "--data-raw", "--data-urlencode", "--data-ascii", "--form"),
    *("--json", "--post-data", "--form-string", "--body-data"),
)
_UPLOADS = ("--upload-file", "--post-file", "--body-file")


def is_local(call: Call) -> bool:
    """Whether every address is this machine."""
    found = [word for word in call.args if "://" in word or _is_here(_host(word))]
    return bool(found) and all(_is_here(_host(word)) for word in found)


def _host(address: str) -> str:
    """The host of an address, with or without its scheme, user and port."""
    host = address.partition("://")[2] or address
    for end in "/?#":
        host = host.partition(end)[0]
    host = host.rpartition("@")[2]
    return host if host.startswith("[") or host.count(":") > 1 else host.partition(":")[0]


def _is_here(host: str) -> bool:
    numbers = host.split(".")
    loopback = len(numbers) == 4 and numbers[0] == "127" and all(n.isdecimal() for n in numbers)
    return loopback or host in _LOCAL or host.partition("]")[0] == "[::1"


def _sends_secret(call: Call) -> bool:
    sent = [*call.words, call.state.stdin or ""]
    return any(SECRET in text for text in sent) and not is_local(call)


def _uploads(call: Call) -> bool:
    if is_local(call):
        return False
    sent = call.values(*_DATA)
    if call.name == "curl":
        sent += [*call.clustered("d", f"{_CURL_VALUED}F"), *call.clustered("F", f"{_CURL_VALUED}d")]
    files = any(text[:1] == "@" or "=@" in text or "=<" in text for text in sent)
    what = any(CODED in text or ANY in text for text in sent)
    whole = call.name == "curl" and bool(call.clustered("T", f"{_CURL_VALUED}dF"))
    return files or what or whole or bool(call.values(*_UPLOADS))


def _hidden_in_address(call: Call) -> bool:
    if is_local(call):
        return False
    asked = any(READ in word.partition("?")[2] for word in call.args)
    return asked or any(CODED in word for word in call.words)


def _tells_who(call: Call) -> bool:
    return any(WHO in word for word in call.words) and not is_local(call)


def _asks_metadata(call: Call) -> bool:
    return any(address in word for word in call.words for address in _METADATA)


def _talks(call: Call) -> bool:
    """`nc host port` with something to send; looking whether a port is open is fine."""
    if call.has_letter("z", "wpsx") or is_local(call):
        return False
    return bool(call.args)


def _pipes(call: Call) -> bool:
    """What a pipe or a file brings goes to the other machine."""
    brought = call.state.fed or (call.state.piped and bool(call.state.stdin))
    return brought and not is_local(call)


def _sends_file(call: Call) -> bool:
    brought = call.state.fed or READ in (call.state.stdin or "")
    return "s_client" in call.args and brought


def _copies_away(call: Call) -> bool:
    target = call.args[-1] if call.args else ""
    there = ":" in target and not target.startswith(("/", "./"))
    return there and not _is_here(_host(target))


def _asks_by_name(call: Call) -> bool:
    return any((unknown(word) or NAMED in word) and "." in word for word in call.args)


def _forwards(call: Call) -> bool:
    """`-R`; and `-L` for other machines too."""
    ways = call.values("-L", "-D")
    open_way = any(way.startswith(("0.0.0.0:", "*:")) for way in ways)
    wide = open_way or call.has_letter("g", "iploFJLDWR")
    return call.has_letter("R", "iploFJLDW") or wide


RULES = (
    Rule(EXFILTRATION, "it sends a secret of the environment", _SENDERS, test=_sends_secret),
    Rule(EXFILTRATION, "it uploads what a file or a command holds", _WEB, test=_uploads),
    Rule(
        EXFILTRATION,
        "what a command has read, encoded or printed stands in the address",
        _SENDERS,
        test=_hidden_in_address,
    ),
    Rule(
        EXFILTRATION,
        "the name of this user or machine stands in the address",
        f"{_WEB} {_NAMES}",
        test=_tells_who,
    ),
    Rule(CREDENTIALS, "there the cloud hands out credentials", _SENDERS, test=_asks_metadata),
    Rule(
        EXFILTRATION,
        "it sends what it reads to another machine",
        "nc ncat netcat telnet socat ftp tftp sftp",
        test=_talks,
    ),
    Rule(EXFILTRATION, "it sends what it reads to another machine", "ssh", test=_pipes),
    Rule(EXFILTRATION, "it sends what it reads to another machine", "openssl", test=_sends_file),
    Rule(EXFILTRATION, "it copies files to another machine", "scp rsync rclone", test=_copies_away),
    Rule(
        EXFILTRATION,
        "a name that nobody knows can carry data out",
        _NAMES,
        test=_asks_by_name,
    ),
    Rule(EXFILTRATION, "it sends mail", "mail mailx mutt sendmail msmtp swaks"),
    Rule(
        EXFILTRATION,
        "it publishes what it reads",
        "pastebinit gist transfer croc wormhole magic-wormhole ffsend termbin",
    ),
    Rule(EXFILTRATION, "it publishes a file", "gh", sub="gist create|edit"),
    Rule(
        EXPOSURE,
        "it opens a way into this machine",
        "ngrok cloudflared localtunnel lt bore frpc tailscale zrok",
    ),
    Rule(EXPOSURE, "it opens a way into this machine", "ssh autossh", test=_forwards),
)
