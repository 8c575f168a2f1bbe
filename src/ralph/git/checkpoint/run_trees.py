"""The repository of a run and what it would commit, as the run's directory remembers them."""

import json
import os
from collections.abc import Mapping

from ralph.errors import ConfigError
from ralph.git.checkpoint.trees import MEMO, PINNED, GitTrees
from ralph.git.repository import Repository, RepositoryPlace, find

_MOST_RUNS = 20  # that are asked what their gates made


def repository_of_run(workspace: str, environ: Mapping[str, str], run_dir: str) -> Repository:
    """The repository as it was when the run began, also for a run that goes on."""
    try:
        with open(os.path.join(run_dir, PINNED), encoding="utf-8") as file:
            place = RepositoryPlace.of(file.read())
    except FileNotFoundError:
        place = find(os.path.realpath(workspace), environ, os.path.abspath(run_dir))
    return Repository(place, environ)


def trees_of_run(workspace: str, environ: Mapping[str, str], run_dir: str) -> GitTrees | None:
    """The trees that a run would commit; None where there is no repository to commit to."""
    try:
        repository = repository_of_run(workspace, environ, run_dir)
    except ConfigError:
        return None
    return GitTrees(repository, workspace, run_dir)


def made_by_checks(runs: str) -> frozenset[str]:
    """Paths that gates of the last runs made and nobody has committed, by those runs' memory."""
    try:
        names = sorted(os.listdir(runs), reverse=True)[:_MOST_RUNS]
    except OSError:
        return frozenset()
    found: set[str] = set()
    for name in names:
        try:
            with open(os.path.join(runs, name, MEMO), encoding="utf-8") as file:
                found.update(json.load(file)["left_out"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # of a run that proved nothing, or that is being written
    return frozenset(found)
