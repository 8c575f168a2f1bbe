"""All rules, by the name of the command they are about, and what holds for every command."""

from ralph.core import (
    danger_archives,
    danger_containers,
    danger_databases,
    danger_editors,
    danger_files,
    danger_git,
    danger_git_local,
    danger_git_settings,
    danger_network,
    danger_packages,
    danger_processes,
    danger_readers,
    danger_secrets,
    danger_sending,
    danger_services,
    danger_system,
    danger_targets,
)
from ralph.core.danger_elsewhere import is_elsewhere
from ralph.core.danger_files import judge_change
from ralph.core.danger_git_keys import judge_for_git
from ralph.core.danger_inner import only_runs
from ralph.core.danger_loaders import judge_loading
from ralph.core.danger_rule import EVASION, EXPOSURE, GIT, GUARD, HISTORY, STANDARD, Refused, Rule
from ralph.core.danger_secrets import judge_environment_file, judge_reading
from ralph.core.shell_text import plain

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.core.danger_paths import Places
    from ralph.core.danger_rule import Call
    from ralph.core.danger_run import Judge
    from ralph.core.danger_state import State

ALL = (
    *danger_system.RULES,
    *danger_processes.RULES,
    *danger_git.RULES,
    *danger_git_local.RULES,
    *danger_git_settings.RULES,
    *danger_network.RULES,
    *danger_secrets.RULES,
    *danger_sending.RULES,
    *danger_files.RULES,
    *danger_targets.RULES,
    *danger_archives.RULES,
    *danger_editors.RULES,
    *danger_containers.RULES,
    *danger_packages.RULES,
    *danger_services.RULES,
    *danger_databases.RULES,
    *danger_readers.RULES,
)
_HISTORY = frozenset({"HISTFILE", "HISTSIZE", "HISTFILESIZE", "HISTCONTROL", "HISTIGNORE"})
_COMMANDS = frozenset(
    {"EDITOR", "VISUAL", "PAGER", "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "BROWSER"}
)
_COMMANDS |= {
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "GIT_EXTERNAL_DIFF",
    "MANPAGER",
    "LESSOPEN",
}
_HOOK_SWITCHES = frozenset({"HUSKY", "HUSKY_SKIP_HOOKS", "LEFTHOOK", "PRE_COMMIT_ALLOW_NO_CONFIG"})
_ADDRESSES = frozenset(
    {
        "HOST",
        "BIND",
        "BIND_ADDR",
        "BIND_ADDRESS",
        "ADDRESS",
        "LISTEN",
        "SERVER_HOST",
        "FLASK_RUN_HOST",
    }
)


def _by_name() -> dict[str, list[Rule]]:
    table: dict[str, list[Rule]] = {}
    for rule in ALL:
        for name in rule.names:
            table.setdefault(name, []).append(rule)
    return table


_TABLE = _by_name()


def _only_asks(words: list[str]) -> bool:
    """`git push --help`"""
    plain_words = all(word.replace("-", "x").isalpha() and word[0] != "-" for word in words[:-1])
    return words == ["--version"] or (words[-1:] == ["--help"] and plain_words)


def judge_call(call: "Call") -> None:
    """Refuse a command that a rule is about."""
    if _only_asks(call.words):
        return
    everywhere = () if only_runs(call) else _TABLE["*"]
    elsewhere = not call.strict and is_elsewhere(call)
    for rule in (*_TABLE.get(call.name, ()), *everywhere):
        if rule.level == STANDARD or call.strict:
            _ask(rule, call)
        elif elsewhere and rule.holds(call):
            why = f"{rule.why} (outside the project, where Ralph keeps nothing)"
            refused = Refused(rule.category, why, rule.titled(call))
            refused.refusal.command = call.shown  # the words alone do not say where
            raise refused


def _ask(rule: Rule, call: "Call") -> None:
    """Refuse what the rule is about; some of its tests refuse by themselves, with more to say."""
    try:
        holds = rule.holds(call)
    except Refused as refused:
        refused.refusal.rule = refused.refusal.rule or rule.titled(call)
        raise
    if holds:
        raise Refused(rule.category, rule.why, rule.titled(call), rule.level)


def judge_redirect(op: str, path: str, places: "Places", state: "State") -> None:
    """Refuse to read credentials, and to write where nothing may be changed."""
    if op == "<":
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            judge_change(path, places, state.cwd, "reads")
        judge_reading(path, places, state.cwd)
        judge_environment_file(path)
    else:
        judge_change(path, places, state.cwd, "writes to")


def judge_assignment(name: str, text: str, judge: "Judge", state: "State") -> None:
    """Refuse variables that steer the history, the guard or what is run."""
    if name in _HISTORY:
        raise Refused(HISTORY, f"{name} turns the shell's history off")
    if name in ("RALPH_GUARD", "RALPH_RUN", "RALPH_START"):
        raise Refused(GUARD, f"{name} steers the guard")
    judge_loading(name, text)
    judge_for_git(name, text, state)
    if name.startswith("PS") and name[2:].isdecimal() and ("$(" in text or "`" in text):
        raise Refused(EVASION, f"{name} runs a command whenever it is shown")
    if name in _HOOK_SWITCHES:
        raise Refused(GIT, f"{name} skips the checks of the repository's hooks")
    if judge.where.strict and name in _ADDRESSES and text.startswith(("0.0.0.0", "::")):  # noqa: S104
        raise Refused(EXPOSURE, f"{name}={text} serves every network; use 127.0.0.1")
    if name in _COMMANDS and text:
        if not plain(text):
            raise Refused(EVASION, f"nobody can tell which command {name} names")
        judge.text(text, state.copy())
