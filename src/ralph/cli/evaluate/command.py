"""`ralph eval`: agents, or settings, compared over a suite of tasks."""

import json
import os
import signal
import stat
import time
from typing import TYPE_CHECKING, Any

import click

from ralph.cli.base import command
from ralph.cli.evaluate.progress import Progress
from ralph.cli.params import (
    a_file,
    at_least,
    completed_by,
    in_directory,
    in_json,
    option,
    print_lines,
)
from ralph.errors import ConfigError, failing
from ralph.files.state_dir import state_root, write_atomically
from ralph.processes.signals import ending_by
from ralph.text.words import counted, money
from ralph.text.words import duration as lasting
from ralph.ui.style import Tone, aligned, style_here

if TYPE_CHECKING:
    from ralph.evaluation.conduct import Terms
    from ralph.evaluation.standings import Standings
    from ralph.evaluation.store import Evaluation
    from ralph.evaluation.suite import Suite
    from ralph.evaluation.trial import Site

_KINDS = {".md": "md", ".markdown": "md", ".json": "json"}  # by how a file's name ends


def _share(value: str) -> float:
    """A rate: 0.8, or 80%."""
    try:
        share = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise click.BadParameter(f"{value!r} is not a rate such as 0.8 or 80%.")
    return share


@command("eval")
@click.argument("suite", shell_complete=a_file)
@option(
    "--agent NAME",
    "Only this agent of the suite, or this command; repeat.",
    multiple=True,
    shell_complete=completed_by("agents"),
)
@option("--task NAME", "Only this task of the suite; repeat for more.", multiple=True)
@option("--repeats N", "Trials of each agent at each task.  [default: 1]", type=at_least(1))
@option("--parallel N", "Trials at a time.  [default: by this machine]", type=at_least(1))
@option("--fleet ADDRESS", "Take the turns on the machines of a fleet; local: on this one.")
@option("--max-time DURATION", "Begin no trial after this time.  [default: no limit]")
@option("--max-cost USD", "Begin no trial after this many dollars.  [default: no limit]")
@option("--resume", "Go on with the last evaluation of this suite.")
@option("--keep", "Keep the checkouts, and say where they are.", default=None)
@option("--fail-under RATE", "Exit with 1 if an agent's pass rate is lower.", type=_share)
@option("-o, --output FILE", "Write a report too: a page, Markdown for .md, data for .json.")
@option("--dry-run", "Say what would be done; run nothing.")
@in_json
@in_directory
def evaluate(suite: str, **flags: Any) -> int:  # noqa: ANN401
    """Measure agents, or settings, over a suite of tasks: how often they finish one, and how often
    they say done when it is not.

    SUITE is a file of TOML, or `small`: ten tasks that Ralph brings along. Every trial is a run in
    a fresh checkout; the check of its task, which runs here, is the truth. Each result is written
    down at once; Ctrl+C loses none, and --resume goes on.

    A suite has [[tasks]] (name, prompt, check; dir, files, repo, ref, setup, hidden_dir,
    hidden_files, protect, needs) and [[agents]] (name, command, kind, model, flags, env,
    settings). For all of them: repeats, iterations, timeout, check_timeout, max_time, max_cost,
    sandbox, parallel, seed, keep, settings.

    Examples:
      ralph eval small --agent claude --agent codex
      ralph eval SUITE.toml --repeats 5 -o report.html
      ralph eval SUITE.toml --json | jq '.agents[] | [.agent, .pass_rate, .false_claim_rate]'
      ralph eval SUITE.toml --dry-run
      ralph eval SUITE.toml --resume

    Exit codes: 0 every trial has a result, whatever it is; 1 some have none,
    or a rate is below --fail-under; 2 the suite or an agent cannot be used;
    130 interrupted.
    """
    from ralph.evaluation.conduct import Terms, usual_at_once
    from ralph.evaluation.trial import Site

    root, tell = state_root(os.environ), Progress()
    read, evaluation = _read(root, suite, flags)
    at_once = read.file.parallel or usual_at_once()
    terms = Terms(at_once, flags["max_time"], flags["max_cost"])
    tell.say(_plan_words(read, terms))
    if flags["output"]:
        _refuse_output(flags["output"])
    if flags["dry_run"]:
        return 0
    evaluation = evaluation or _begun(root, read, flags, tell)
    site = Site(read, evaluation, dict(os.environ), flags["fleet"] or "")
    with ending_by(signal.default_int_handler):
        found = _carried_out(suite, site, terms, tell)
    _show(found, flags["in_json"])
    if flags["output"]:
        _write(found, flags["output"])
        tell.say(f"The report is in {flags['output']}")
    if found.without_result:
        tell.say(f"To make the trials without a result: ralph eval {suite} --resume")
    least = flags["fail_under"] or 0.0
    return int(found.without_result > 0 or any(a.passes.share < least for a in found.agents))


