"""Rules about processes and services: one's own may be ended, those that all depends on may not."""

import re

from ralph.core.danger_rule import GUARD, KILL, PERSISTENCE, STRICT, Call, Rule, positional
from ralph.core.shell_text import FOUND, PARENT, names, unknown, without

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
    """Whether a pattern for processes takes in what all depends on, or says nothing."""
    if unknown(pattern) or not any(map(str.isalnum, pattern)):
        return True
    try:
        return any(re.search(pattern, host, re.IGNORECASE) for host in _HOSTS)
    except re.error:
        return True


def finds_hosts(call: Call) -> bool:
    """Whether `pgrep` and its like find what all depends on."""
    named = [word for word in positional(call.words, _FINDS) if not _is_signal(word)]
    turned = call.has("--inverse", "--terminal") or call.has_letter("vtgG", "uUsnd")
    others = {"root", "0"}.intersection(call.values("-u", "-U", "--euid", "--uid", "--user"))
    return bool(turned or others) or not named or any(map(is_host, named))


def _is_signal(word: str) -> bool:
    return word.removeprefix("SIG").isupper() or word.isdecimal()


def narrowed(call: Call, text: str) -> str:
    """Of all processes, those that `grep` or `awk` chose by a name that is no host's."""
    if PARENT not in text or call.has_letter("v", "efABCm"):
        return text
    program = "".join(call.args[:1])
    patterns = program.split("/")[1:2] if "awk" in call.name else [program]
    chosen = call.name.endswith(("grep", "awk")) and not any(map(is_host, patterns or [""]))
    return without(text, PARENT) if chosen else text


def _looked_up(call: Call) -> bool:
    return any(FOUND in word for word in call.words)


def _not_of_one(call: Call) -> bool:
    """`pkill -P PID` ends the children of one process only."""
    return call.value("-P", "--parent") is None


def _ends_hosts(call: Call) -> bool:
    """`pkill python`, and whatever is named by nothing at all."""
    return _not_of_one(call) and finds_hosts(call)


def _whatever_uses(call: Call) -> bool:
    """`fuser -k .`: a port is one's own, a directory is everybody's."""
    return not all(re.fullmatch(r"\d+/(?:tcp|udp)", word) for word in call.args)


def _parent(call: Call) -> bool:
    return any(PARENT in word for word in call.words)


def _everybody(call: Call) -> bool:
    """`kill -1` means every process, and 1 is the first of all."""
    words = call.words[1:] if call.words[:1] and call.words[0][:1] == "-" else call.words
    if call.words[:1] in (["-s"], ["-n"], ["--signal"]):
        words = call.words[2:]
    targets = [word for word in words if word != "--"]
    return any(word in ("-1", "1", "0") for word in targets) or call.words == ["-1"]


def _of_ralph(call: Call) -> bool:
    return any("ralph" in word for word in call.words)


def _changes_service(call: Call) -> bool:
    return any(word in _SERVICE for word in call.args)


RULES = (
    Rule(GUARD, "it ends Ralph itself", "kill pkill killall", test=_of_ralph),
    Rule(
        KILL,
        "it ends processes by name, also those of others; kill the process id",
        "pkill killall skill slay xkill killall5",
        test=_not_of_one,
        level=STRICT,
    ),
    Rule(
        KILL,
        "it also ends the agent, Ralph or other people's work; name the program with its script, as"
        " in pkill -f 'python server.py'",
        "pkill killall skill slay xkill killall5",
        test=_ends_hosts,
    ),
    Rule(
        KILL,
        "it ends processes that were looked up, also those of others; kill the process id that"
        " you started",
        "kill",
        test=_looked_up,
        level=STRICT,
    ),
    Rule(KILL, "it may end the agent itself", "kill pkill", test=_parent),
    Rule(KILL, "it ends every session, and what works there", "tmux screen", sub="kill-server"),
    Rule(
        KILL,
        "it ends whatever uses a file; name a port, as in fuser -k 3000/tcp",
        "fuser",
        flags="--kill",
        letters="k",
        test=_whatever_uses,
    ),
    Rule(KILL, "it ends every process", "kill", test=_everybody),
    Rule(
        KILL,
        "it ends whatever uses a file or port; kill the process id",
        "fuser",
        flags="--kill",
        letters="k",
        level=STRICT,
    ),
    Rule(
        KILL,
        "it stops or starts services of the machine",
        "service rc-service",
        test=_changes_service,
    ),
    Rule(PERSISTENCE, "it changes services of the machine", "systemctl", test=_changes_service),
)
