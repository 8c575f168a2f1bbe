"""Reads the marker of a run (R §3) and checks its list of stories by it (R §5b), for the stop hook
and for `ralph prd check`. A hook has no time to import more than this.
"""

from ralph.review.law import DEFAULT_CAP, MODES, has_shape, illegal, inconsistent, malformed

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.review.law import Fields

    Found = tuple[str, str, str]  # by which check, which story ("" for the list), what is wrong


class Marked:
    """A marker, as far as it can be used: nonsense in it says nothing."""

    def __init__(self, marker: "Mapping[str, object]") -> None:
        mode, folder, cap = (marker.get(n) for n in ("iterationMode", "ralphDir", "reviewCap"))
        self.mode = mode if isinstance(mode, str) and mode in MODES else ""
        # Each story's fields before the turn; an empty one says that there were no stories.
        before = marker.get("preIterationSnapshot")
        is_whole = isinstance(before, dict) and all(isinstance(v, dict) for v in before.values())
        self.before: Fields | None = before if isinstance(before, dict) and is_whole else None
        self.cap = cap if type(cap) is int and cap > 0 else DEFAULT_CAP
        self.skip_review = marker.get("skipReview") is True
        is_path = isinstance(folder, str) and "\0" not in folder
        self.folder = str(folder) if is_path and folder else "ralph"
        self.run = marker.get("run")

    @property
    def lacks(self) -> str:
        """The field that check 2.5 needs and the marker lacks; "" if it can be made."""
        if self.before is None:
            return "preIterationSnapshot"
        return "" if self.mode else "iterationMode"


def problems(listing: object, marked: Marked) -> "list[Found]":
    """Checks 1, 2 and 2.5, as far as they apply: without reviews only the first does."""
    found = [("1", *one) for one in malformed(listing)]
    if marked.skip_review or not has_shape(listing):
        return found
    found += [("2", *one) for one in inconsistent(listing, marked.cap, marked.before)]
    if marked.before is not None and marked.mode:
        found += [("2.5", *one) for one in illegal(marked.before, listing, marked.mode)]
    return found
