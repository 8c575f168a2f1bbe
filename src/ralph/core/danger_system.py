"""Rules about the machine: rights, power, processes, what stays behind, containers, history."""

import re

from ralph.core.danger_rule import (
    BOMB,
    EVASION,
    FILES,
    GUARD,
    HISTORY,
    PERSISTENCE,
    POWER,
    PRIVILEGE,
    Call,
    Rule,
)
from ralph.core.shell_text import names

_PACKAGES = "apt apt-get aptitude dnf yum pacman apk zypper snap flatpak port dpkg rpm"
_INSTALLS = (
    "install|remove|purge|autoremove|upgrade|dist-upgrade|full-upgrade|update|add|del"
    "|erase|uninstall|reinstall"
)
# Commands of the client itself; elsewhere in a statement these are names.
_MYSQL_RUNS = re.compile(r"(?i)(?:^(?:-\w*e|--execute=)?|[;\n])\s*(?:system|pager)\s+\S")


def _packs(call: Call) -> bool:
    """pacman and dpkg speak in letters."""
    return call.name in ("pacman", "dpkg", "rpm") and call.has_letter("SRUirPe", "")


def _in_background(call: Call) -> bool:
    return call.state.background


def _asks_nobody(call: Call) -> bool:
    return any(word.startswith("--dangerously") or word == "--yolo" for word in call.words)


def _shows_only(call: Call) -> bool:
    return bool(call.words) and all(word in _SHOWS for word in call.words)


_SHOWS = names("-l -L -a -A -n -v -nL -S list print --list --all")


def _changes_kernel(call: Call) -> bool:
    if call.name == "sysctl" and not call.has("-w", "-p", "--write", "--load", "--system"):
        return any("=" in word for word in call.args)
    return not _shows_only(call)


def _plans(call: Call) -> bool:
    return call.words not in (["-l"], ["-V"])


def _starts_with_machine(call: Call) -> bool:
    return call.args[:1] not in (["list"], ["print"], ["list-sessions"], ["show-user"])


def _shuts_down(call: Call) -> bool:
    text = " ".join(call.words).lower()
    return "system events" in text and any(w in text for w in ("shut down", "restart", "sleep"))


def _empties(call: Call) -> bool:
    return any("empty trash" in word.lower() for word in call.words)


def _spawned(call: Call) -> bool:
    return any("spawn" in word or "exec" in word for word in [*call.words, call.state.stdin or ""])


def _crontab(call: Call) -> bool:
    return call.words != ["-l"]


def _clears_history(call: Call) -> bool:
    return call.has_letter("cdwar") or (call.name == "fc" and call.has_letter("p"))


def _history_off(call: Call) -> bool:
    return "history" in call.words and "+o" in call.words


def _unsets(call: Call) -> bool:
    return any(word.startswith("HIST") for word in call.args)


def _unsets_guard(call: Call) -> bool:
    return any(word in ("RALPH_GUARD", "RALPH_RUN", "RALPH_START") for word in call.args)


def _debugs(call: Call) -> bool:
    return any(word.startswith(("shell ", "!", "python ")) for word in call.words)


def _make_runs(call: Call) -> bool:
    return any(word.startswith(("SHELL=", "--eval")) for word in call.words)


def _history_option(call: Call) -> bool:
    return "history" in call.words


def _escapes(call: Call) -> bool:
    """A line that begins with `!` runs a command in many programs."""
    lines = (call.state.stdin or "").splitlines()
    return any(line.lstrip().startswith("!") for line in lines) or any(
        word.startswith(("+!", "+:!")) for word in call.words
    )


def _database_shell(call: Call) -> bool:
    texts = [*call.words, call.state.stdin or ""]
    if call.name in ("mysql", "mariadb") and any(_MYSQL_RUNS.search(text) for text in texts):
        return True
    return any(mark in text for text in texts for mark in (".shell", ".system", "\\!"))


