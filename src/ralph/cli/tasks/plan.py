"""`ralph tasks plan`: an agent splits a goal into tasks, which are shown, and added if wanted."""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import click

from ralph.cli.asking import ask, dialogue, yes
from ralph.cli.base import command
from ralph.cli.params import (
    a_file,
    completed_by,
    in_directory,
    in_json,
    in_place_if_asked,
    option,
    print_lines,
    shown_run,
    work_options,
)
from ralph.cli.tasks.common import loaded, read_text, task_file
from ralph.errors import ConfigError
from ralph.files.state_dir import project_dir, state_root
from ralph.journal.runs import Run, account_of, find_run, runs_of
from ralph.kernel.verdict import Reason
from ralph.loops.backlog.planning.adding import add, doubts, fitted, words_of
from ralph.loops.backlog.planning.keeping import FILE, proposal_of
from ralph.loops.backlog.planning.prompt import Wish
from ralph.loops.backlog.planning.proposal import Proposal, Record, check_of
from ralph.loops.backlog.store.selection import test_command_of
from ralph.loops.backlog.store.task_file import NAME
from ralph.runner.arguments import current_directory, proper, shown
from ralph.settings.load import load
from ralph.text.plain import clean
from ralph.text.words import counted, listed
from ralph.ui.jsonlines import stop_line
from ralph.ui.style import Style, Tone, is_terminal, style_here

_EXAMPLE = 'ralph tasks plan "Import bank statements as CSV"'
_LARGEST = 1 << 20  # bytes of a specification
_LAST = "last"
_ITS_WORD = "done when the agent says so: the host checks nothing"
_MOST_TOLD = 20


@command()
@click.argument("goal", required=False)
@option(
    "--from FILE",
    "A text that says more about the goal; - is standard input.",
    "spec",
    shell_complete=a_file,
)
@option("-y, --yes", "Add the tasks without asking.")
@option(
    "--add [=RUN]",
    "Add what an earlier run has proposed, by default the last; no agent is asked.",
    "earlier",
    is_flag=False,
    flag_value=_LAST,
    shell_complete=completed_by("run_ids"),
)
@work_options(time="30m", cost="5", sandbox="auto")
@shown_run
@option("--dry-run", "Print the prompt and the command; ask no agent.")
@in_json
@in_directory
def plan(
    goal: str | None,
    *,
    spec: str | None,
    yes: bool,
    earlier: str | None,
    in_json: bool,
    **flags: Any,  # noqa: ANN401  of the run
) -> int:
    """Have an agent split GOAL into tasks with checks, and add those that you want.

    The agent looks around and proposes; whatever it changes is undone. The tasks are shown as they
    would stand in .ralph/tasks.jsonl, with what the host will check of each and what is left to the
    agent's word. Nothing is added before you say yes: at the question, by --yes, or by --add later.

    --json prints one object: `tasks` ({task, check, host_checks, notes} each), `refused`, `added`
    (ids), `run` and `cost_usd`. It asks nothing, so that it adds only with --yes or --add.

    Examples:
      ralph tasks plan "Import bank statements as CSV"
      ralph tasks plan "Build what it says" --from SPEC.md --agent codex
      ralph tasks plan --from SPEC.md --yes && ralph tasks run --max-time 8h
      ralph tasks plan --add                       what was proposed last

    Exit codes: 0, also when nothing was added; 1 when nothing of what the agent
    said can be used; 2 configuration; 3 the agent asks something; 5 it failed
    twice, 130 interrupted.
    """
    if earlier is not None:
        if goal is not None or spec is not None:
            raise click.UsageError("--add is for an earlier plan: it takes no GOAL and no --from.")
        return _finish(_earlier(earlier), add_them=True, in_json=in_json)
    flags["wish"] = _wish(goal, spec)
    loaded(task_file(os.environ))  # what is wrong with the list is said first
    code, directory = _planned(flags, in_json=in_json)
    if not directory or code != 0:
        return code
    if not in_json:
        click.echo()  # between the run and what came of it
    return _finish(_run_in(directory), add_them=yes, in_json=in_json)


