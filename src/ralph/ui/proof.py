"""A proof as people and programs read it (ADR 33)."""

from collections.abc import Iterator
from typing import Any

from ralph.kernel.facts import Proved, scm_task
from ralph.kernel.state import RunState
from ralph.text.words import listed
from ralph.ui.lines import Line
from ralph.ui.style import Tone

_SHORT = 12  # characters of an id
_MOST = 5  # paths that are named
_NOT_DONE = {"commit": "Not committed", "push": "Not pushed"}
_OBJECTS = ("!", "fatal:", "error:", "remote: error")  # how git begins such a line


def proof_lines(proof: Proved) -> Iterator[Line]:
    """The lines about a proof; what it leaves out is said always, the rest only if asked for."""
    yield Line(f"Proven: tree {proof.tree[:_SHORT]}", verbose=True)
    for words, paths in (
        ("Left out of the commit (made by checks only)", proof.left_out),
        ("Restored (checks change it every time)", proof.put_back),
        ("A turn changed it too, so your own changes in it are committed as well", proof.mixed),
        ("Left out of the commit (outside of this directory)", proof.outside),
        ("Ignored by new rules, so outside the proof", proof.hidden),
    ):
        if paths:
            yield Line(f"{words}: {listed(paths, _MOST)}", Tone.NOTICE)


def proof_words(state: RunState) -> str:
    """The tree that was proven and where it is; "" without a proof."""
    if state.proof is None:
        return ""
    commit = f"commit {state.commit[:_SHORT]}" if state.commit else "not committed"
    yours = f"your uncommitted files ({listed(state.proof.yours, _MOST)})"
    outside = f"{yours} and ignored files" if state.proof.yours else "ignored files"
    return f"tree {state.proof.tree[:_SHORT]}, {commit}; {outside} are outside the proof"


def owed_lines(state: RunState) -> Iterator[Line]:
    """SCM tasks that failed for good, each with what git has against it."""
    for step in state.owed:
        task, why = scm_task(step), _telling(step.detail)
        words = _NOT_DONE.get(task.split()[0], f"SCM task {task} failed")
        yield Line(f"{words}: {why}", Tone.BAD)


def owed_dicts(state: RunState) -> list[dict[str, str]]:
    """The same for programs."""
    return [{"task": scm_task(step), "why": step.detail} for step in state.owed]


def _telling(text: str) -> str:
    """The line that says what is wrong; git begins with where it was pushing to."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no reason given"]
    return next((line for line in lines if line.startswith(_OBJECTS)), lines[0])


def proof_dict(state: RunState) -> dict[str, Any] | None:
    """The same for programs; null without a proof."""
    proof = state.proof
    if proof is None:
        return None
    return {
        "tree": proof.tree,
        "commit": state.commit or None,
        "gates": list(proof.gates),
        "left_out": list(proof.left_out),
        "put_back": list(proof.put_back),
        "yours": list(proof.yours),
        "mixed": list(proof.mixed),
        "hidden": list(proof.hidden),
        "outside": "ignored files",
    }
