"""`python -m bench.fleet_plot FILE.svg`: how much sooner many workers are done, as a picture."""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.fleet import TASKS, TRAIN, WORKERS, Found, simulated
from ralph.ui.paper import plots
from ralph.ui.paper.markup import Markup, joined, tag
from ralph.ui.paper.plots.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Scale,
    grid,
    label,
    line,
    picture,
)

_MARKS = (0.0, 16.0, 32.0, 48.0, 64.0)
_BELOW, _BESIDE = 24.0, 144.0  # room for words
# The picture stands alone: it brings the colours that a page would give it.
_STYLE = """
:root { --panel: #ffffff; --ink: #1b1c1e; --soft: #5c6066; --line: #e2e2de; --accent: #4350c4;
  --good: #0b7a5e; --bad: #b0380a; --notice: #8a6100; }
@media (prefers-color-scheme: dark) { :root { --panel: #1a1c20; --ink: #e9e9e6; --soft: #a0a4ab;
  --line: #2e3138; --accent: #99a4ff; --good: #4cc3a0; --bad: #ff8f5e; --notice: #e0b34d; } }
.sheet { fill: var(--panel); }
.plot .ideal { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 2 4; }
.plot .alone { stroke: var(--bad); stroke-dasharray: 7 3; }
.plot .dot.alone, .plot .end.alone { fill: var(--bad); }
.plot .dot.alone, .plot .end.alone { stroke: var(--panel); stroke-dasharray: none; }
"""


def drawn(found: Mapping[int, Mapping[int, Found]]) -> Markup:
    """The speed-up by workers, for each length of a train."""
    x = Scale(0.0, 64.0, LEFT, WIDTH - RIGHT)
    y = Scale(0.0, 64.0, HEIGHT - BOTTOM, TOP)
    parts: list[Markup] = []
    told = []
    for train, runs in found.items():
        base, last = runs[1].seconds, runs[WORKERS[-1]]
        places = [(x(w), y(base / f.seconds)) for w, f in runs.items()]
        way = "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in places)
        class_ = "alone" if train == 1 else ""
        dots = (tag("circle", cx=px, cy=py, r=3.5, class_=f"dot {class_}") for px, py in places)
        parts += [tag("path", d=way, class_=f"line {class_}"), *dots]
        name = "merged one by one" if train == 1 else f"trains of up to {train}"
        figures = f"{base / last.seconds:.0f} x, {last.merges:.0f} an hour"
        beside = places[-1][0] + 10
        parts.append(label(beside, places[-1][1] + 1, name, f"end {class_}"))
        parts.append(label(beside, places[-1][1] + 16, figures, "tick"))
        told.append(f"{name}: {figures}")
    gist = f"{WORKERS[-1]} workers beside one: {'; '.join(told)}."
    width, height = WIDTH + _BESIDE, HEIGHT + _BELOW
    return picture(
        gist,
        tag("rect", class_="sheet", width=width, height=height, rx=6),
        grid(y, _MARKS, lambda mark: f"{mark:g} x" if mark else "0", WIDTH - RIGHT),
        joined(label(x(m), HEIGHT - 8, f"{m:g}", "tick", "middle") for m in (1.0, *WORKERS[3:])),
        label((LEFT + WIDTH - RIGHT) / 2, HEIGHT + 9, "workers", "tick", "middle"),
        line(x(0), y(0), x(64), y(64), "ideal"),
        label(x(64) + 10, y(64) + 4, "as many as workers", "tick"),
        *parts,
        width=width,
        height=height,
    )


def standing_alone(svg: Markup) -> str:
    """The drawing as a file: with its name space, and a style sheet of its own."""
    css = Path(plots.__file__).parent.with_name("plots.css").read_text("utf-8")
    style = Markup(f"<style>{css}{_STYLE}</style>")
    return svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1).replace(
        "</title>", f"</title>{style}", 1
    )


def main(words: list[str]) -> int:
    """Simulate, and write the picture."""
    if len(words) != 1:
        print("usage: python -m bench.fleet_plot FILE.svg", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="ralph-fleet-") as place:
        found = {
            train: {workers: simulated(place, TASKS, workers, train) for workers in WORKERS}
            for train in (TRAIN, 1)
        }
    Path(words[0]).write_text(standing_alone(drawn(found)) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
