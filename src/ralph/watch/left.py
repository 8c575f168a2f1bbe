"""The end of a watch."""

from ralph.kernel.value import value
from ralph.watch.model import View


@value
class Left:
    """The last view of the run, whether it was left by Ctrl+C, and whether its end was told."""

    view: View | None = None
    interrupted: bool = False
    told: bool = False
