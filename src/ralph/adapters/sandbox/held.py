"""What is held for review when a sandbox is kept: what would run on the host by itself later, and
links that lead out of the project."""

import posixpath
import re

# A path, or anything below it, in the project or in a repository within it.
_RUNS_BY_ITSELF = (
    (r"\.git/(?:modules/.+/)?hooks", "git runs it"),
    (r"\.git/(?:modules/.+/|worktrees/[^/]+/)?config(?:\.worktree)?", "git obeys it"),
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


def held_because(path: str) -> str:
    """Why a changed path is held; "" if it is not."""
    return next((why for rule, why in _RULES if rule.fullmatch(path)), "")


def leads_out(path: str, target: str, project: str) -> bool:
    """Whether a link at this path of the project leads out of it."""
    if posixpath.isabs(target):
        place = posixpath.normpath(target)
        return place != project and not place.startswith(posixpath.join(project, ""))
    steps = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return steps == ".." or steps.startswith("../")
