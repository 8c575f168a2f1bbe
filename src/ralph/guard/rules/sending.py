"""Rules about what leaves the machine, and about ways into it."""

from ralph.guard.rules.rule import Call, rules
from ralph.guard.shell.text import ANY, CODED, NAMED, READ, SECRET, WHO, names, unknown

_LOCAL = names("localhost host.docker.internal ::1 [::1] 0.0.0.0")
_METADATA = ("169.254.169.254", "metadata.google.internal", "100.100.100.200", "fd00:ec2::254")
_CURL_VALUED = "HXuAeombcxwEr"
_DATA = (
    *("--data", "--data-binary", "--data-raw", "--data-urlencode", "--data-ascii", "--form"),
    *("--json", "--post-data", "--form-string", "--body-data"),
)


def is_local(call: Call) -> bool:
    found = [word for word in call.args if "://" in word or _is_here(word)]
    return bool(found) and all(map(_is_here, found))


def _is_here(address: str) -> bool:
    """True if an address, with or without its scheme, user and port, is this machine's."""
    host = address.partition("://")[2] or address
    for end in "/?#":
        host = host.partition(end)[0]
    host = host.rpartition("@")[2]
    host = host if host.startswith("[") or host.count(":") > 1 else host.partition(":")[0]
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
    return (
        files or what or whole or bool(call.values("--upload-file", "--post-file", "--body-file"))
    )


def _hidden_in_address(call: Call) -> bool:
    asked = any(READ in word.partition("?")[2] for word in call.args)
    return (asked or call.mentions(CODED)) and not is_local(call)


def _pipes(call: Call) -> bool:
    """Sends to the other machine what a pipe or a file brings."""
    brought = call.state.fed or (call.state.piped and bool(call.state.stdin))
    return brought and not is_local(call)


def _sends_file(call: Call) -> bool:
    brought = call.state.fed or READ in (call.state.stdin or "")
    return "s_client" in call.args and brought


def _copies_away(call: Call) -> bool:
    target = call.args[-1] if call.args else ""
    return ":" in target and not target.startswith(("/", "./")) and not _is_here(target)


def _forwards(call: Call) -> bool:
    """`-R`; and `-L` for other machines too."""
    open_way = any(way.startswith(("0.0.0.0:", "*:")) for way in call.values("-L", "-D"))
    wide = open_way or call.has_letter("g", "iploFJLDWR")
    return wide or call.has_letter("R", "iploFJLDW")


_WEB, _NAMES = "curl|wget|http|https|xh", "dig|nslookup|host|drill|ping"
_SENDERS = f"{_WEB}|{_NAMES}|nc|ncat|netcat|socat|telnet|mail|mutt|ssh|scp"
_TABLE = f"""\
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
"""
RULES = rules(
    _TABLE,
    *(_sends_secret, _uploads, _hidden_in_address, _pipes, _sends_file, _copies_away),
    _forwards,
    tells_who=lambda c: c.mentions(WHO) and not is_local(c),
    asks_metadata=lambda c: c.mentions(*_METADATA),
    # Looking whether a port is open is fine.
    talks=lambda c: bool(c.args) and not c.has_letter("z", "wpsx") and not is_local(c),
    asks_by_name=lambda c: any((unknown(word) or NAMED in word) and "." in word for word in c.args),
)
