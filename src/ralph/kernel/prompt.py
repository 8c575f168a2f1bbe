"""The prompt of a turn: the task, feedback, and the iteration's number."""

from collections.abc import Iterable
from typing import assert_never

from ralph.kernel.state import RunState
from ralph.kernel.verdict import Feedback, Placement
from ralph.text.redact import redact
from ralph.text.words import listed


def place(prompt: str, feedback: Iterable[Feedback]) -> str:
    """Each piece of feedback is applied to what the one before produced (H §Prompt Construction).

    A later REPLACE wipes what stood before it.
    """
    for piece in feedback:
        text = redact(piece.text)  # it quotes what programs printed
        match piece.placement:
            case Placement.APPEND:
                prompt = _joined(prompt, text)
            case Placement.PREPEND:
                prompt = _joined(text, prompt)
            case Placement.REPLACE:
                prompt = text
            case _:
                assert_never(piece.placement)
    return prompt


def told(feedback: tuple[Feedback, ...]) -> tuple[Feedback, ...]:
    """The feedback that the next prompt holds: a REPLACE wipes what stood before it."""
    last = [n for n, piece in enumerate(feedback) if piece.placement is Placement.REPLACE][-1:]
    return feedback[last[0] :] if last else feedback


def count_line(iteration: int, maximum: int) -> str:
    """H §Loop Behavior 3: `Iteration X of Y, Z remaining.`"""
    return f"Iteration {iteration} of {maximum}, {max(0, maximum - iteration)} remaining."


def completion_sentence(marker: str) -> str:
    """The one sentence that a prompt needs so that a run can end by itself."""
    return f"When everything is done, and only then, end your answer with {marker}."


def checks_sentence(commands: tuple[str, ...]) -> str:
    """The same where the checks alone decide."""
    named = listed([f"`{command}`" for command in commands], len(commands))
    when = "When it passes" if len(commands) == 1 else "When all of them pass"
    return f"Ralph runs {named} after your turn. {when}, the work is done; you need not say so."


def cut_off(state: RunState, turn: str = "Iteration") -> tuple[Feedback, ...]:
    """The notice in front of the prompt that a crash cut the turn off, and it is taken again."""
    notice = (
        f"{turn} {state.iteration} was cut off before it ended and is taken again. "
        "Look at what is already there before you go on."
    )
    return (Feedback(notice, Placement.PREPEND),) if state.cut_off else ()


def noted(state: RunState) -> tuple[Feedback, ...]:
    """Notes that people have left for this turn."""
    notes = (note for note in state.notes if note.task in ("", state.task))
    return tuple(Feedback(f"A note from the person you work for:\n{note.text}") for note in notes)


def landed(state: RunState) -> tuple[Feedback, ...]:
    """A notice about changes of the last turn that are not in the project."""
    last, notes = state.landed, []
    if last is not None and not last.kept and last.count:
        notes.append("What the last turn changed was thrown away, because that turn failed.")
    if last is not None and last.held:
        paths = listed(last.held)
        notes.append(f"These changes wait for a person and are not in the project: {paths}.")
    return tuple(map(Feedback, notes))


def _joined(first: str, second: str) -> str:
    return f"{first}\n\n{second}" if first and second else first or second