def _wish(goal: str | None, spec: str | None) -> Wish:
    """What is to be planned; a text alone is a goal too."""
    text = ""
    if spec is not None:
        text = read_text(spec, "the specification", sys.stdin, most=_LARGEST)
        if not text.strip():
            raise ConfigError(f"{spec} is empty", "Name a text that says what is to be done.")
    name = "standard input" if spec == "-" else spec or ""
    if goal is None and text:
        goal = f"Build what {name} says."
    if goal is None:
        raise ConfigError("which goal is to be planned?", f"Say it: {_EXAMPLE}")
    goal = clean(proper(goal, "the goal"))
    if not goal.strip():
        raise ConfigError("the goal is blank", f"Say what is to be done: {_EXAMPLE}")
    return Wish(goal, text, shown(name))


def _planned(flags: dict[str, Any], *, in_json: bool) -> tuple[int, str]:
    """Ask the agent; the exit code of its run, and the run's directory, "" if nothing was begun.
    What people read of it goes to stderr where programs read stdout."""
    from ralph.runner.carry_out import execute
    from ralph.runner.invocation import Invocation

    in_place_if_asked(flags)
    ended: list[str] = []
    own = {"in_json": in_json and flags["dry_run"], "planned": ended.append, "branch": None}
    out = sys.stderr if in_json and not flags["dry_run"] else sys.stdout
    keeper = click.get_current_context().obj
    streams = (sys.stdin, out, sys.stderr)
    invocation = Invocation(
        current_directory(), dict(os.environ), {**flags, **own}, *streams, keeper
    )
    code = execute("plan", invocation)
    if code != 0 and in_json:
        click.echo(
            _stop_line(code, ended[0]) if ended else stop_line(_reason(code), time=time.time())
        )
    return code, ended[0] if ended else ""


def _stop_line(code: int, directory: str) -> str:
    """The last word for programs of a run that has proposed nothing."""
    run = _run_in(directory)
    spent = account_of(run).state.spent
    return stop_line(_reason(code), time=time.time(), run=run.id, spent=spent, log=run.journal)


def _reason(code: int) -> Reason:
    return next(reason for reason in Reason if reason.exit_code == code)


def _run_in(directory: str) -> Run:
    return Run(os.path.basename(directory), os.path.dirname(os.path.dirname(directory)))


def _earlier(named: str) -> Run:
    """The run whose proposal is meant."""
    root, here = state_root(os.environ), current_directory()
    if named != _LAST:
        return find_run(root, here, named, "tasks plan --add")
    found = (r for r in runs_of(project_dir(root, here)) if os.path.exists(_kept(r)))
    run = next(found, None)
    if run is None:
        raise ConfigError("nothing was planned here yet", f"Plan something: {_EXAMPLE}")
    return run


def _kept(run: Run) -> str:
    return os.path.join(run.directory, FILE)


# ------------------------------------------------------------------ what was proposed


def _finish(run: Run, *, add_them: bool, in_json: bool) -> int:
    """Show what was proposed, ask, and add it."""
    # An agent may add tasks, as by `tasks add`; a person's are remembered as such.
    file = task_file(os.environ, needs_note=False)
    proposal = fitted(file, proposal_of(run.directory))
    before = file.load().backlog.tasks
    about = _about(proposal)
    if in_json:
        added = add(file, proposal) if add_them else Proposal()
        click.echo(json.dumps(_as_json(run, proposal, about, added)))
        return 0
    print_lines(_diff(proposal, about, len(before), style_here()))
    if not add_them and not _wanted(len(proposal.tasks)):
        again = f"ralph tasks plan --add={run.id}"
        click.echo(f"Nothing was added. To add them as they are: {again}")
        return 0
    click.echo(f"{words_of(add(file, proposal), proposal)}. Work through them: ralph tasks run")
    return 0