def _foreign_code(call: Call) -> bool:
    """Code in a language that nobody here reads, and that stands in no file."""
    sent = call.state.stdin is not None and call.args[:1] in ([], ["-"], ["/dev/stdin"])
    if call.name in ("tclsh", "wish"):
        return sent
    words = [word.lower() for word in call.words if word[:1] == "-"]
    told = [w for w in words if w in ("-e", "-ec") or w.startswith(("-c", "--c", "-en"))]
    return sent or any(not word.startswith("-conf") for word in told)


def _make_from_input(call: Call) -> bool:
    given = call.value("-f", "--file", "--makefile") or ""
    return given in ("-", "/dev/stdin") or given.startswith("/dev/fd/")


def _ssh_command(call: Call) -> bool:
    return any("proxycommand" in w.lower() or "localcommand" in w.lower() for w in call.words)


def _packer(call: Call) -> bool:
    """`tar -I PROGRAM`: the usual ones are fine."""
    programs = call.clustered("I", "fC") + call.values("--use-compress-program")
    return any(
        program.split()[:1] != [] and program.split()[0] not in _PACKERS for program in programs
    )


_PACKERS = names("gzip pigz bzip2 pbzip2 lbzip2 xz pixz zstd pzstd zstdmt lz4 brotli")


RULES = (
    Rule(
        PRIVILEGE,
        "it takes the rights of root or of somebody else",
        "sudo su doas pkexec runuser gosu su-exec sudoedit visudo newgrp sg login dzdo"
        " machinectl setpriv",
    ),
    Rule(
        PRIVILEGE,
        "it changes users or their rights",
        "useradd userdel usermod adduser deluser groupadd groupdel groupmod passwd"
        " chpasswd gpasswd vipw chsh chfn dscl setcap",
    ),
    Rule(
        PRIVILEGE,
        "it changes the system's packages; install into the project",
        _PACKAGES,
        sub=_INSTALLS,
    ),
    Rule(
        PRIVILEGE,
        "it changes the system's packages; install into the project",
        _PACKAGES,
        test=_packs,
    ),
    Rule(
        PRIVILEGE,
        "it changes the system's packages; install into the project",
        "brew",
        sub="install|uninstall|remove|upgrade|reinstall|tap|link|unlink|services",
    ),
    Rule(
        PRIVILEGE,
        "it installs for every project; leave out -g",
        "npm pnpm yarn bun",
        sub="install|i|add|uninstall|remove|rm|update|link",
        flags="--global",
        letters="g",
        valued="w",
    ),
    Rule(PRIVILEGE, "it installs for every project", "yarn", sub="global"),
    Rule(
        PRIVILEGE,
        "it changes the system's Python; use a virtual environment",
        "pip pip3",
        sub="install|uninstall",
        flags="--user --break-system-packages",
    ),
    Rule(
        PRIVILEGE,
        "it changes the kernel or its settings",
        "insmod rmmod modprobe sysctl kexec iptables ip6tables nft ufw firewall-cmd"
        " setenforce apparmor_parser bpftool",
        test=_changes_kernel,
    ),
    Rule(
        POWER,
        "it stops or restarts the machine",
        "shutdown reboot halt poweroff telinit pm-suspend pm-hibernate",
    ),
    Rule(POWER, "it stops or restarts the machine", "init", sub="0|1|6|s|S"),
    Rule(
        POWER,
        "it stops or restarts the machine",
        "systemctl",
        sub=(
            "poweroff|reboot|halt|suspend|hibernate|kexec|rescue|emergency|hybrid-sleep|soft-reboot"
            "|isolate"
        ),
    ),
    Rule(POWER, "it stops or restarts the machine", "pmset", sub="sleepnow|schedule"),
    Rule(POWER, "it stops or restarts the machine", "osascript", test=_shuts_down),
    Rule(
        PRIVILEGE,
        "it changes the machine's clock, name or language",
        "timedatectl hostnamectl localectl",
        test=lambda c: any(word.startswith("set") for word in c.args),
    ),
    Rule(PRIVILEGE, "it removes a tool of every project", "rustup", sub="self uninstall"),
    Rule(PRIVILEGE, "it changes the system's programs", "update-alternatives alternatives"),
    Rule(
        PRIVILEGE,
        "it removes the environment that others stand on",
        "conda mamba micromamba",
        sub="remove|env|uninstall",
        test=lambda c: c.value("-n", "--name") == "base",
    ),
    Rule(FILES, "it empties the trash", "osascript", test=_empties),
    Rule(PERSISTENCE, "it is started with the machine from now on", "pm2", sub="startup"),
    Rule(
        PERSISTENCE,
        "it would go on when the session is over",
        "disown setsid daemonize start-stop-daemon daemon systemd-run",
    ),
    Rule(PERSISTENCE, "it plans commands for later", "crontab", test=_crontab),
    Rule(PERSISTENCE, "it plans commands for later", "at batch anacron", test=_plans),
    Rule(
        PERSISTENCE,
        "it changes what is started with the machine or a login",
        "launchctl update-rc.d chkconfig loginctl rc-update ssh-copy-id",
        test=_starts_with_machine,
    ),
    Rule(
        GUARD,
        "it starts an agent that asks nobody; leave out that flag",
        "claude codex gemini opencode amp",
        test=_asks_nobody,
    ),
    Rule(BOMB, "it is made to use the machine up", "stress stress-ng fork-bomb"),
    Rule(HISTORY, "it clears the shell's history", "history fc", test=_clears_history),
    Rule(HISTORY, "it turns the shell's history off", "set", test=_history_off),
    Rule(HISTORY, "it turns the shell's history off", "unset", test=_unsets),
    Rule(
        HISTORY,
        "it clears the machine's logs",
        "journalctl",
        flags="--vacuum-time --vacuum-size --vacuum-files --rotate",
    ),
    Rule(HISTORY, "it clears the machine's logs", "auditctl wevtutil logrotate"),
    Rule(
        HISTORY, "it clears the machine's logs", "dmesg", flags="--clear --read-clear", letters="Cc"
    ),
    Rule(GUARD, "it changes what steers the guard", "unset", test=_unsets_guard),
    Rule(EVASION, "it makes a name mean another program", "enable hash", letters="np"),
    Rule(EVASION, "it loads code into the shell", "enable", letters="f"),
    Rule(
        EVASION,
        "nobody can tell what this code does; put it into a file",
        "pwsh powershell tclsh wish",
        test=_foreign_code,
    ),
    Rule(EVASION, "it runs a command from a debugger", "gdb lldb", test=_debugs),
    Rule(EVASION, "it runs a command from within", "expect", test=_spawned),
    Rule(EVASION, "it changes what make runs", "make gmake", test=_make_runs),
    Rule(HISTORY, "it turns the shell's history off", "shopt", test=_history_option),
    Rule(BOMB, "it never ends", "yes", test=_in_background),
    Rule(EVASION, "it runs a command from within", "ed ex ftp less more mail", test=_escapes),
    Rule(
        EVASION,
        "it runs a command from within",
        "sqlite3 sqlite psql mysql mariadb",
        test=_database_shell,
    ),
    Rule(EVASION, "nobody can tell what make would run", "make gmake", test=_make_from_input),
    Rule(EVASION, "it runs a command from within", "ssh scp sftp", test=_ssh_command),
    Rule(EVASION, "it runs a command from within", "tar gtar bsdtar", test=_packer),
    Rule(EVASION, "it runs a command from within", "man", flags="--pager", letters="P"),
    Rule(EVASION, "it runs a command from within", "sort", flags="--compress-program"),
    Rule(EVASION, "it runs a command from within", "split", flags="--filter"),
    Rule(EVASION, "it runs a command from within", "rg", flags="--pre --hostname-bin"),
    Rule(EVASION, "it runs a command from within", "zip", flags="--unzip-command -TT"),
)
