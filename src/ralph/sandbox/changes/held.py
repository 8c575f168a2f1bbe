"""Paths held for review when a sandbox is kept: what would run on the host by itself later, and
links that lead out of the project."""

import re
from collections.abc import Callable
from itertools import dropwhile

_PART = r"\.git/(?:(?:modules|worktrees)/(?:.+/)?)?"  # a repository, and those that it keeps

# A path, or anything below it, in the project or in a repository within it.
_RUNS_BY_ITSELF = (
    (rf"{_PART}(?:hooks|rebase-merge/git-rebase-todo)", "git runs it"),
    (rf"{_PART}(?:config(?:\.worktree)?|commondir|gitdir)", "git obeys it"),
    (rf"{_PART}(?:info/(?:attributes|grafts)|refs/replace)", "git obeys it"),
    (rf"{_PART}objects/info/(?:http-)?alternates", "git reads objects from there"),
    (r"\.husky|\.pre-commit-config\.ya?ml|\.?lefthook[^/]*\.ya?ml", "git runs it"),
    (
        r"\.claude/(?:settings[^/]*|hooks|skills|commands|agents)|\.mcp\.json",
        "Claude Code obeys it",
    ),
    (r"\.codex", "Codex obeys it"),
    (r"\.gemini/settings[^/]*", "Gemini CLI obeys it"),
    (r"opencode\.jsonc?|\.opencode/(?:plugin[^/]*|opencode\.jsonc?)", "OpenCode obeys it"),
    (r"\.cursor/(?:mcp|hooks)\.json", "Cursor obeys it"),
    (r"\.amp/settings[^/]*", "Amp obeys it"),
    (r"\.vscode/tasks\.json|\.devcontainer(?:\.json)?", "an editor runs it"),
    (r"\.npmrc|\.yarnrc(?:\.ya?ml)?", "package managers obey it"),
    (r"\.envrc", "direnv runs it"),
    (r"\.ralph/settings[^/]*|\.ralph-active", "Ralph obeys it"),
    (r"\.(?:github|gitea|forgejo)/(?:workflows|actions)", "CI runs it"),
    (r"\.gitlab-ci\.ya?ml|\.gitlab/ci", "CI runs it"),
    (r"\.(?:circleci|buildkite|woodpecker|semaphore|teamcity|tekton)", "CI runs it"),
    (r"\.(?:travis|drone|appveyor|cirrus|woodpecker)\.ya?ml", "CI runs it"),
    (r"azure-pipelines[^/]*\.ya?ml", "CI runs it"),
    (r"(?:bitbucket-pipelines|appveyor|buildspec|cloudbuild)\.ya?ml", "CI runs it"),
    (r"Jenkinsfile[^/]*", "CI runs it"),
)
_RULES = tuple(
    (re.compile(rf"(?:.*/)?(?:{pattern})(?:/.*)?", re.DOTALL | re.IGNORECASE), why)
    for pattern, why in _RUNS_BY_ITSELF
)
# What such a path may go on with, where a link takes the place of a directory.
_TAILS = (
    *("config", "hooks", "settings.json", "workflows", "actions", "ci"),
    *("plugin", "mcp.json", "tasks.json", "attributes", "replace"),
    *("alternates", "info/alternates"),
)
_MOST_LINKS = 40  # as many as the kernel follows


def held_because(path: str) -> str:
    """The reason why a changed path is held, or ""."""
    return next((why for rule, why in _RULES if rule.fullmatch(path)), "")


def stands_for(path: str) -> str:
    """The reason why a link at this path is held, wherever it leads, or "": it would give other
    names to what is held."""
    return next((why for tail in _TAILS if (why := held_because(f"{path}/{tail}"))), "")


def leads_out(
    path: str, target: str, project: str, link: Callable[[str], str] = lambda _: ""
) -> bool:
    """True if a link at this path of the project leads out of it, or nobody can tell.

    `link` says where a link at another path leads; "" if there is none. A `..` behind a name leads
    wherever that name does, which may be a link tomorrow.
    """
    names = (step for step in target.split("/") if step not in ("", "."))
    if ".." in dropwhile(lambda step: step == "..", names):
        return True
    here, left = path.split("/")[:-1], target
    try:
        for _ in range(_MOST_LINKS):
            here, left = _followed(here, left, project, link)
            if not left:
                return False
    except (OSError, IndexError):
        pass
    return True


def _followed(
    here: list[str], target: str, project: str, link: Callable[[str], str]
) -> tuple[list[str], str]:
    """Go on from a directory to the next link: its directory, and what is left to follow.

    IndexError if that leads out.
    """
    steps = target.split("/")
    if target.startswith("/"):
        here, top = [], project.split("/")
        if steps[: len(top)] != top:
            raise IndexError(target)
        steps = steps[len(top) :]
    here = list(here)
    for number, step in enumerate(steps, 1):
        if step == "..":
            here.pop()
        elif step not in ("", "."):
            if found := link("/".join((*here, step))):
                return here, "/".join((found, *steps[number:]))
            here.append(step)
    return here, ""