def _wanted(count: int) -> bool:
    """True if a person at a terminal says yes."""
    if not is_terminal(sys.stdin) or not is_terminal(sys.stdout):
        return False
    which = "this task" if count == 1 else f"these {count} tasks"
    with dialogue("nothing was added. To add them after all: ralph tasks plan --add"):
        return ask(f"Add {which}? [y/N] ", yes)


def _about(proposal: Proposal) -> dict[str, tuple[str, ...]]:
    """What is to be said of each task, by its id."""
    here, environ = current_directory(), dict(os.environ)
    command = test_command_of(load(here))
    return {
        record["id"]: (
            *(f"check: {words}" for words in doubts(record, here, environ, command)),
            *proposal.notes_on(record["id"]),
        )
        for record in proposal.tasks
    }


def _diff(
    proposal: Proposal, about: Mapping[str, tuple[str, ...]], before: int, style: Style
) -> Iterator[str]:
    """The list before and after, as a diff; `!` is what a person should look at."""
    tasks = proposal.tasks
    yield style.paint(f"--- {NAME}  {counted(before, 'task')}", Tone.HEAD)
    yield style.paint(f"+++ {NAME}  {counted(before + len(tasks), 'task')}", Tone.HEAD)
    for record in tasks:
        yield from _added(record, about[record["id"]], style)
    for words in proposal.refused[:_MOST_TOLD]:
        yield style.paint(f"! refused: {shown(words)}", Tone.BAD)
    if len(proposal.refused) > _MOST_TOLD:
        yield style.paint(f"! and {len(proposal.refused) - _MOST_TOLD} more", Tone.BAD)
    yield _summary(tasks)


def _added(record: Record, notes: tuple[str, ...], style: Style) -> Iterator[str]:
    """A task as it would be added."""
    also = [str(record[name]) for name in ("type",) if name in record]
    also += [f"priority {record['priority']}"] if record.get("priority") else []
    also += [f"waits for {listed(record['blockedBy'])}"] if record.get("blockedBy") else []
    also += [f"part of {record['parent']}"] if record.get("parent") else []
    also += [f"tags {listed(record['tags'])}"] if record.get("tags") else []
    also += [f"estimate {record['estimate']}"] if record.get("estimate") else []
    also += [f"{name} {most:g}" for name, most in (record.get("limits") or {}).items()]
    more = f" ({'; '.join(also)})" if also else ""
    yield style.paint(f"+ {shown(record['id'])}: {shown(record['title'] + more)}", Tone.GOOD)
    for line in clean(record.get("description", "")).split("\n"):
        if line.strip():
            yield style.paint(f"+     {shown(line)}", Tone.GOOD)
    check = check_of(record)
    if check:
        yield style.paint(f"+   the host checks: {shown(check)}", Tone.GOOD)
    else:
        yield style.paint(f"!   {_ITS_WORD}", Tone.NOTICE)
    for words in notes:
        yield style.paint(f"!   {shown(words)}", Tone.NOTICE)


def _summary(tasks: tuple[Record, ...]) -> str:
    """How many of them the host can verify, and which it cannot."""
    open_ones = [record["id"] for record in tasks if not check_of(record)]
    checked = len(tasks) - len(open_ones)
    words = f"{counted(len(tasks), 'task')}: the host checks {checked or 'none'}"
    words += f"; by the agent's word alone: {listed(open_ones)}" if open_ones else ""
    return shown(f"{words}.")


def _as_json(
    run: Run, proposal: Proposal, about: Mapping[str, tuple[str, ...]], added: Proposal
) -> dict[str, Any]:
    tasks = [
        {
            "task": dict(record),
            "check": check_of(record) or None,
            "host_checks": bool(check_of(record)),
            "notes": list(about[record["id"]]),
        }
        for record in proposal.tasks
    ]
    return {
        "type": "plan",
        "run": run.id,
        "cost_usd": account_of(run).state.spent.dollars or None,
        "tasks": tasks,
        "refused": list(proposal.refused),
        "added": [record["id"] for record in added.tasks],
    }
