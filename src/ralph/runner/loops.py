"""The table of loops. It imports none of them: the command line reads it before anything else."""

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Sequence

LOOPS = {  # name: the module that holds its LOOP, and the words of its command
    "prompt": ("ralph.loops.prompt.loop", "run"),
    "backlog": ("ralph.loops.backlog.loop", "tasks run"),
    "supervise": ("ralph.loops.supervise.loop", "supervise"),
    "plan": ("ralph.loops.backlog.planning.loop", "tasks plan"),
    "stories": ("ralph.loops.stories.loop", "prd run"),
}


def is_run(arguments: "Sequence[str]") -> bool:
    """True if a command line begins a run."""
    words = " ".join(arguments[:2]) + " "
    return any(words.startswith(f"{command} ") for _, command in LOOPS.values())
