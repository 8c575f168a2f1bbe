"""Rules about the machine: rights, power, processes, what stays behind, containers, history."""

from ralph.core.danger_paths import OUTSIDE
from ralph.core.danger_rule import (
    BOMB,
    CONTAINER,
    EVASION,
    GUARD,
    HISTORY,
    KILL,
    PERSISTENCE,
    POWER,
    PRIVILEGE,
    Call,
    Rule,
)
from ralph.core.shell_text import names, unknown

_PACKAGES = "apt apt-get aptitude dnf yum pacman apk zypper snap flatpak port dpkg rpm"
_INSTALLS = (
    "install|remove|purge|autoremove|upgrade|dist-upgrade|full-upgrade|update|add|del"
    "|erase|uninstall|reinstall"
)


def _packs(call: Call) -> bool:
    """pacman and dpkg speak in letters."""
    return call.name in ("pacman", "dpkg", "rpm") and call.has_letter("SRUirPe", "")


def _in_background(call: Call) -> bool:
    return call.state.background


def _everybody(call: Call) -> bool:
    """`kill -1` means every process, and 1 is the first of all."""
    words = call.words[1:] if call.words[:1] and call.words[0][:1] == "-" else call.words
    if call.words[:1] in (["-s"], ["-n"], ["--signal"]):
        words = call.words[2:]
    targets = [word for word in words if word != "--"]
    return any(word in ("-1", "1", "0") for word in targets) or call.words == ["-1"]


def _of_ralph(call: Call) -> bool:
    return any("ralph" in word for word in call.words)


def _crontab(call: Call) -> bool:
    return call.words != ["-l"]


def _changes_service(call: Call) -> bool:
    return any(word in _SERVICE for word in call.args)


_SERVICE = names(
    "stop disable mask restart kill enable start reload daemon-reload edit link set-default"
)


def _mounts(call: Call) -> list[str]:
    """Where the host's directories come from that a container gets, those it may write."""
    found = []
    for place, word in enumerate(call.words):
        given = call.words[place + 1 : place + 2]
        if word in ("-v", "--volume") and given:
            found += given
        elif word.startswith("--volume="):
            found.append(word.partition("=")[2])
        elif (word == "--mount" and given) or word.startswith("--mount="):
            text = given[0] if word == "--mount" else word.partition("=")[2]
            parts = dict(part.partition("=")[::2] for part in text.split(","))
            source = parts.get("source", parts.get("src", ""))
            found.append(source + (":x:ro" if "readonly" in parts else ""))
    return found


def _outer_mount(call: Call) -> bool:
    for mount in _mounts(call):
        source, _, rest = mount.partition(":")
        if unknown(source):
            return True
        if "/" not in source and source[:1] not in ("~", "."):
            continue  # a volume's name
        kind = call.places.kind(source, call.state.cwd)
        if "docker.sock" in source or source in ("/", "/etc", "/root", call.places.where.home):
            return True
        if kind == OUTSIDE and not rest.endswith(":ro"):
            return True
    return False


def _capable(call: Call) -> bool:
    caps = (call.value("--cap-add") or "").upper().removeprefix("CAP_")
    host = [call.value("--pid"), call.value("--ipc"), call.value("--userns"), call.value("--uts")]
    return (
        caps in ("ALL", "SYS_ADMIN", "SYS_PTRACE", "SYS_MODULE", "DAC_READ_SEARCH")
        or "host" in host
    )


def _removes_volumes(call: Call) -> bool:
    return "down" in call.subs and (call.has("--volumes") or call.has_letter("v", "ftp"))


def _clears_history(call: Call) -> bool:
    return call.has_letter("cdwar") or (call.name == "fc" and call.has_letter("p"))


def _history_off(call: Call) -> bool:
    return "history" in call.words and (
        "+o" in call.words or ("-o" in call.words and "+o" in call.words)
    )


def _unsets(call: Call) -> bool:
    return any(word.startswith("HIST") for word in call.args)


def _unsets_guard(call: Call) -> bool:
    return any(word in ("RALPH_GUARD", "RALPH_RUN") for word in call.args)


def _debugs(call: Call) -> bool:
    return any(word.startswith(("shell ", "!", "python ")) for word in call.words)


def _editor_shell(call: Call) -> bool:
    return any(word.lstrip("+:").startswith("!") or "system(" in word for word in call.words)


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
    return any(mark in text for text in texts for mark in (".shell", ".system", "\\!"))


