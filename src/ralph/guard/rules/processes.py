"""Rules about processes and services: one's own may be ended, those that all depends on may not."""

import re

from ralph.guard.rules.rule import Call, positional, rules
from ralph.guard.shell.text import FOUND, PARENT, names, unknown, without

# What the agent, Ralph or a person's session runs in, as processes are called.
_HOSTS = names(
    "python python3 python3.11 claude codex gemini opencode amp ralph bash zsh fish tmux screen"
    " sshd systemd init dockerd containerd Xorg gnome-shell login"
)
_FINDS = ["-u", "-U", "-s", "--signal", "--uid", "--euid", "-n", "-d", "-F", "--delimiter"]
_SERVICE = names(
    "stop disable mask restart kill enable start reload daemon-reload edit link set-default"
)


def is_host(pattern: str) -> bool:
    """True if a pattern for processes takes in what all depends on, or says nothing."""
    if unknown(pattern) or not any(map(str.isalnum, pattern)):
        return True
    try:
        return any(re.search(pattern, host, re.IGNORECASE) for host in _HOSTS)
    except re.error:
        return True


def finds_hosts(call: Call) -> bool:
    """True if `pgrep` and its like find what all depends on."""
    found = positional(call.words, _FINDS)
    named = [w for w in found if not (w.removeprefix("SIG").isupper() or w.isdecimal())]
    turned = call.has("--inverse", "--terminal") or call.has_letter("vtgG", "uUsnd")
    others = {"root", "0"}.intersection(call.values("-u", "-U", "--euid", "--uid", "--user"))
    return bool(turned or others) or not named or any(map(is_host, named))


def narrowed(call: Call, text: str) -> str:
    """The list without the agent's own, if `grep` or `awk` chose by a name that is no host's."""
    if PARENT not in text or call.has_letter("v", "efABCm"):
        return text
    program = "".join(call.args[:1])
    patterns = program.split("/")[1:2] if "awk" in call.name else [program]
    chosen = call.name.endswith(("grep", "awk")) and not any(map(is_host, patterns or [""]))
    return without(text, PARENT) if chosen else text


def _not_of_one(call: Call) -> bool:
    """`pkill -P PID` ends the children of one process only."""
    return call.value("-P", "--parent") is None


def _everybody(call: Call) -> bool:
    """`kill -1` means every process, and 1 is the first of all."""
    words = call.words[1:] if call.words[:1] and call.words[0][:1] == "-" else call.words
    if call.words[:1] in (["-s"], ["-n"], ["--signal"]):
        words = call.words[2:]
    return any(word in ("-1", "1", "0") for word in words) or call.words == ["-1"]


_TABLE = """\
guard: it ends Ralph itself
    kill|pkill|killall (of ralph)
process-kill strict: it ends processes by name, also those of others; kill the process id
    pkill|killall|skill|slay|xkill|killall5 (not of one)
process-kill: it also ends the agent, Ralph or other people's work; name the program with its \
script, as in pkill -f 'python server.py'
    pkill|killall|skill|slay|xkill|killall5 (ends hosts)
process-kill strict: it ends processes that were looked up, also those of others; kill the process \
id that you started
    kill (looked up)
process-kill: it may end the agent itself
    kill|pkill (parent)
process-kill: it ends every session, and what works there
    tmux|screen kill-server
process-kill: it ends whatever uses a file; name a port, as in fuser -k 3000/tcp
    fuser --kill -k (whatever uses)
process-kill: it ends every process
    kill (everybody)
process-kill strict: it ends whatever uses a file or port; kill the process id
    fuser --kill -k
process-kill: it stops or starts services of the machine
    service|rc-service (changes service)
persistence: it changes services of the machine
    systemctl (changes service)
"""
RULES = rules(
    _TABLE,
    *(_not_of_one, _everybody),
    of_ralph=lambda c: c.mentions("ralph"),
    ends_hosts=lambda c: _not_of_one(c) and finds_hosts(c),
    looked_up=lambda c: c.mentions(FOUND),
    parent=lambda c: c.mentions(PARENT),
    # A port is one's own, a directory is everybody's.
    whatever_uses=lambda c: not all(re.fullmatch(r"\d+/(?:tcp|udp)", word) for word in c.args),
    changes_service=lambda c: not _SERVICE.isdisjoint(c.args),
)
