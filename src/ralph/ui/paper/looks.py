"""The look of an iteration: one word, one shape and one colour for how it was judged."""

from ralph.kernel.value import value
from ralph.ui.recap.values import Iteration


@value
class Look:
    """`name` is the class that gives the colour, and the id of the shape."""

    name: str
    words: str
    shape: str  # what is drawn in a box of 16 by 16; a class in it gives the second colour


_DISC = '<circle cx="8" cy="8" r="7"/>'
_CROSS = '<path class="stroke" d="M5.6 5.6l4.8 4.8m0-4.8l-4.8 4.8"/>'
_RING = '<circle cx="8" cy="8" r="5.6" class="hollow"/>'
ACCEPTED = Look("accepted", "accepted", f'{_DISC}<path class="stroke" d="M4.6 8.2l2.4 2.4 4.4-5"/>')
DISBELIEVED = Look(
    "disbelieved",
    "not believed",
    f'<path d="M8 .2L15.8 8 8 15.8.2 8z"/>{_CROSS}',
)
PARKED = Look(
    "parked",
    "left to you",
    '<rect x="1" y="1" width="14" height="14" rx="3"/>'
    '<path class="stroke" d="M5.6 6.2a2.4 2.4 0 1 1 3.4 2.2c-.7.4-1 .8-1 1.5M8 12.4v.1"/>',
)
STOPPED = Look(
    "stopped",
    "ended the run",
    '<path d="M5 1h6l4 4v6l-4 4H5l-4-4V5z"/><path class="stroke" d="M5 8h6"/>',
)
WAITED = Look("waited", "waited", f'{_RING}<path class="line" d="M8 4.8V8l2.2 1.6"/>')
FAILED = Look(
    "failed", "failed", '<path d="M8 1l7.4 13.6H.6z"/><path class="stroke" d="M8 6v4M8 12.2v.1"/>'
)
WENT_ON = Look("went-on", "went on", _RING)
AT_WORK = Look("at-work", "at work", f'{_RING}<circle cx="8" cy="8" r="2.6"/>')
UNJUDGED = Look("unjudged", "not judged", f'{_RING}<path class="line" d="M4 12l8-8"/>')
LOOKS = (ACCEPTED, DISBELIEVED, WENT_ON, FAILED, PARKED, WAITED, STOPPED, AT_WORK, UNJUDGED)
_VERDICTS = {"accept": ACCEPTED, "park": PARKED, "wait": WAITED, "stop": STOPPED}


def look_of(iteration: Iteration) -> Look:
    """The look of an iteration, from its judgement, or from what is missing of one."""
    judged = iteration.judgement
    if judged is None:
        return AT_WORK if iteration.ended is None else UNJUDGED
    if judged.is_disbelieved:
        return DISBELIEVED
    if judged.verdict == "stop" and judged.evidence:
        return ACCEPTED
    if judged.verdict == "continue" and (
        iteration.trouble or iteration.ending in ("cut", "unstartable")
    ):
        return FAILED
    return _VERDICTS.get(judged.verdict, WENT_ON)
