"""The prompt for a task of a backlog (B §The Loop)."""

from ralph.kernel.contracts import CompleteClaim
from ralph.kernel.prompt import count_line
from ralph.kernel.tasks.task import Task
from ralph.kernel.value import value

_LARGEST = 32_768  # characters of one document
_WORDS = (
    "If you need a person to decide something, say <promise>DECIDE: your question</promise>. "
    "If you cannot go on for another reason, say <promise>BLOCKED: why</promise>. "
    "If what you did in this iteration is better thrown away, say "
    '<result>{"status": "failed", "error": "why"}</result>. '
    "The host commits: you need not. Leave .ralph/ alone; to note work for later, run: "
    'ralph tasks add "TITLE".'
)


@value
class Material:
    """Context for a task."""

    documents: tuple[tuple[str, str], ...] = ()  # (name, text) of AGENTS.md and the like
    lessons: tuple[str, ...] = ()  # what earlier iterations and tasks taught
    tests: str = ""  # the command that runs the tests named after it, if there are any


def task_prompt(task: Task, known: Material, iteration: int, most: int | None) -> str:
    """The documents first, then the task, its rule, and what was learned."""
    parts = []
    for name, document in known.documents:
        text = document.strip()
        cut = f"\n[... the rest is in {name}]" if len(text) > _LARGEST else ""
        parts.append(f'<file path="{name}">\n{text[:_LARGEST]}{cut}\n</file>')
    also = [f"type: {task.kind}"] if task.kind else []
    also += [f"tags: {', '.join(task.tags)}"] if task.tags else []
    head = f"Task {task.id}: {task.title}" + (f" ({'; '.join(also)})" if also else "")
    notes = f"\n\nNotes:\n{task.notes.strip()}" if task.notes.strip() else ""
    marker = CompleteClaim().marker
    rule = f"When the task is complete, and only then, end your answer with {marker}."
    if task.check:
        rule = (
            f"The task is complete when {task.check}. The host checks that after your turn, "
            f"whatever you say; say {marker} when you think so."
        )
    elif known.tests:
        rule = (
            f"This task is complete when `{known.tests}` passes; the host runs that after your "
            f"turn. Where no test is named {task.id}, end your answer with {marker} when the task "
            "is complete, and only then."
        )
    parts += [f"{head}\n\n{task.text}".rstrip() + notes, f"{rule} {_WORDS}"]
    if task.answers:
        parts.append("A person has answered:\n" + _bullets(task.answers))
    if task.saved:
        parts.append(f"What an earlier try had done is kept in git: git show {task.saved}")
    if known.lessons:
        parts.append("What was learned so far:\n" + _bullets(known.lessons))
    if most is not None:
        parts.append(count_line(iteration, most))
    return "\n\n".join(parts)


def _bullets(lines: tuple[str, ...]) -> str:
    return "\n".join(f"- {line}" for line in lines)
