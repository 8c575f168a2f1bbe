"""The law of stories (R §5b): how a list is read, what it must be, and what a turn may do to it.

For the stop hook, which has no time to import more, and the gates after the agent's exit.
"""

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, NoReturn, TypeGuard

    Story = Mapping[str, Any]
    Listing = Mapping[str, Any]  # a whole tasks.json
    Fields = Mapping[str, Mapping[str, object]]  # of each story, those that a review decides
    Found = tuple[str, str, str]  # by which check, which story ("" for the list), what is wrong

Move = tuple[str, object, object]  # a field, what it was, what it is
Problem = tuple[str, str]  # the story's id, "" for the whole list, and what is wrong

IMPLEMENT, REVIEW, REVIEW_FIX = MODES = ("implement", "review", "review-fix")
NEEDS_REVIEW, CHANGES_REQUESTED, APPROVED = ("needs_review", "changes_requested", "approved")
DECIDED = ("passes", "reviewStatus", "reviewCount")  # what a snapshot holds of a story
AT_CAP = "[AUTO-APPROVED AT CAP]"
DEFAULT_CAP = 5
TOP = ("project", "branchName", "description")
BORN: "Mapping[str, object]" = {"passes": False, "reviewStatus": None, "reviewCount": 0}
_STATUSES = (None, NEEDS_REVIEW, CHANGES_REQUESTED, APPROVED)
LARGEST = 64 << 20  # bytes of a list, for whoever reads one
_DEEPEST = 64  # Python compares and writes what is nested by calling itself
_MOST_DIGITS = 100
_LONGEST_NAME = 100
NAME_RULE = f"must be a string of 1 to {_LONGEST_NAME} characters on one line, without idle blanks"
_LONGEST_SHOWN = 60


class NotAListError(ValueError):
    """The text is no JSON."""


def parsed(raw: bytes) -> object:
    """The content of tasks.json. Raises NotAListError if it is not JSON in UTF-8, or is JSON that
    two readers could understand differently."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotAListError(f"it is not UTF-8 text (byte {error.start})") from error
    try:
        found = _without_halves(_loaded(text), text)
    except RecursionError as error:
        raise NotAListError("it is not valid JSON: it is nested too deeply") from error
    except ValueError as error:
        raise NotAListError(f"it is not valid JSON: {error}") from error
    if _is_deep(found):
        raise NotAListError(f"it is nested too deeply: more than {_DEEPEST} levels")
    return found


def _loaded(text: str) -> object:
    import json

    return json.loads(
        text,
        object_pairs_hook=_unique,
        parse_constant=_no_number,
        parse_float=_finite,
        parse_int=_short,
    )


def _unique(pairs: "list[tuple[str, Any]]") -> "dict[str, Any]":
    """One reader takes the first of two equal keys, another the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        last = {key: place for place, (key, _) in enumerate(pairs)}
        twice = next(key for place, (key, _) in enumerate(pairs) if last[key] != place)
        raise ValueError(f"the key {shown(twice)} is twice in one object")
    return found


def _no_number(name: str) -> "NoReturn":
    raise ValueError(f"{name} is not a number")


def _finite(digits: str) -> float:
    """1e999 would be read as infinite, and written as something that is no JSON."""
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number


