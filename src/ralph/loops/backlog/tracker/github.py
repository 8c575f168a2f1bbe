"""Issues of GitHub that tasks come from, by its REST API."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from ralph.errors import ConfigError, ForgeError
from ralph.forge.port import MOST_ISSUES, Issues
from ralph.processes.child import Starter, start

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}/[A-Za-z0-9_.][A-Za-z0-9_.-]{0,99}")
_GONE = (404, 410)
Open = Callable[[], Issues]


def opener(workspace: str, environ: Mapping[str, str], *, starter: Starter = start) -> Open:
    """Opens GitHub when it is first wanted, with a token if there is one."""

    @cache
    def opened() -> Issues:
        from ralph.forge.commands import runner  # most runs need no forge
        from ralph.forge.found import open_github

        return open_github(environ, runner(workspace, environ, starter=starter))

    return opened


def listed(
    forge: Issues, repository: str, state: str, labels: Sequence[str], known: Iterable[str]
) -> tuple[str, str]:
    """The issues of a repository as JSON: those asked for, and the known ones that are no longer
    among them, since they may be closed. And what is missing."""
    if not _REPOSITORY.fullmatch(repository):
        remedy = "Say which: ralph tasks import github:owner/name"
        raise ConfigError(f"{repository!r:.80} is no repository", remedy)
    if state not in ("open", "closed", "all"):
        raise ConfigError(f"{state!r:.40} is no state of issues", "Say open, closed or all")
    found = json.loads(forge.issues(repository, tuple(labels), state))
    full = len(found) >= MOST_ISSUES
    there = {str(one["number"]) for one in found}
    for number in known:
        if number not in there:
            found += _known(forge, repository, number)
    words = f"issues behind the newest {MOST_ISSUES:,}, which are not read; narrow it by --label"
    return json.dumps(found), words if full else ""


def _known(forge: Issues, repository: str, number: str) -> list[object]:
    """The issue of that number, in a list; one that is gone, or has moved, is gone."""
    try:
        found = json.loads(forge.issue(repository, number))
    except ForgeError as error:
        if error.status in _GONE:
            return []
        raise
    return [one for one in found if str(one["number"]) == number]
