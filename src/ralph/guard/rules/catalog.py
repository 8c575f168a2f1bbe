"""All rules, by the name of the command they are about, and what holds for every command."""

from ralph.guard.follow.state import State
from ralph.guard.follow.wrappers import only_runs
from ralph.guard.rules import containers, databases, files, git, network, packages, secrets, system
from ralph.guard.rules.containers import own_call
from ralph.guard.rules.files import judge_change
from ralph.guard.rules.rule import STANDARD, Call, Refused, Rule
from ralph.guard.rules.secrets import judge_environment_file, judge_reading
from ralph.guard.shell.text import names

# In this order they are asked: the first that refuses gives the reason.
_FAMILIES = (
    *(system.RULES, git.RULES, network.RULES, secrets.RULES),
    *(files.RULES, containers.RULES, packages.RULES, databases.RULES),
    secrets.LAST_RULES,
)
_BY_PROGRAM: dict[str, list[Rule]] = {}
for _rule in (rule for family in _FAMILIES for rule in family):
    for _program in _rule.programs:
        _BY_PROGRAM.setdefault(_program, []).append(_rule)
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
            refused.rule = refused.rule or rule.titled(call)
            raise
        if holds and elsewhere and rule.level != STANDARD:
            why = f"{rule.why} (outside the project, where Ralph keeps nothing)"
            told = Refused(rule.category, why, rule.titled(call))
            told.command = call.shown  # the words alone do not say where
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


def judge_redirect(op: str, path: str, state: State) -> None:
    """Refuse to read credentials, and to write where nothing may be changed."""
    if op == "<":
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            judge_change(path, state, "reads")
        judge_reading(path, state)
        judge_environment_file(path)
    else:
        judge_change(path, state, "writes to")
