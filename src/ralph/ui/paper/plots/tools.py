"""Tool calls by kind, with those that failed."""

from ralph.text.words import counted, number
from ralph.ui.paper.markup import Markup, joined
from ralph.ui.paper.plots.svg import CHARACTER, WIDTH, Plot, Scale, box, label, legend, picture
from ralph.ui.paper.words import cut
from ralph.ui.recap.values import Recap

_ROW = 23.0
_MOST_TOOLS = 10
_NAME = 18  # characters


def tools_plot(recap: Recap) -> Plot | None:
    """A bar for each tool, those that were called most first."""
    tools = sorted(
        ((name, max(0, calls), max(0, failed)) for name, calls, failed in recap.tools),
        key=lambda tool: -tool[1],
    )
    calls, failed = sum(tool[1] for tool in tools), sum(tool[2] for tool in tools)
    if len(tools) < 2 or not calls:
        return None
    if len(tools) > _MOST_TOOLS:
        rest = tools[_MOST_TOOLS - 1 :]
        others = (f"{len(rest)} others", sum(t[1] for t in rest), sum(t[2] for t in rest))
        tools = [*tools[: _MOST_TOOLS - 1], others]
    left = 12 + CHARACTER * max(len(cut(name, _NAME)) for name, _, _ in tools)
    x = Scale(0.0, max(tool[1] for tool in tools), left, WIDTH - 84)
    gist = f"{counted(calls, 'tool call')}, {failed or 'none'} with an error."
    kinds = [("agent", "calls"), ("bad", "with an error")][: 2 if failed else 1]
    inner = joined(_row(tool, 24 + _ROW * place, x) for place, tool in enumerate(tools))
    svg = picture(gist, legend(kinds, left), inner, height=28 + _ROW * len(tools))
    return Plot("tools", "Tool calls", gist, svg, ("tool", "calls", "with an error"), tuple(tools))


def _row(tool: tuple[str, int, int], y: float, x: Scale) -> Markup:
    name, calls, failed = tool
    hint = f"{name}: {counted(calls, 'call')}, {failed} with an error"
    bad = x(failed) - x(0)
    width = x(calls) - x(0)
    words = f"{number(calls)}, {failed} failed" if failed else number(calls)
    return joined(
        (
            label(x.start - 8, y + 12, cut(name, _NAME), "name", "end"),
            box((x.start, y + 2), (max(2.0, width), 14), "agent", hint),
            box((x.start, y + 2), (min(bad, width), 14), "bad", hint) if failed else None,
            label(x(calls) + 6, y + 13, words, "tick"),
        )
    )
