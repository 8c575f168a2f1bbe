"""Facts for a recap that no journal tells. The caller knows them, or not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from ralph.journal.forecast import Forecast
from ralph.kernel.facts import Started
from ralph.kernel.state import RunState
from ralph.kernel.tasks.task import Task
from ralph.kernel.value import value

Likely = Callable[[Started, RunState, Sequence[RunState]], Forecast | None]


@value
class Beside:
    """Any of it may be left out: the recap is poorer then, but still right."""

    asked: str = ""  # what the run was to do, by its kept plan
    branch: str = ""  # that it made for its work
    rules: Mapping[str, str] = field(default_factory=dict)  # by name, how each is explained
    tasks: Callable[[Started], tuple[Task, ...]] = lambda _: ()  # of its list, as that is now
    likely: Likely = lambda *_: None  # what is left of it
    environ: Mapping[str, str] = field(default_factory=dict)  # where git is
