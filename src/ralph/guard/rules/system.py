"""Rules about the machine: rights, power, what stays behind, history, programs that run others."""

import re

from ralph.guard.rules.rule import Call, rules
from ralph.guard.shell.text import names

_SHOWS = names("-l -L -a -A -n -v -nL -S list print --list --all")
_PACKERS = names("gzip pigz bzip2 pbzip2 lbzip2 xz pixz zstd pzstd zstdmt lz4 brotli")
# Commands of the client itself; elsewhere in a statement these are names.
_MYSQL_RUNS = r"(?i)(?:^(?:-\w*e|--execute=)?|[;\n])\s*(?:system|pager)\s+\S"


def _changes_kernel(call: Call) -> bool:
    if call.name == "sysctl" and not call.has("-w", "-p", "--write", "--load", "--system"):
        return any("=" in word for word in call.args)
    return not call.words or any(word not in _SHOWS for word in call.words)


def _shuts_down(call: Call) -> bool:
    text = " ".join(call.words).lower()
    return "system events" in text and any(w in text for w in ("shut down", "restart", "sleep"))


def _escapes(call: Call) -> bool:
    """A line that begins with `!` runs a command in many programs."""
    lines = (call.state.stdin or "").splitlines()
    return any(line.lstrip().startswith("!") for line in lines) or call.begins("+!", "+:!")


def _database_shell(call: Call) -> bool:
    texts = [*call.words, call.state.stdin or ""]
    if call.name in ("mysql", "mariadb") and any(re.search(_MYSQL_RUNS, text) for text in texts):
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


def _packer(call: Call) -> bool:
    """`tar -I PROGRAM`: the usual ones are fine."""
    programs = call.clustered("I", "fC") + call.values("--use-compress-program")
    return any(word not in _PACKERS for program in programs for word in program.split()[:1])


_TABLE = """\
privilege: it takes the rights of root or of somebody else
    sudo|su|doas|pkexec|runuser|gosu|su-exec|sudoedit|visudo|newgrp|sg|login|dzdo|machinectl|setpriv
privilege: it changes users or their rights
    useradd|userdel|usermod|adduser|deluser|groupadd|groupdel|groupmod|passwd|chpasswd|gpasswd|
        vipw|chsh|chfn|dscl|setcap
privilege: it changes the system's packages; install into the project
    apt|apt-get|aptitude|dnf|yum|pacman|apk|zypper|snap|flatpak|port|dpkg|rpm install|remove|purge|
        autoremove|upgrade|dist-upgrade|full-upgrade|update|add|del|erase|uninstall|reinstall
    pacman|dpkg|rpm (packs)
    brew install|uninstall|remove|upgrade|reinstall|tap|link|unlink|services
privilege: it installs for every project; leave out -g
    npm|pnpm|yarn|bun install|i|add|uninstall|remove|rm|update|link --global -g/w
privilege: it installs for every project
    yarn global
privilege: it changes the system's Python; use a virtual environment
    pip|pip3 install|uninstall --user --break-system-packages
privilege: it changes the kernel or its settings
    insmod|rmmod|modprobe|sysctl|kexec|iptables|ip6tables|nft|ufw|firewall-cmd|setenforce|
        apparmor_parser|bpftool (changes kernel)
power: it stops or restarts the machine
    shutdown|reboot|halt|poweroff|telinit|pm-suspend|pm-hibernate
    init 0|1|6|s|S
    systemctl poweroff|reboot|halt|suspend|hibernate|kexec|rescue|emergency|hybrid-sleep|
        soft-reboot|isolate
    pmset sleepnow|schedule
    osascript (shuts down)
privilege: it changes the machine's clock, name or language
    timedatectl|hostnamectl|localectl (_sets)
privilege: it removes a tool of every project
    rustup self uninstall
privilege: it changes the system's programs
    update-alternatives|alternatives
privilege: it removes the environment that others stand on
    conda|mamba|micromamba remove|env|uninstall (_base)
file-system: it empties the trash
    osascript (empties)
persistence: it is started with the machine from now on
    pm2 startup
persistence: it would go on when the session is over
    disown|setsid|daemonize|start-stop-daemon|daemon|systemd-run
persistence: it plans commands for later
    crontab (crontab)
    at|batch|anacron (plans)
persistence: it changes what is started with the machine or a login
    launchctl|update-rc.d|chkconfig|loginctl|rc-update|ssh-copy-id (starts with machine)
guard: it starts an agent that asks nobody; leave out that flag
    claude|codex|gemini|opencode|amp (asks nobody)
resource-bomb: it is made to use the machine up
    stress|stress-ng|fork-bomb
shell-history: it clears the shell's history
    history|fc (clears history)
shell-history: it turns the shell's history off
    set (history off)
    unset (unsets)
    shopt (history option)
shell-history: it clears the machine's logs
    journalctl --vacuum-time --vacuum-size --vacuum-files --rotate
    auditctl|wevtutil|logrotate
    dmesg --clear --read-clear -C -c
guard: it changes what steers the guard
    unset (unsets guard)
evasion: it makes a name mean another program
    enable|hash -n -p
evasion: it loads code into the shell
    enable -f
evasion: nobody can tell what this code does; put it into a file
    pwsh|powershell|tclsh|wish (foreign code)
evasion: it runs a command from a debugger
    gdb|lldb (debugs)
evasion: it runs a command from within
    expect (spawned)
    ed|ex|ftp|less|more|mail (escapes)
    sqlite3|sqlite|psql|mysql|mariadb (database shell)
    ssh|scp|sftp (ssh command)
    tar|gtar|bsdtar (packer)
    man --pager -P
    sort --compress-program
    split --filter
    rg --pre --hostname-bin
    zip --unzip-command -TT
evasion: it changes what make runs
    make|gmake (make runs)
resource-bomb: it never ends
    yes (in background)
evasion: nobody can tell what make would run
    make|gmake (make from input)
"""
RULES = rules(
    _TABLE,
    *(_changes_kernel, _shuts_down, _foreign_code, _escapes, _database_shell, _packer),
    _make_from_input,
    packs=lambda c: c.has_letter("SRUirPe"),  # they speak in letters
    _sets=lambda c: any(word.startswith("set") for word in c.args),
    _base=lambda c: c.value("-n", "--name") == "base",
    empties=lambda c: any("empty trash" in word.lower() for word in c.words),
    crontab=lambda c: c.words != ["-l"],
    plans=lambda c: c.words not in (["-l"], ["-V"]),
    starts_with_machine=lambda c: (
        c.args[:1] not in (["list"], ["print"], ["list-sessions"], ["show-user"])
    ),
    asks_nobody=lambda c: c.begins("--dangerously") or "--yolo" in c.words,
    clears_history=lambda c: c.has_letter("cdwarp" if c.name == "fc" else "cdwar"),
    history_off=lambda c: "history" in c.words and "+o" in c.words,
    unsets=lambda c: any(word.startswith("HIST") for word in c.args),
    history_option=lambda c: "history" in c.words,
    unsets_guard=lambda c: any(
        word in ("RALPH_GUARD", "RALPH_RUN", "RALPH_START") for word in c.args
    ),
    debugs=lambda c: c.begins("shell ", "!", "python "),
    spawned=lambda c: any(
        "spawn" in text or "exec" in text for text in [*c.words, c.state.stdin or ""]
    ),
    ssh_command=lambda c: any(
        "proxycommand" in w.lower() or "localcommand" in w.lower() for w in c.words
    ),
    make_runs=lambda c: c.begins("SHELL=", "--eval"),
    in_background=lambda c: c.state.background,
)
