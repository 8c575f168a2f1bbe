"""Settings of git that run a command, or lead a push elsewhere: by `git -c`, by `git config`, and
by variables of the environment."""

from ralph.guard.rules.rule import Refused
from ralph.guard.shell.text import names

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.guard.follow.state import State

# Keys whose value is a command, or a file with more settings; `*` is somebody's name.
_RUN = (
    *("core.pager", "core.editor", "core.sshcommand", "core.fsmonitor", "core.askpass"),
    *("core.gitproxy", "core.alternaterefscommand", "sequence.editor", "diff.external"),
    *("credential.helper", "credential.*.helper", "gpg.program", "gpg.*.program", "pager.*"),
    *("filter.*.clean", "filter.*.smudge", "filter.*.process", "diff.*.textconv", "diff.*.command"),
    *("merge.*.driver", "mergetool.*.cmd", "mergetool.*.path", "difftool.*.cmd", "difftool.*.path"),
    *("interactive.difffilter", "uploadpack.packobjectshook", "sendemail.smtpserver"),
    *("sendemail.sendmailcmd", "remote.*.uploadpack", "remote.*.receivepack", "remote.*.vcs"),
    *("trailer.*.command", "trailer.*.cmd", "browser.*.cmd", "man.*.cmd", "init.templatedir"),
    *("include.path", "includeif.*.path"),
)
_HARMLESS = names("cat less true false : vi vim nano store cache delta 0 1 yes no on off")
_FAMILIES = frozenset(key.partition(".")[0] for key in _RUN)


def runs(key: str, value: str) -> bool:
    """True if a setting makes git run a command, other than one of the usual ones."""
    key = key.lower()
    if value[:1] == "!":
        return True
    if key.partition(".")[0] not in _FAMILIES or not value or value in _HARMLESS:
        return False
    if key.startswith("filter.lfs.") and value.startswith("git-lfs "):
        return False
    from fnmatch import fnmatchcase

    return any(fnmatchcase(key, pattern) for pattern in _RUN)


def forces(key: str, value: str) -> bool:
    """True if it makes every push a forced one."""
    key = key.lower()
    return key.startswith("remote.") and (
        (key.endswith(".push") and value[:1] in ("+", ":")) or (key, value)[0].endswith(".mirror")
    )


def redirects(key: str) -> bool:
    """True if it changes where the repository is pushed to."""
    key = key.lower()
    remote = key.startswith("remote.") and key.endswith(("url", "mirror", "push"))
    return remote or (key.startswith("url.") and key.endswith("insteadof"))


def judge_for_git(name: str, text: str, state: "State") -> None:
    """Refuse variables by which git takes settings that would be refused after `-c`."""
    for key, value in _settings(name, text, state):
        if runs(key, value) or key.lower().startswith("alias."):
            raise Refused("evasion", f"git would run a command: {key}")
        if key.lower() == "core.hookspath":
            raise Refused("git-history", "it replaces the repository's hooks")
        if forces(key, value):
            raise Refused("force-push", f"{key} makes a push a forced one")


def _settings(name: str, text: str, state: "State") -> list[tuple[str, str]]:
    """`GIT_CONFIG_KEY_0` and `GIT_CONFIG_VALUE_0`, in any order, and `GIT_CONFIG_PARAMETERS`."""
    number = name.rpartition("_")[2]
    if name.startswith("GIT_CONFIG_KEY_"):
        return [(text, state.value(f"GIT_CONFIG_VALUE_{number}") or "")]
    if name.startswith("GIT_CONFIG_VALUE_"):
        return [(state.value(f"GIT_CONFIG_KEY_{number}") or "", text)]
    if name != "GIT_CONFIG_PARAMETERS":
        return []
    pairs = [piece.partition("=") for piece in text.replace("'='", "=").strip("'").split("' '")]
    return [(key, value) for key, _, value in pairs]