def _make_from_input(call: Call) -> bool:
    return call.value("-f", "--file", "--makefile") in ("-", "/dev/stdin")


def _ssh_command(call: Call) -> bool:
    return any("proxycommand" in w.lower() or "localcommand" in w.lower() for w in call.words)


def _packer(call: Call) -> bool:
    """`tar -I PROGRAM`: the usual ones are fine."""
    program = call.clustered("I", "fC") or call.value("--use-compress-program")
    return bool(program) and str(program).split()[0] not in _PACKERS


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
        ),
    ),
    Rule(POWER, "it stops or restarts the machine", "pmset", sub="sleepnow|schedule"),
    Rule(GUARD, "it ends Ralph itself", "kill pkill killall", test=_of_ralph),
    Rule(
        KILL,
        "it ends processes by name, also those of others; kill the process id",
        "pkill killall skill slay xkill killall5",
    ),
    Rule(KILL, "it ends every process", "kill", test=_everybody),
    Rule(
        KILL,
        "it ends whatever uses a file or port; kill the process id",
        "fuser",
        flags="--kill",
        letters="k",
    ),
    Rule(
        KILL,
        "it stops or starts services of the machine",
        "service rc-service",
        test=_changes_service,
    ),
    Rule(PERSISTENCE, "it changes services of the machine", "systemctl", test=_changes_service),
    Rule(PERSISTENCE, "it would go on when the session is over", "nohup", test=_in_background),
    Rule(
        PERSISTENCE,
        "it would go on when the session is over",
        "disown setsid daemonize start-stop-daemon daemon systemd-run",
    ),
    Rule(PERSISTENCE, "it plans commands for later", "crontab", test=_crontab),
    Rule(PERSISTENCE, "it plans commands for later", "at batch anacron"),
    Rule(
        PERSISTENCE,
        "it changes what is started with the machine or a login",
        "launchctl update-rc.d chkconfig loginctl rc-update ssh-copy-id",
    ),
    Rule(BOMB, "it is made to use the machine up", "stress stress-ng fork-bomb"),
    Rule(
        CONTAINER,
        "the container could leave itself",
        "docker podman nerdctl",
        flags="--privileged --device",
    ),
    Rule(
        CONTAINER,
        "the container could change this machine's files",
        "docker podman nerdctl docker-compose",
        test=_outer_mount,
    ),
    Rule(CONTAINER, "the container could leave itself", "docker podman nerdctl", test=_capable),
    Rule(
        CONTAINER,
        "it enters or leaves namespaces",
        "nsenter unshare chroot pivot_root runc ctr crictl bwrap",
    ),
    Rule(
        CONTAINER,
        "it deletes what others may use",
        "docker podman nerdctl",
        sub="system|volume|image|container|network|builder prune",
    ),
    Rule(CONTAINER, "it deletes data volumes", "docker podman nerdctl", sub="volume rm|remove"),
    Rule(
        CONTAINER,
        "it deletes data volumes; leave out -v",
        "docker podman docker-compose",
        test=_removes_volumes,
    ),
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
    Rule(GUARD, "it changes what steers the guard", "unset", test=_unsets_guard),
    Rule(EVASION, "it makes a name mean another program", "enable hash", letters="np"),
    Rule(EVASION, "it runs a command from a debugger", "gdb lldb", test=_debugs),
    Rule(
        EVASION, "it runs a command from an editor", "vim vi nvim ex view emacs", test=_editor_shell
    ),
    Rule(EVASION, "it changes what make runs", "make gmake", test=_make_runs),
    Rule(HISTORY, "it turns the shell's history off", "shopt", test=_history_option),
    Rule(BOMB, "it never ends", "yes", test=_in_background),
    Rule(EVASION, "it runs a command from within", "ed ex ftp less more mail", test=_escapes),
    Rule(
        EVASION, "it runs a command from within", "sqlite3 sqlite psql mysql", test=_database_shell
    ),
    Rule(EVASION, "nobody can tell what make would run", "make gmake", test=_make_from_input),
    Rule(EVASION, "it runs a command from within", "ssh scp sftp", test=_ssh_command),
    Rule(EVASION, "it runs a command from within", "tar gtar bsdtar", test=_packer),
    Rule(EVASION, "it runs a command from within", "man", flags="--pager", letters="P"),
    Rule(EVASION, "it runs a command from within", "sort", flags="--compress-program"),
    Rule(EVASION, "it runs a command from within", "split", flags="--filter"),
    Rule(EVASION, "it runs a command from within", "zip", flags="--unzip-command -TT"),
)
