"""What is held for review when a sandbox is kept: what would run on the host by itself later, and
links that lead out of the project."""

import posixpath
import re

_PART = r"\.git/(?:(?:modules|worktrees)/(?:.+/)?)?"  # a repository, and those that it keeps

# A path, or anything below it, in the project or in a repository within it.
_RUNS_BY_ITSELF = (
    (rf"{_PART}(?:hooks|rebase-merge/git-rebase-todo)", "git runs it"),
    (rf"{_PART}(?:config(?:\.worktree)?|commondir|gitdir)", "git obeys it"),
    (r"\.husky|\.pre-commit-config\.ya?ml|\.?lefthook[^/]*\.ya?ml", "git runs it"),
    (r"\.claude/settings[^/]*|\.mcp\.json", "Claude Code obeys it"),
    (r"\.envrc", "direnv runs it"),
    (r"\.ralph/settings[^/]*", "Ralph obeys it"),
    (r"\.(?:github|gitea|forgejo)/(?:workflows|actions)", "CI runs it"),
    (r"\.gitlab-ci\.ya?ml|\.gitlab/ci", "CI runs it"),
    (r"\.(?:circleci|buildkite|woodpecker|semaphore|teamcity)", "CI runs it"),
    (r"\.(?:travis|drone|appveyor|cirrus|woodpecker)\.ya?ml", "CI runs it"),
    (r"(?:azure-pipelines|bitbucket-pipelines|appveyor|buildspec|cloudbuild)\.ya?ml", "CI runs it"),
    (r"Jenkinsfile[^/]*", "CI runs it"),
)
_RULES = tuple(
    (re.compile(rf"(?:.*/)?(?:{pattern})(?:/.*)?", re.DOTALL | re.IGNORECASE), why)
    for pattern, why in _RUNS_BY_ITSELF
)
# What such a path may go on with, where a link takes the place of a directory.
_TAILS = ("config", "hooks", "settings.json", "workflows", "actions", "ci")


def held_because(path: str) -> str:
    """Why a changed path is held; "" if it is not."""
    return next((why for rule, why in _RULES if rule.fullmatch(path)), "")


def stands_for(path: str) -> str:
    """Why a link at this path is held, wherever it leads; "" if it is not: it would give other
    names to what is held."""
    return next((why for tail in _TAILS if (why := held_because(f"{path}/{tail}"))), "")


def leads_out(path: str, target: str, project: str) -> bool:
    """Whether a link at this path of the project leads out of it."""
    if posixpath.isabs(target):
        place = posixpath.normpath(target)
        return place != project and not place.startswith(posixpath.join(project, ""))
    steps = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return steps == ".." or steps.startswith("../")
