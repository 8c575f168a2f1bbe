"""What an agent may do to a list of stories, and what it may not."""

from collections.abc import Callable
from typing import Any

from kits.review_cases import Listing, Story, approved, story

FIELDS = ("passes", "reviewStatus", "reviewCount", "reviewFeedback")
OTHERS = ("id", "title", "priority", "acceptanceCriteria", "notes", "dependsOn", "description", "x")
TOP = ("project", "branchName", "description", "userStories", "verifyCommands", "x")
NAMES = (
    "US-001",
    "us-001",
    "US-001 ",
    "US-002",
    "US-\u200b1",
    "",
    "a\nb",
    "\x1b[2J",
    "US-9",
    "\ud83d",
)


def stories(whole: Any) -> list[Any]:  # noqa: ANN401  an earlier edit may have left anything
    found = whole.get("userStories") if isinstance(whole, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def at(whole: Any, place: int) -> Story:  # noqa: ANN401
    found = stories(whole)
    return found[place % len(found)] if found else {}


def set_field(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    at(whole, one)[FIELDS[other % len(FIELDS)]] = given


def set_other(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    at(whole, one)[OTHERS[(one + other) % len(OTHERS)]] = given


def drop_field(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    at(whole, one).pop((FIELDS + OTHERS)[(one + 2 * other) % 12], None)


def approve(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    """As a review would, but for its count, perhaps."""
    this = at(whole, one)
    count = this.get("reviewCount")
    this |= {"passes": True, "reviewStatus": "approved", "notes": "good"}
    if isinstance(count, int):
        this["reviewCount"] = count + other % 3


def ask(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    at(whole, one).update(reviewStatus="changes_requested", reviewFeedback=given, reviewCount=other)


def review_another(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    """A review as it should be, were it the only one."""
    ready = [each for each in stories(whole) if each.get("reviewStatus") == "needs_review"]
    if ready and isinstance(ready[one % len(ready)].get("reviewCount"), int):
        this = ready[one % len(ready)]
        this |= {"passes": True, "reviewStatus": "approved", "notes": "good"}
        this["reviewCount"] += 1


def say(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    """What a reviewer should have said, or not."""
    at(whole, one)["reviewFeedback"] = ("", "it is good")[other % 2]


def blank(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    at(whole, one)["notes"] = ("", " ")[other % 2]


def clear(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    at(whole, one).update(reviewStatus=None, reviewCount=0, passes=False)


def delete(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    if stories(whole):
        whole["userStories"].remove(at(whole, one))


def rename(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    at(whole, one)["id"] = NAMES[(one + 2 * other) % len(NAMES)]


def swap_ids(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    swap(at(whole, one), at(whole, other), "id")


def swap_reviews(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    for field in FIELDS:
        swap(at(whole, one), at(whole, other), field)


def swap(one: Story, other: Story, field: str) -> None:
    if field in one and field in other:
        one[field], other[field] = other[field], one[field]


def repeat(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    if stories(whole):
        whole["userStories"].append(dict(at(whole, one)))


def bear(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    """A new story, with something of its own."""
    if isinstance(whole, dict) and isinstance(whole.get("userStories"), list):
        field = (FIELDS + OTHERS)[(one + other) % 12]
        whole["userStories"].insert(one, {**story(f"new-{one}{other}"), field: given})


def bear_approved(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    if isinstance(whole, dict) and isinstance(whole.get("userStories"), list):
        whole["userStories"].append(approved(f"new-{one}{other}", count=other))


def set_top(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    if isinstance(whole, dict):
        whole[TOP[(one + other) % len(TOP)]] = given


def replace_story(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    if stories(whole):
        whole["userStories"][0] = given


def replace_all(whole: Any, one: int, other: int, given: object) -> object:  # noqa: ANN401
    return given if one == other == 0 else None


def never_end(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    at(whole, one)["priority"] = (float("inf"), float("nan"), 10**200, 1e308, -0.0)[other % 5]


def nest(whole: Any, one: int, other: int, given: object) -> None:  # noqa: ANN401
    deep: Any = given
    for _ in range(50 * other):
        deep = [deep]
    at(whole, one)["acceptanceCriteria"] = [deep]


Edit = Callable[[Any, int, int, Any], object]
EDITS: dict[str, Edit] = {
    made.__name__: made
    for made in (
        *(set_field, set_other, drop_field, approve, ask, clear, delete, rename, swap_ids),
        *(swap_reviews, repeat, bear, bear_approved, set_top, replace_story, replace_all),
        *(never_end, nest, review_another, say, blank),
    )
}
SLY = ("review_another", "say", "blank", "approve", "ask")  # which the law alone can see


# ------------------------------------------------------------ what R lets every turn do


def reorder(whole: Listing, one: int, other: int, given: object) -> None:
    whole["userStories"].reverse()


def prioritise(whole: Listing, one: int, other: int, given: object) -> None:
    at(whole, one)["priority"] = other


def split(whole: Listing, one: int, other: int, given: object) -> None:
    names = [each["id"] for each in stories(whole)]
    name = f"new-{one}{other}"
    if name not in names:
        whole["userStories"].append(story(name, dependsOn=[names[0]]))


def note(whole: Listing, one: int, other: int, given: object) -> None:
    at(whole, one)["notes"] = f"note {other}"


def add_field(whole: Listing, one: int, other: int, given: object) -> None:
    at(whole, one)["estimate"] = given
    whole["more"] = given


HARMLESS: dict[str, Edit] = {
    made.__name__: made for made in (reorder, prioritise, split, note, add_field)
}
