"""Tells where a path leads: into the project or the temporary directory, or out of them.

Paths are judged as text, from the command's directory; no file is looked at. A text may hold the
marks of `shell.text`: what is not known is never free.
"""

from ralph.guard.shell.text import FREE, fits, unknown

FREE_PLACE, ROOT, OUTSIDE = "free", "root", "outside"
UNKNOWN, DEVICE, SINK = "unknown", "device", "sink"
_SINKS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"})
# What steers the guard, the loop or an agent's host: beginnings of paths below the project.
_STEERS = (".ralph-active", ".ralph/", ".claude/settings", ".claude/hooks", ".codex/")
_STARTS = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zprofile"),
    *(".zshenv", ".zlogin", ".config/fish", ".config/autostart", ".config/systemd", ".config/git"),
    *(".xinitrc", ".xprofile", ".pam_environment", ".gitconfig", "Library/LaunchAgents"),
    *(".ssh/authorized_keys", ".ssh/config", ".ssh/rc"),
)
_SYSTEM_STARTS = (
    *("/etc/cron", "/var/spool/cron", "/etc/systemd", "/lib/systemd", "/usr/lib/systemd"),
    *("/etc/init", "/etc/rc", "/etc/profile", "/etc/bash", "/etc/ld.so", "/etc/pam", "/etc/zsh"),
    *("/etc/environment", "/etc/xdg/autostart", "/Library/Launch"),
)


class Where:
    """The world that a command is judged in; all are absolute paths, `temps` may be several.
    `aliases` are other names of directories, by links, with their real ones. `strict` refuses what
    would lose local history or end processes too; `branch` is what is checked out, if known."""

    def __init__(
        self,
        *,
        cwd: str,
        home: str,
        project: str,
        temps: tuple[str, ...],
        aliases: tuple[tuple[str, str], ...] = (),
        strict: bool = False,
        branch: str = "",
    ) -> None:
        self.strict, self.branch = strict, branch
        self.links = [(normal(a), normal(b)) for a, b in aliases if normal(a) != normal(b)]
        self.cwd, self.home = normal(cwd), normal(home)
        self.project, self.temps = normal(project), tuple(normal(temp) for temp in temps if temp)

    def copy(self) -> "Where":
        """The same world, to which a command may add links."""
        other = Where.__new__(Where)
        other.__dict__.update(self.__dict__, links=list(self.links))
        return other

    def absolute(self, path: str, cwd: str) -> str:
        """The whole path, without `.` and `..`; a mark for what is not known stays in it."""
        if path.startswith(FREE):
            return path
        whole = normal(path if path.startswith("/") else f"{cwd}/{path}")
        for alias, real in self.links:
            if whole == alias or is_below(whole, alias):
                return real + whole[len(alias) :]
        return whole

    def kind(self, path: str, cwd: str) -> str:
        """The kind of place that it is; FREE_PLACE may be changed."""
        if unknown(path) or (unknown(cwd) and not path.startswith(("/", FREE))):
            return UNKNOWN
        if path.startswith(FREE):
            return UNKNOWN if ".." in path.split("/") else FREE_PLACE
        whole = self.absolute(path, cwd)
        if whole in _SINKS or whole.startswith("/dev/fd/"):
            return SINK
        if whole.startswith(("/dev/", "/sys/", "/proc/")):
            return DEVICE
        project, home = self.project, self.home
        if whole == project or _is_all_of(whole, project):
            return ROOT
        # A project that holds the home directory, or everything, frees nothing.
        if is_below(whole, project) and not is_below(home, project) and project != "/":
            dotted = project == home and whole[len(home) + 1 :].startswith(".")
            return OUTSIDE if dotted else FREE_PLACE
        return FREE_PLACE if self._is_temporary(whole) else OUTSIDE

    def _is_temporary(self, whole: str) -> bool:
        """True if it is in a temporary directory, not around or beside a project or home there."""
        home, project, temps = self.home, self.project, self.temps
        if home not in ("/", *temps) and (whole == home or is_below(whole, home)):
            return False
        if any(is_below(own, whole) or _takes_in(whole, own) for own in (home, project)):
            return False
        beside = project.rpartition("/")[0]
        if any(is_below(beside, temp) for temp in temps) and is_below(whole, beside):
            return False
        return any(is_below(whole, temp) for temp in temps)

    def inner(self, whole: str) -> str:
        """The path below the project; empty if it is not there."""
        return whole[len(self.project) + 1 :] if is_below(whole, self.project) else ""

    def at_home(self, whole: str) -> str:
        """The path below the home directory; empty if it is not there."""
        return whole[len(self.home) + 1 :] if is_below(whole, self.home) else ""

    def steers(self, whole: str) -> bool:
        """True if it is a file that steers the guard or an agent's host."""
        inner = f"{self.inner(whole)}/"
        if "/.ralph-active/" in f"/{inner}":
            return True
        home = f"{self.at_home(whole)}/"
        return any(
            inner.startswith(s) or f"{s}/" == inner or home.startswith((".claude/settings", s[1:]))
            for s in _STEERS
        ) and not inner.startswith((".ralph/guardrail_", ".ralph/prompt"))

    def may_steer(self, whole: str) -> bool:
        """True if a pattern takes in what steers the guard or the repository."""
        inner = self.inner(whole)
        first = inner.partition("/")[0]
        if inner == ".claude":
            return True
        if first[:1] != "." or not any(c in first for c in "*?["):
            return False
        steering = (".ralph-active", ".ralph", ".claude", ".git")
        return any(fits(name, first) for name in steering)

    def starts_things(self, whole: str) -> bool:
        """True if what is written there is run later, by a login, a timer or git."""
        by_machine = "/.git/hooks" in whole or whole.startswith(_SYSTEM_STARTS)
        return by_machine or self.at_home(whole).startswith(_STARTS)


def normal(path: str) -> str:
    """The path without empty parts, `.` and `..`."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def is_below(path: str, directory: str) -> bool:
    """True if the path is in the directory, and not the directory itself."""
    return path != directory and path.startswith(directory.rstrip("/") + "/")


def _takes_in(whole: str, place: str) -> bool:
    """True if a pattern matches the place or a directory around it."""
    if not any(c in whole for c in "*?["):
        return False
    patterns, parts = whole.replace("[^", "[!").split("/"), place.split("/")
    return len(patterns) <= len(parts) and all(map(fits, parts, patterns))


def _is_all_of(whole: str, project: str) -> bool:
    """`*` and its like, right in the project: `*/*` and `[a-z]*` too."""
    if not is_below(whole, project):
        return False
    inner = whole[len(project) + 1 :]
    for letters in ("a-zA-Z0-9", "A-Za-z0-9", "a-zA-Z", "A-Za-z", "a-z", "A-Z"):
        inner = inner.replace(f"[{letters}]", "*")
    return not any(name.strip("*?[]!^.{},") for name in inner.split("/"))
