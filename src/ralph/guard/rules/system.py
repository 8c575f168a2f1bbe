"""Rules about the machine: rights, power, what stays behind, history, programs that run others, and
processes: one's own may be ended, those that all depends on may not."""

import re

from ralph.guard.rules.environment import STEERING
from ralph.guard.rules.rule import Call, positional, rules
from ralph.guard.shell.text import FOUND, PARENT, names, unknown, without

_SHOWS = names("-l -L -a -A -n -v -nL -S list print --list --all")
_PACKERS = names("gzip pigz bzip2 pbzip2 lbzip2 xz pixz zstd pzstd zstdmt lz4 brotli")
# Commands of the client itself; elsewhere in a statement these are names.
_MYSQL_RUNS = r"(?i:(?:^(?:-\w*e|--execute=)?|[;\n])\s*(?:system|pager)\s+\S)"
# What the agent, Ralph or a person's session runs in, as processes are called.
_HOSTS = names(
    "python python3 python3.11 claude codex gemini opencode amp ralph bash zsh fish tmux screen"
    " sshd systemd init dockerd containerd Xorg gnome-shell login"
)
_FINDS = ["-u", "-U", "-s", "--signal", "--uid", "--euid", "-n", "-d", "-F", "--delimiter"]
_SERVICE = names(
    "stop disable mask restart kill enable start reload daemon-reload edit link set-default"
)


def _changes_kernel(call: Call) -> bool:
    if call.name == "sysctl" and not call.has("-w", "-p", "--write", "--load", "--system"):
        return any("=" in word for word in call.args)
    return not call.words or any(word not in _SHOWS for word in call.words)


def _database_shell(call: Call) -> bool:
    marks = r"\.shell|\.system|\\!"
    if call.name in ("mysql", "mariadb"):
        marks = f"{marks}|{_MYSQL_RUNS}"
    return any(re.search(marks, text) for text in call.texts)


def _foreign_code(call: Call) -> bool:
    """Code in a language that nobody here reads, and that stands in no file."""
    sent = call.state.stdin is not None and call.args[:1] in ([], ["-"], ["/dev/stdin"])
    if call.name in ("tclsh", "wish"):
        return sent
    words = [word.lower() for word in call.words if word[:1] == "-"]
    told = [w for w in words if w in ("-e", "-ec") or w.startswith(("-c", "--c", "-en"))]
    return sent or any(not word.startswith("-conf") for word in told)


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
    turned = call.given("--inverse --terminal -v -t -g -G/uUsnd")
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


def _everybody(call: Call) -> bool:
    """`kill -1` means every process, and 1 is the first of all."""
    words = call.words[1:] if call.words[:1] and call.words[0][:1] == "-" else call.words
    if call.words[:1] in (["-s"], ["-n"], ["--signal"]):
        words = call.words[2:]
    return any(word in ("-1", "1", "0") for word in words) or call.words == ["-1"]


RULES = rules(
    """\
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
""",
    *(_changes_kernel, _foreign_code, _database_shell, _everybody),
    packs=lambda c: c.has_letter("SRUirPe"),  # they speak in letters
    _sets=lambda c: any(word.startswith("set") for word in c.args),
    _base=lambda c: c.value("-n", "--name") == "base",
    empties=lambda c: c.says("empty trash"),
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
    unsets_guard=lambda c: not STEERING.isdisjoint(c.args),
    debugs=lambda c: c.begins("shell ", "!", "python "),
    spawned=lambda c: any("spawn" in text or "exec" in text for text in c.texts),
    ssh_command=lambda c: c.says("proxycommand", "localcommand"),
    make_runs=lambda c: c.begins("SHELL=", "--eval"),
    in_background=lambda c: c.state.background,
    # A line that begins with `!` runs a command in many programs.
    escapes=lambda c: c.begins("+!", "+:!") or re.search(r"(?m)^\s*!", c.state.stdin or ""),
    # `tar -I PROGRAM`: the usual ones are fine.
    packer=lambda c: any(
        word not in _PACKERS
        for program in (*c.clustered("I", "fC"), *c.values("--use-compress-program"))
        for word in program.split()[:1]
    ),
    make_from_input=lambda c: bool(
        re.fullmatch(r"-|/dev/stdin|/dev/fd/.*", c.value("-f", "--file", "--makefile") or "")
    ),
    shuts_down=lambda c: c.says("system events") and c.says("shut down", "restart", "sleep"),
    of_ralph=lambda c: c.mentions("ralph"),
    # `pkill -P PID` ends the children of one process only.
    not_of_one=lambda c: c.value("-P", "--parent") is None,
    ends_hosts=lambda c: c.value("-P", "--parent") is None and finds_hosts(c),
    looked_up=lambda c: c.mentions(FOUND),
    parent=lambda c: c.mentions(PARENT),
    # A port is one's own, a directory is everybody's.
    whatever_uses=lambda c: not all(re.fullmatch(r"\d+/(?:tcp|udp)", word) for word in c.args),
    changes_service=lambda c: not _SERVICE.isdisjoint(c.args),
)
