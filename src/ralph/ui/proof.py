"""A proof as people and programs read it (ADR 33)."""

from collections.abc import Iterator
from typing import Any

from ralph.core.facts import Proved
from ralph.core.state import RunState
from ralph.core.words import listed
from ralph.ui.lines import Line
from ralph.ui.style import Tone

_SHORT = 12  # characters of an id
_MOST = 5  # paths that are named


def proof_lines(proof: Proved) -> Iterator[Line]:
    """What a proof leaves out is said whenever there is something; the rest only if asked for."""
    yield Line(f"Proven: tree {proof.tree[:_SHORT]}", verbose=True)
    for words, paths in (
        ("Left out of the commit (made by checks only)", proof.left_out),
        ("Restored (checks change it every time)", proof.put_back),
        ("Committed with your own uncommitted changes, since a turn changed it too", proof.mixed),
        ("Ignored by new rules, so outside the proof", proof.hidden),
    ):
        if paths:
            yield Line(f"{words}: {listed(paths, _MOST)}", Tone.NOTICE)


def proof_words(state: RunState) -> str:
    """What was proven and where it is; "" without a proof."""
    if state.proof is None:
        return ""
    commit = f"commit {state.commit[:_SHORT]}" if state.commit else "not committed"
    return f"tree {state.proof.tree[:_SHORT]}, {commit}; ignored files are outside the proof"


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