def _short(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits is too large")
    return int(digits)


def _without_halves(found: object, text: str) -> object:
    r"""Half a character, which JSON can spell (\ud83d) and nothing can show, becomes "?"."""
    if "\\ud" not in text and "\\uD" not in text:
        return found
    import json

    whole = json.dumps(found, ensure_ascii=False).encode(errors="replace")
    return _loaded(whole.decode())


def _is_deep(found: object) -> bool:
    level: list[Any] = [found]
    for _ in range(_DEEPEST + 1):
        nested = [one for one in level if isinstance(one, dict | list)]
        level = [i for one in nested for i in (one.values() if isinstance(one, dict) else one)]
    return any(isinstance(one, dict | list) for one in level)


def is_name(given: object) -> bool:
    """True if it can name a story: on one line of a prompt, a commit or a console, and not beside
    another that looks the same but for its blanks."""
    return (
        isinstance(given, str)
        and 0 < len(given) <= _LONGEST_NAME
        and given.isprintable()
        and given == " ".join(given.split())
    )


def shown(given: object) -> str:
    """A value as the file spells it, shortened, and safe to show."""
    import json

    text = json.dumps(given, ensure_ascii=False)
    text = text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def some(names: "list[str]") -> str:
    """A few of the names; a list of a hundred thousand is no help."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{', '.join(names[:5])}{more}"


def stories_of(listing: "Listing") -> "dict[str, Story]":
    """The stories of a list that has its shape, by id."""
    return {story["id"]: story for story in listing["userStories"]}


def snapshot(listing: "Listing") -> "dict[str, dict[str, object]]":
    """The fields of each story that a review decides, as the marker of a run holds them."""
    return {
        name: {field: story.get(field) for field in DECIDED}
        for name, story in stories_of(listing).items()
    }


def has_shape(listing: object) -> "TypeGuard[Listing]":
    """True if the stories can be told apart, whatever else is wrong with them."""
    if not isinstance(listing, dict) or not isinstance(listing.get("userStories"), list):
        return False
    stories = listing["userStories"]
    names = [story.get("id") if isinstance(story, dict) else None for story in stories]
    return all(is_name(name) for name in names) and len(set(names)) == len(names)


def malformed(listing: object) -> "list[Problem]":
    """Check 1: each field and story that is not as R §8 has it."""
    if not isinstance(listing, dict):
        return [("", "tasks.json must hold a JSON object.")]
    problems = [
        ("", f"tasks.json: '{field}' is missing or not a string.")
        for field in TOP
        if not isinstance(listing.get(field), str)
    ]
    stories = listing.get("userStories")
    if not isinstance(stories, list):
        return [*problems, ("", "tasks.json: 'userStories' must be an array.")]
    seen: set[str] = set()
    for number, story in enumerate(stories, 1):
        problems += _story_problems(story, number, seen)
    return problems


def _story_problems(story: object, number: int, seen: set[str]) -> "Iterator[Problem]":
    name = story.get("id") if isinstance(story, dict) else None
    if not isinstance(story, dict):
        yield "", f"Story number {number} is not an object."
    elif not isinstance(name, str) or not is_name(name):
        yield "", f"Story number {number}: its 'id' {NAME_RULE}, not {shown(name)}."
    elif name in seen:
        yield "", f"Story id {name} is there twice: ids must be unique."
    else:
        seen.add(name)
        for field, words in wrong_fields(story):
            yield name, f"Story {name}: '{field}' {words}."
        if story.get("passes") is True and not _filled(story.get("notes")):
            words = "has passes=true but its 'notes' are empty: write down what was done."
            yield name, f"Story {name} {words}"


def _is_count(given: object) -> bool:
    return type(given) is int and given >= 0


_REQUIRED: "tuple[tuple[str, Callable[[Any], bool], str], ...]" = (
    ("title", lambda v: isinstance(v, str), "must be a string"),
    ("passes", lambda v: isinstance(v, bool), "must be true or false"),
    ("priority", lambda v: type(v) in (int, float), "must be a number"),
    (
        "acceptanceCriteria",
        lambda v: isinstance(v, list) and bool(v),
        "must be an array with at least one criterion",
    ),
    ("reviewStatus", _STATUSES.__contains__, f"must be null or one of {', '.join(_STATUSES[1:])}"),
    ("reviewCount", _is_count, "must be an integer from 0 on"),
    ("reviewFeedback", lambda v: isinstance(v, str), "must be a string"),
)


def wrong_fields(story: "Story") -> "Iterator[tuple[str, str]]":
    """Each field of a story that is not what it must be, and what it must be."""
    for field, is_right, words in _REQUIRED:
        if field not in story:
            yield field, "is missing"
        elif not is_right(story[field]):
            yield field, f"{words}, not {shown(story[field])}"
    names, notes = story.get("dependsOn"), story.get("notes")
    are_ids = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if names is not None and not are_ids:
        yield "dependsOn", "must be an array of story ids"
    if notes is not None and not isinstance(notes, str):
        yield "notes", "must be a string"


def _filled(given: object) -> bool:
    return isinstance(given, str) and bool(given.strip())


def inconsistent(
    listing: "Listing", cap: int = DEFAULT_CAP, before: "Fields | None" = None
) -> "Iterator[Problem]":
    """Check 2, of a list that has its shape: the invariants of every story, in any mode.

    A cap that was lowered does not make a story wrong that had more reviews `before`.
    """
    for name, story in stories_of(listing).items():
        had = (before or {}).get(name, {}).get("reviewCount")
        most = max(cap, had) if isinstance(had, int) else cap
        for words in _contradictions(story, most, cap):
            yield name, f"Story {name} {words}"


def _contradictions(story: "Story", most: int, cap: int) -> "Iterator[str]":
    passes, status = story.get("passes"), story.get("reviewStatus")
    count: Any = story.get("reviewCount")
    if passes is True and status != APPROVED:
        yield (
            f"has passes=true but reviewStatus is '{_word(status)}', not 'approved'. Only review "
            "iterations may approve stories. Set passes back to false or complete the review cycle."
        )
    if status == APPROVED and passes is not True:
        yield (
            "has reviewStatus 'approved' but passes is not true: these are out of sync. A review "
            "that approves sets both; nothing else sets either."
        )
    if status == CHANGES_REQUESTED and not _filled(story.get("reviewFeedback")):
        yield (
            "has reviewStatus 'changes_requested' but no reviewFeedback: feedback required, "
            "say what must be fixed."
        )
    if not _is_count(count):
        yield f"has an invalid reviewCount: {shown(count)} is not an integer from 0 on."
    elif count > most + 1:
        yield (
            f"has reviewCount {shown(count)}, more than the review cap of {cap} lets happen: set "
            "it back to the number of its reviews."
        )
    elif status == CHANGES_REQUESTED and count > most:
        yield (
            f"asks for changes beyond the review cap of {cap}: approve it, with the concerns that "
            f"are left in reviewFeedback behind {AT_CAP}."
        )


def _word(status: object) -> str:
    return shown(status).strip('"')


def illegal(before: "Fields", listing: "Listing", mode: str) -> "Iterator[Problem]":
    """Check 2.5, of a list that has its shape: changes that a turn in that mode may not make."""
    stories = stories_of(listing)
    yield from deleted(before, stories)
    for name, story in stories.items():
        for field, must in BORN.items() if name not in before else ():
            if not same(story.get(field), must):
                rule = (
                    "new stories must start incomplete: passes=false, reviewStatus=null, "
                    f"reviewCount=0, not {field}={shown(story.get(field))}"
                )
                yield name, f"Story {name} is new, and {rule}."
    moved: dict[str, list[Move]] = {}
    for name, field in ((name, field) for name in stories if name in before for field in DECIDED):
        was, now = before[name].get(field), stories[name].get(field)
        if not same(was, now):
            moved.setdefault(name, []).append((field, was, now))
    if mode == REVIEW:
        yield from _in_review(before, stories, list(moved))
    else:
        yield from _in_work(moved, stories, mode)


def deleted(before: "Iterable[str]", stories: "Iterable[str]") -> "Iterator[Problem]":
    """Stories that are gone: a list must not be shortened to become complete."""
    for name in before:
        if name not in stories:
            yield name, f"Story {name} was deleted. Stories are never deleted: put it back."


def same(one: object, other: object) -> bool:
    """Equal, and of one kind: to Python, true is 1."""
    return type(one) is type(other) and one == other


_LEGAL: "Mapping[str, list[Move]]" = {
    IMPLEMENT: [("reviewStatus", None, NEEDS_REVIEW)],
    REVIEW_FIX: [("reviewStatus", CHANGES_REQUESTED, NEEDS_REVIEW)],
}
_WORDS = {
    IMPLEMENT: "Implement iterations cannot set passes=true or approve stories. Only review "
    "iterations may approve. Story {name} had illegal transition: {move}.",
    REVIEW_FIX: "Review-fix iterations cannot approve stories. Story {name} must go back to "
    "needs_review for re-review. Illegal transition: {move}.",
}


def _in_work(
    moved: "Mapping[str, list[Move]]", stories: "Mapping[str, Story]", mode: str
) -> "Iterator[Problem]":
    """Implement and review-fix: one story goes to its review, and nothing else moves."""
    sent = [name for name, moves in moved.items() if moves == _LEGAL[mode]]
    for name, moves in moved.items():
        for field, was, now in (move for move in moves if move not in _LEGAL[mode]):
            words = _WORDS[mode].format(name=name, move=f"{field} {shown(was)} → {shown(now)}")
            if field == "reviewCount":
                words += f" {mode.capitalize()} iterations cannot increment reviewCount."
            yield name, words
    several = f"{mode.capitalize()} iterations may send one story to its review, not {some(sent)}."
    for name in sent:
        if len(sent) > 1:
            yield name, several
        named = [n for n in stories[name].get("dependsOn") or () if isinstance(n, str)]
        wanted = [n for n in named if n in stories and stories[n].get("passes") is not True]
        if wanted and mode == IMPLEMENT:
            words = f"depends on {some(wanted)}, to be approved first: begin there."
            yield name, f"Story {name} {words}"
        if mode == REVIEW_FIX and stories[name].get("reviewFeedback") != "":
            yield name, f"Story {name} goes back to needs_review: clear its reviewFeedback first."


def _in_review(
    before: "Fields", stories: "Mapping[str, Story]", moved: list[str]
) -> "Iterator[Problem]":
    """Exactly one story is reviewed: counted, and approved or sent back."""
    several = f"review may only modify one story, not {some(moved)}"
    if not moved:
        what = "Review one, increment its reviewCount by 1, and approve it or request changes."
        yield "", f"Review iteration made illegal transition: no story was reviewed. {what}"
    for name in moved:
        details = _review_details(before[name], stories[name])
        if len(moved) > 1:
            details = [several, *details]
        if details:
            words = "; ".join(details)
            yield name, f"Review iteration made illegal transition on story {name}: {words}."


def _review_details(old: "Mapping[str, object]", story: "Story") -> list[str]:
    status, count, had = story.get("reviewStatus"), story.get("reviewCount"), old.get("reviewCount")
    details, was = [], old.get("reviewStatus")
    if was != NEEDS_REVIEW:
        rule = "only a story with reviewStatus needs_review can be reviewed"
        details.append(f"{rule}, not {_word(was)}")
    if not isinstance(had, int) or not same(count, had + 1):
        details.append(f"review must increment reviewCount by 1, not {shown(had)} → {shown(count)}")
    if status not in (APPROVED, CHANGES_REQUESTED):
        details.append(f"it must end approved or changes_requested, not {_word(status)}")
    elif (story.get("passes") is True) is not (status == APPROVED):
        details.append(
            f"reviewStatus {status} does not go with passes={shown(story.get('passes'))}"
        )
    if status == CHANGES_REQUESTED and not _filled(story.get("reviewFeedback")):
        details.append("changes_requested needs a reviewFeedback that says what must be fixed")
    return details


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