def _read(root: str, named: str, flags: dict[str, Any]) -> "tuple[Suite, Evaluation | None]":
    """The suite as it is asked for, and the evaluation to go on with, whose options count where
    none are given."""
    from ralph.evaluation.store import refuse_another, resumed
    from ralph.evaluation.suite import find_suite, read_suite

    earlier = resumed(root, find_suite(named), named) if flags["resume"] else None
    if earlier is not None:
        flags |= {name: flags[name] or then for name, then in earlier.options.items()}
    given = {name: flags[name] for name in ("repeats", "parallel", "keep")}
    suite = read_suite(named, flags["agent"], flags["task"], **given)
    if earlier is not None:
        refuse_another(earlier, suite, named)
    return suite, earlier


def _plan_words(suite: "Suite", terms: "Terms") -> str:
    """`40 trials: 10 tasks x 2 agents x 2, 4 at a time; at most $20.00`."""
    file = suite.file
    tasks, agents = counted(len(file.tasks), "task"), counted(len(file.agents), "agent")
    count = len(file.tasks) * len(file.agents) * file.repeats
    at_once = min(terms.at_once, count)
    product = " x ".join([tasks, agents, *([str(file.repeats)] if file.repeats > 1 else [])])
    words = f"{suite.name}: {counted(count, 'trial')} ({product}), {at_once} at a time"
    costs = [] if file.max_cost is None else [count * file.max_cost]
    costs += [] if terms.dollars is None else [terms.dollars]
    trial = max((t.timeout or file.timeout) * (t.iterations or file.iterations) for t in file.tasks)
    longest = -(-count // at_once) * trial
    most = f"at most {money(min(costs))}" if costs else "no limit of money"
    return f"{words}; {most}, and at most {lasting(longest)} of turns"


def _begun(root: str, suite: "Suite", flags: dict[str, Any], tell: Progress) -> "Evaluation":
    """A new evaluation; who has left one behind is told."""
    from ralph.evaluation.conduct import standing_of
    from ralph.evaluation.store import begun, last_of
    from ralph.evaluation.trial import Site

    earlier = last_of(root, suite.path)
    if earlier is not None and earlier.digest == suite.digest:
        standing = standing_of(Site(suite, earlier, {}))
        if missing := len(standing.missing):
            of = f"{missing} of {len(standing.planned)} trials"
            tell.say(f"{earlier.id} is left behind without {of}; to go on with it: --resume")
    places = (os.path.abspath(a) if os.path.isfile(a) else a for a in flags["agent"])
    options = {name: flags[name] for name in ("task", "repeats", "fleet")}
    return begun(root, suite, {**options, "agent": [*places]})


def _carried_out(named: str, site: "Site", terms: "Terms", tell: Progress) -> "Standings":
    from ralph.evaluation.conduct import Conductor, standing_of
    from ralph.evaluation.standings import standings

    conductor = Conductor(site, terms, tell.on_start)
    with site.evaluation.held():
        standing = standing_of(site)
        try:
            if standing.missing:
                conductor.begin(tell.on_check)
                tell.plan(len(standing.planned) - len(standing.missing), len(standing.planned))
                standing = conductor.carry_out(tell.on_result)
        except KeyboardInterrupt:
            tell.end()
            standing = standing_of(site)
            done = len(standing.planned) - len(standing.missing)
            of = counted(len(standing.planned), "trial")
            tell.say(f"{done} of {of} {'has' if done == 1 else 'have'} a result")
            tell.say(f"To go on: ralph eval {named} --resume")
            raise
        finally:
            tell.end()
    if site.suite.file.keep:
        tell.say(f"The checkouts are in {site.checkouts}")
    about = (site.suite.name, site.evaluation.id, site.evaluation.began)
    return standings(about, standing, time.time())


def _show(found: "Standings", in_json: bool) -> None:
    from ralph.evaluation.standings import as_document
    from ralph.evaluation.words import HEAD, LEGEND, notes, row_of

    if in_json:
        click.echo(json.dumps(as_document(found), indent=2))
        return
    style = style_here()
    head, *rows = aligned([HEAD, *map(row_of, found.agents)], numbers={1, 3, 5, 6, 7})
    lines = [style.paint(head, Tone.HEAD), *rows, "", *notes(found)]
    print_lines([*lines, style.paint(LEGEND, Tone.FAINT)])


def _refuse_output(output: str) -> None:
    """Refuse a report that could not be written once all is done."""
    remedy = "Name another file: -o FILE"
    if os.path.isdir(output):
        raise ConfigError(f"cannot write {output}: it is a directory", remedy)
    if not os.path.isdir(os.path.dirname(os.path.abspath(output))):
        raise ConfigError(f"there is no directory for {output}", remedy)


def _write(found: "Standings", output: str) -> None:
    kind = _KINDS.get(os.path.splitext(output)[1].lower(), "html")
    if kind == "json":
        from ralph.evaluation.standings import as_document

        text = f"{json.dumps(as_document(found), indent=2)}\n"
    elif kind == "md":
        from ralph.evaluation.words import markdown

        text = markdown(found)
    else:
        from ralph.evaluation.page import page

        text = page(found)
    with failing(f"cannot write {output}", "Name another file: -o FILE"):
        if os.path.exists(output) and not stat.S_ISREG(os.stat(output).st_mode):
            with open(output, "w", encoding="utf-8") as file:  # a device, or a pipe
                file.write(text)
        else:
            write_atomically(output, text, 0o600)


eval = evaluate  # noqa: A001  as the command is called
