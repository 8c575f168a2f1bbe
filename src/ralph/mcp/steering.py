"""The tools that begin runs and leave requests for them (ADR 38). Who calls these is no agent of a
run: `serve` has seen to that."""

import json
from functools import partial

from ralph.errors import ConfigError
from ralph.journal.runs import Run
from ralph.kernel.world import Origin
from ralph.loops.backlog.ahead import answered
from ralph.mcp import asking, tools
from ralph.mcp.pending import CommandEnd, OwnCommand, PendingAnswer, ToolAnswer
from ralph.mcp.scope import Scope
from ralph.runner import steering
from ralph.text.words import listed

_MOST_NAMED = 10
_THEN_WAIT = "`wait` until it ends or asks."


# ------------------------------------------------------------------ start and resume


def start(scope: Scope, wish: tools.StartInput) -> PendingAnswer:
    """Begin a run as `--detach` does: it outlives us, and whoever has called us."""
    if (wish.prompt is None) == (wish.loop is None):
        message = "give either a prompt or a loop"
        raise ConfigError(message, 'Such as {"prompt": "..."} or {"loop": "tasks"}.')
    if wish.loop and wish.until_green:
        raise ConfigError("until_green is not for tasks", "Leave it out: they name their checks.")
    directory = scope.within(wish.directory)
    words = ["tasks", "run"] if wish.loop else ["run", f"--prompt={wish.prompt}"]
    given = {
        "--agent": wish.agent,
        "--model": wish.model,
        "--max-iterations": wish.max_iterations,
        "--max-time": wish.max_time,
        "--max-cost": wish.max_cost,
    }
    words += [f"{flag}={_word(said)}" for flag, said in given.items() if said is not None]
    words += ["--until-green"] if wish.until_green else []
    return OwnCommand([*words, "--detach", "--json"], directory, scope.environ, _begun)


def resume(scope: Scope, wish: tools.ResumeInput) -> ToolAnswer | PendingAnswer:
    """Let a run go on that is paused, or begin one again that is gone."""
    run = scope.run(wish.run)
    given = {
        "--max-iterations": wish.max_iterations,
        "--max-time": wish.max_time,
        "--max-cost": wish.max_cost,
    }
    flags = [f"{flag}={said}" for flag, said in given.items() if said is not None]
    if not run.live:
        words = ("resume", *flags, "--detach", "--json", "--", run.id)
        return OwnCommand(words, scope.root, scope.environ, partial(_begun, how="goes on"))
    if flags:
        message = f"run {run.id} goes on: its limits stay"
        raise ConfigError(message, "`stop` it first, `wait` for its end, then `resume`.")
    return _told(run, steering.resume(run, Origin.MCP), _THEN_WAIT)


def _begun(ended: CommandEnd, how: str = "has begun") -> ToolAnswer:
    """The run that has begun, or goes on. ConfigError with its own message for one that has not."""
    detached = None
    for line in ended.out.splitlines():
        said = json.loads(line) if line.startswith("{") else {}
        detached = said if said.get("type") == "detached" else detached
    if detached is None:
        words = ended.said() or f"the run ended with exit code {ended.code}"
        if ended.code:
            raise ConfigError(words)
        return ToolAnswer(words, {"run": None, "next": "there was nothing to do."})
    data = {"run": detached["run"], "pid": detached["pid"], "next": _THEN_WAIT}
    return ToolAnswer(f"Run {detached['run']} {how}.\nNext: {_THEN_WAIT}", data)


def _word(said: object) -> str:
    return f"{said:f}" if isinstance(said, float) else str(said)


# ------------------------------------------------------------------ requests


def stop(scope: Scope, wish: tools.StopInput) -> ToolAnswer:
    run = _live(scope, wish.run)
    return _told(run, steering.stop(run, Origin.MCP, now=wish.now), "`wait` until it has ended.")


def pause(scope: Scope, wish: tools.WhichInput) -> ToolAnswer:
    run = _live(scope, wish.run)
    return _told(run, steering.pause(run, Origin.MCP), "`resume` lets it go on.")


def note(scope: Scope, wish: tools.NoteInput) -> ToolAnswer:
    run = scope.run(wish.run)
    words = steering.note(run, wish.text, Origin.MCP, wish.task or "")
    return _told(run, words, _THEN_WAIT if run.live else "`resume` it.")


def _live(scope: Scope, part: str | None) -> Run:
    """The run that is meant; without a name the only one that goes on."""
    if part:
        return scope.run(part)
    live = [run.id for run in scope.runs() if run.live]
    if len(live) > 1:
        message = f"several runs go on: {listed(live, _MOST_NAMED)}"
        raise ConfigError(message, "Name one of them as `run`.")
    return scope.run(live[0] if live else None)


def _told(run: Run, words: str, after: str) -> ToolAnswer:
    data = {"run": run.id, "told": words, "next": after}
    return ToolAnswer(f"{words}\nNext: {after}", data)


# ------------------------------------------------------------------ answers and tasks


def answer(scope: Scope, wish: tools.AnswerInput) -> ToolAnswer:
    """Answer the question that is meant, if it is clear which."""
    run = scope.run(wish.run) if wish.run else None
    name = (run.lead or run).id if run else ""
    open_ones = list(asking.asked(scope))
    found = [
        each for each in open_ones if wish.task in (None, each.task) and name in ("", each.run)
    ]
    if len(found) != 1:
        named = listed([f"{each.task or each.run}: {each.text}" for each in open_ones], _MOST_NAMED)
        message = "several questions are meant" if found else "there is no such question"
        remedy = f"Open are: {named}" if open_ones else "Nothing is asked: see `status`."
        raise ConfigError(message, f"{remedy}. Name `task` and `run`." if found else remedy)
    (question,) = found
    place, task = question.place, question.task
    if not task:  # a run that has ended with it: the answer is told when it goes on
        asks = scope.run(question.run)
        return _told(asks, steering.note(asks, wish.text, Origin.MCP), "`resume` it.")
    answered(place.workspace, place.project, task, wish.text)
    steering.told_of(place.project, task, wish.text.strip(), Origin.MCP)
    words = f"{task} is pending again, with your answer."
    if not question.run:
        return ToolAnswer(words, {"run": None, "told": words, "next": "`start` with loop."})
    last = scope.run(question.run)
    return _told(last, words, _THEN_WAIT if last.live else "`resume` it, or `start` with loop.")


def tasks_add(scope: Scope, wish: tools.TasksAddInput) -> PendingAnswer:
    given = {"--description": wish.description, "--completion": wish.completion}
    given |= {"--priority": None if wish.priority is None else str(wish.priority)}
    words = [f"{flag}={said}" for flag, said in given.items() if said is not None]
    words += [f"--blocked-by={task}" for task in wish.blocked_by]
    words += [f"--tag={tag}" for tag in wish.tags]

    def told(ended: CommandEnd) -> ToolAnswer:
        if ended.code:
            raise ConfigError(ended.said())
        task = json.loads(ended.out)
        data = {"task": task["id"], "title": task["title"], "next": "`start` with loop."}
        return ToolAnswer(f"Added {task['id']}: {task['title']}", data)

    add = ("tasks", "add", *words, "--json", "--", wish.title)
    return OwnCommand(add, scope.within(wish.directory), scope.environ, told)
