"""Every plot of a run that has something to say."""

from ralph.ui.paper.plots.gantt import gantt_plot
from ralph.ui.paper.plots.progress import burndown_plot, reviews_plot
from ralph.ui.paper.plots.spending import money_plot, tokens_plot
from ralph.ui.paper.plots.svg import Plot
from ralph.ui.paper.plots.tools import tools_plot
from ralph.ui.paper.plots.turns import turns_plot
from ralph.ui.paper.words import readable
from ralph.ui.recap.values import Recap

_PLOTS = (
    *(gantt_plot, burndown_plot, money_plot, turns_plot),
    *(reviews_plot, tokens_plot, tools_plot),
)


def plots_of(recap: Recap) -> list[Plot]:
    """In the order of a page."""
    shown = readable(recap)
    drawn = (draw(shown) for draw in _PLOTS)
    return [plot for plot in drawn if plot is not None]
