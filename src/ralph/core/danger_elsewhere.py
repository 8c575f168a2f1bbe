"""Whether a command works on what lies outside the project: there the level `strict` holds."""

from ralph.core.danger_paths import FREE_PLACE, ROOT
from ralph.core.danger_rule import Call
from ralph.core.shell_text import names

_COMPOSES = names("docker docker-compose podman podman-compose nerdctl")
_OTHER_MACHINE = names("DOCKER_HOST DOCKER_CONTEXT CONTAINER_HOST")


def is_elsewhere(call: Call) -> bool:
    """A repository outside the project, of which nothing was kept, or another's containers."""
    if call.name == "git":
        return _is_outside(call, ("GIT_DIR", "GIT_WORK_TREE"), ("-C", "--git-dir", "--work-tree"))
    if call.name in _COMPOSES:
        own = own_call(call)
        far = any(call.state.value(name) for name in _OTHER_MACHINE)
        far = far or own.has("--context", "--host", "-H")
        return far or _is_outside(own, ("COMPOSE_FILE",), ("-f", "--file", "--project-directory"))
    return False


def own_call(call: Call) -> Call:
    """A container's command without the words that are for the program in the container."""
    ends = [place for place, word in enumerate(call.words) if word in ("exec", "run")]
    words = call.words[: ends[0] + 1] if ends else call.words
    return Call([call.name, *words], call.state, call.places)


def _is_outside(call: Call, variables: tuple[str, ...], flags: tuple[str, ...]) -> bool:
    named = [call.state.value(name) or "" for name in variables]
    named += [*call.values(*flags), *_worktrees(call), "."]
    free = (FREE_PLACE, ROOT)
    return any(call.places.kind(path, call.state.cwd) not in free for path in filter(None, named))


def _worktrees(call: Call) -> list[str]:
    """`git -c core.worktree=PATH`"""
    words = [word for word in call.words if word.lower().startswith("core.worktree=")]
    return [word.partition("=")[2] for word in words]
