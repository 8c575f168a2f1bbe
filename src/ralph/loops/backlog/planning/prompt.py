"""The prompt that asks an agent to split a goal into tasks."""

from collections.abc import Sequence

from ralph.kernel.tasks.task import ENDED, Task
from ralph.kernel.value import value
from ralph.text.words import counted

_MOST = 200  # tasks that are named
_LONGEST = 120  # characters of a title
_TEXT = """\
Split the goal below into tasks for coding agents. Plan only: look around as much as you need, and
change nothing; whatever you change is undone.

{goal}

{there}

Each task is worked on by itself, in a session that knows the task and the project, and nothing of
this one. So a task
- is small: one change that one session can finish, check and commit;
- says in its description all that the one who does it must know: which files, which behaviour,
  which edge cases;
- names a completion that proves it: a command that fails now and exits with 0 once the task is
  done, such as its own tests. The host runs it, so it must end by itself, ask nothing, and work in
  a fresh clone. Say explicit only where nothing can check the result;
- waits by blockedBy for the tasks that it builds on, and for no others.

End your answer with the list, one JSON object a line, and nothing else between the tags:

<tasks>
{{"id": "{first}", "title": "Parse the settings file", "description": "...", "type": "feature", \
"priority": 2, "blockedBy": [], "completion": {{"type": "test_passing", "command": "{command}"}}}}
{{"id": "{second}", "title": "Describe the settings", "description": "...", "type": "docs", \
"blockedBy": ["{first}"], "completion": {{"type": "file_exists", "path": "docs/settings.md"}}}}
</tasks>

title is needed. completion is {{"type": "test_passing", "command": "COMMAND"}}, {{"type":
"file_exists", "path": "PATH"}}, {{"type": "validate", "script": "SCRIPT"}}, which exits with 0, or
{{"type": "explicit"}}, which is the agent's word. Higher priority comes first. tags, estimate (3
iterations, or "2h") and parent may be added. Do not say a status: no task is done before the host
has checked it."""


@value
class Wish:
    """What somebody wants to have planned."""

    goal: str
    spec: str = ""  # a text that says more
    name: str = ""  # of its file


def plan_prompt(wish: Wish, tasks: Sequence[Task], ids: tuple[str, str], command: str) -> str:
    """The prompt, with the tasks there are, two ids that are free, and how tests are run here."""
    goal = f"<goal>\n{wish.goal.strip()}\n</goal>"
    if wish.spec:
        goal += f'\n\n<file path="{wish.name}">\n{wish.spec.strip()}\n</file>'
    return _TEXT.format(
        goal=goal,
        there=_there(tasks),
        first=ids[0],
        second=ids[1],
        command=command or "make test",
    )


def _there(tasks: Sequence[Task]) -> str:
    """The tasks that need not be planned again; what is open first, then the latest."""
    if not tasks:
        return "There are no tasks yet."
    latest = list(reversed(tasks))
    ordered = [task for over in (False, True) for task in latest if (task.status in ENDED) is over]
    lines = [
        f"{task.id} ({task.status.value}): {' '.join(task.title.split())[:_LONGEST]}"
        for task in ordered[:_MOST]
    ]
    more = len(tasks) - len(lines)
    lines += [f"and {counted(more, 'older task')}"] if more else []
    told = "\n".join(lines)
    return (
        "These tasks are there already. Do not repeat them; a new task may wait for one of them:\n"
        f"{told}"
    )


def again(objections: str) -> str:
    """The words for an answer of which nothing can be used."""
    return (
        f"Nothing of your last answer could be used: {objections}. Answer once more, with one JSON "
        "object a line between <tasks> and </tasks>."
    )
