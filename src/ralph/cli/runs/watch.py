"""`ralph watch`: looks at a run, and steers it, without ending it."""

import os

from ralph.cli.base import command
from ralph.cli.params import current_directory, in_directory, looks, option, print_lines, the_run
from ralph.files.state_dir import project_dir, state_root
from ralph.journal.runs import Run, all_runs, find_run, runs_of


@command()
@the_run
@option("--plain", "Only a few lines at the bottom, below the log.", "plainly")
@looks
@in_directory
def watch(run: str | None, *, plainly: bool, emoji: bool | None, color: bool | None) -> int:
    """Watch a run: its workers, gates, money and log; answer, pause, stop, leave a note.

    Without RUN: the run that is going on in this directory, else the runs of this machine. Leaving
    (q, or Ctrl+C) never changes the run. In a run, ? shows the keys.

    Examples:
      ralph watch               the run of this directory, or the list
      ralph watch 3f2a          a run by the last letters of its id
      ralph watch --plain       without the extra `watch`, and for slow connections

    RUN is a run's id or any part of it that only one run has.
    Exit codes: 0, 2 no such run or no terminal, 130 after Ctrl+C.
    """
    from ralph.watch import front

    root = state_root(os.environ)
    front.refuse_no_terminal(" ".join(filter(None, ("Line by line: ralph logs -f", run))))
    found = _found(root, run)
    if found is None and not all_runs(root):
        print_lines(["There are no runs yet. Start one: ralph run --watch -p 'what to do'"])
        return 0
    return front.watch(found, {"emoji": emoji, "color": color}, plainly=plainly)


def _found(root: str, run: str | None) -> Run | None:
    """The run that is meant; None for a look at all of them."""
    here = current_directory()
    if run is not None:
        return find_run(root, here, run, "watch", workers=True)
    return next((each for each in runs_of(project_dir(root, here)) if each.live), None)
