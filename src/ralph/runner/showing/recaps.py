"""Everything that a recap shows and no journal tells, from the run's kept plan and its loop."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import Any

from ralph.errors import RalphError
from ralph.journal.runs import NONSENSE, Run
from ralph.kernel.facts import Started
from ralph.kernel.tasks.task import Task
from ralph.runner.kept import kept_plan
from ralph.runner.loops import LOOPS
from ralph.runner.plan import Loop, loop_named
from ralph.runner.showing.forecasts import Forecasts
from ralph.runner.showing.ladders import policies, words_by_name
from ralph.settings.explain import secrets_in
from ralph.settings.load import combine
from ralph.settings.source import Layer
from ralph.text.redact import know
from ralph.ui.recap.beside import Beside


def beside_of(run: Run, environ: Mapping[str, str]) -> Beside:
    """Everything that is known of a run, for `ui.recap.gather`. What cannot be read is left out."""
    kept = kept_plan((run.lead or run).directory)
    if kept is None or kept["loop"] not in LOOPS:
        return Beside(rules=_rules(*LOOPS), environ=environ)
    _know_secrets(kept["layers"])
    loop, work = loop_named(kept["loop"]), kept["work"]

    def tasks(started: Started) -> tuple[Task, ...]:
        try:
            return loop.tasks(work, started.workspace)
        except (OSError, RalphError, LookupError, *NONSENSE):  # a list or a plan of another time
            return ()

    asked, rules = asked_of(loop, work), _rules(kept["loop"])
    return Beside(asked, kept["branch"], rules, tasks, partial(Forecasts(), run), environ)


def asked_of(loop: Loop | None, work: Mapping[str, Any]) -> str:
    """A run's work by `loop_of`: its prompt, or words for its tasks; "" where nobody knows."""
    try:
        return str(work.get("text") or loop.about(work)) if loop else ""
    except (LookupError, *NONSENSE):
        return ""


def _know_secrets(layers: Iterable[Mapping[str, Any]]) -> None:
    """Take the secrets of a run's settings out of what is shown: git kept them as they were."""
    with suppress(RalphError, *NONSENSE):  # of another version
        know(secrets_in({}, combine([Layer("", dict(each)) for each in layers]).settings))


@cache
def _rules(*loops: str) -> Mapping[str, str]:
    """The rules of these loops in words: settings change their numbers, and no words."""
    return words_by_name(policies(combine([]), loops))
