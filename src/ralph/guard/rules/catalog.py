"""All rules, by the name of the command they are about, and what holds for every command."""

from ralph.guard.follow.wrappers import only_runs
from ralph.guard.rules import (
    containers,
    databases,
    editors,
    files,
    network,
    packages,
    processes,
    sending,
    services,
    system,
    targets,
)
from ralph.guard.rules.containers import own_call
from ralph.guard.rules.files import judge_change
from ralph.guard.rules.git import local, remote, settings
from ralph.guard.rules.git.keys import judge_for_git
from ralph.guard.rules.loaders import judge_loading
from ralph.guard.rules.rule import STANDARD, Call, Refused, Rule
from ralph.guard.rules.secrets import files as danger_secrets
from ralph.guard.rules.secrets import readers
from ralph.guard.rules.secrets.files import judge_environment_file, judge_reading
from ralph.guard.shell.text import names, plain

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.guard.follow.state import Judge, State
    from ralph.guard.paths import Places

# In this order they are asked: the first that refuses gives the reason.
_FAMILIES = (
    *(system, processes, remote, local, settings),
    *(network, danger_secrets, sending, files, targets),
    *(editors, containers, packages, services, databases),
    readers,
)
_BY_PROGRAM: dict[str, list[Rule]] = {}
for _family in _FAMILIES:
    for _rule in _family.RULES:
        for _program in _rule.programs:
            _BY_PROGRAM.setdefault(_program, []).append(_rule)
_HISTORY = names("HISTFILE HISTSIZE HISTFILESIZE HISTCONTROL HISTIGNORE")
_COMMANDS = names(
    "EDITOR VISUAL PAGER GIT_PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR BROWSER GIT_SSH_COMMAND GIT_SSH"
    " GIT_ASKPASS SSH_ASKPASS GIT_EXTERNAL_DIFF MANPAGER LESSOPEN"
)
_HOOK_SWITCHES = names("HUSKY HUSKY_SKIP_HOOKS LEFTHOOK PRE_COMMIT_ALLOW_NO_CONFIG")
_ADDRESSES = names("HOST BIND BIND_ADDR BIND_ADDRESS ADDRESS LISTEN SERVER_HOST FLASK_RUN_HOST")
_COMPOSES = names("docker docker-compose podman podman-compose nerdctl")
_OTHER_MACHINE = names("DOCKER_HOST DOCKER_CONTEXT CONTAINER_HOST")


def judge_call(call: Call) -> None:
    """Refuse a command that a rule is about; `git push --help` only asks."""
    *words, last = call.words or [""]
    plain_words = all(word.replace("-", "x").isalpha() and word[0] != "-" for word in words)
    if call.words == ["--version"] or (last == "--help" and plain_words):
        return
    everywhere = () if only_runs(call) else _BY_PROGRAM["*"]
    elsewhere = not call.strict and _is_elsewhere(call)
    for rule in (*_BY_PROGRAM.get(call.name, ()), *everywhere):
        if rule.level != STANDARD and not (call.strict or elsewhere):
            continue
        try:
            holds = rule.holds(call)
        except Refused as refused:  # some tests refuse by themselves, with more to say
            refused.refusal.rule = refused.refusal.rule or rule.titled(call)
            raise
        if holds and elsewhere and rule.level != STANDARD:
            why = f"{rule.why} (outside the project, where Ralph keeps nothing)"
            told = Refused(rule.category, why, rule.titled(call))
            told.refusal.command = call.shown  # the words alone do not say where
            raise told
        if holds:
            raise Refused(rule.category, rule.why, rule.titled(call), rule.level)


def _is_elsewhere(call: Call) -> bool:
    """A repository outside the project, of which nothing was kept, or another's containers: there
    the level `strict` holds."""
    if call.name == "git":
        trees = [word for word in call.words if word.lower().startswith("core.worktree=")]
        named = [call.state.value(name) or "" for name in ("GIT_DIR", "GIT_WORK_TREE")]
        named += call.values("-C", "--git-dir", "--work-tree")
        named += [word.partition("=")[2] for word in trees]
    elif call.name in _COMPOSES:
        own = own_call(call)
        far = any(call.state.value(name) for name in _OTHER_MACHINE)
        if far or own.has("--context", "--host", "-H"):
            return True
        named = [call.state.value("COMPOSE_FILE") or ""]
        named += own.values("-f", "--file", "--project-directory")
    else:
        return False
    return not all(call.is_ours(path) for path in (*named, ".") if path)


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
        raise Refused("shell-history", f"{name} turns the shell's history off")
    if name in ("RALPH_GUARD", "RALPH_RUN", "RALPH_START"):
        raise Refused("guard", f"{name} steers the guard")
    judge_loading(name, text)
    judge_for_git(name, text, state)
    if name.startswith("PS") and name[2:].isdecimal() and ("$(" in text or "`" in text):
        raise Refused("evasion", f"{name} runs a command whenever it is shown")
    if name in _HOOK_SWITCHES:
        raise Refused("git-history", f"{name} skips the checks of the repository's hooks")
    if judge.where.strict and name in _ADDRESSES and text.startswith(("0.0.0.0", "::")):  # noqa: S104
        raise Refused("exposure", f"{name}={text} serves every network; use 127.0.0.1")
    if name in _COMMANDS and text:
        if not plain(text):
            raise Refused("evasion", f"nobody can tell which command {name} names")
        judge.text(text, state.copy())
