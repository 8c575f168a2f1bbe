"""Whatever an adversarial agent writes in any mode, no story ends approved without a legal review.

The model keeps its own ledger of reviews and knows the law by itself; of the code under test it
sees only what the host leaves in the list. RALPH_EXAMPLES=N tries N histories, new ones each time.
"""

import json
import os
from collections import Counter
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from review_edits import EDITS, HARMLESS, SLY

from kits.cases import opening
from kits.review_cases import Listing, Story, approved, listing, returned, story, waiting
from kits.thorough import examples
from ralph.kernel.tasks.select import next_story
from ralph.loops.stories.file import as_text, tasks_of
from ralph.review.law import MODES, NotAListError, malformed, parsed
from ralph.review.repair import Law, undone

EXAMPLES = int(os.environ.get("RALPH_EXAMPLES", "0"))
SEEN: Counter[str] = Counter()
TRIPLE = ("passes", "reviewStatus", "reviewCount")
SUBSTANCE = ("title", "description", "acceptanceCriteria")
FRESH = (False, None, 0)

VALUES = st.sampled_from(
    [
        *(None, True, False, 0, 1, -1, 1.0, 2, 3, 10**30, "", " ", "x", "US-001"),
        *("approved", "needs_review", "changes_requested", "APPROVED"),
        *([], {}, ["approved"], [[["x"]]], {"passes": True}),
    ]
).map(deepcopy)
PLACE = st.integers(0, 5)
EDIT = st.tuples(st.sampled_from(sorted(EDITS)) | st.sampled_from(SLY), PLACE, PLACE, VALUES)
HARMLESS_EDIT = st.tuples(st.sampled_from(sorted(HARMLESS)), PLACE, PLACE, VALUES)
BEGUN = st.sampled_from([story, waiting, waiting, returned, approved])


def triple(one: Story) -> tuple[Any, ...]:
    return tuple(one.get(field) for field in TRIPLE)


def differ(one: object, other: object) -> bool:
    """To Python, true is 1; to JSON it is not."""
    return json.dumps(one) != json.dumps(other)


def by_id(given: Any) -> dict[str, Story]:  # noqa: ANN401  whatever an agent wrote
    return {one["id"]: one for one in given["userStories"]}


def moved(before: Listing, after: Any) -> list[str]:  # noqa: ANN401
    """Stories that were there and of which something was decided since."""
    old, new = by_id(before), by_id(after)
    return [name for name in old if name in new and differ(triple(old[name]), triple(new[name]))]


def spelled(given: object) -> bytes:
    """As an agent writes it; half characters and infinite numbers too."""
    return json.dumps(given).encode()


class Ledger:
    """What the model knows of each story: how often it was reviewed, and as what approved."""

    def __init__(self, first: Listing) -> None:
        self.reviews = {name: one["reviewCount"] for name, one in by_id(first).items()}
        self.approved = {n: self.kept(one) for n, one in by_id(first).items() if one["passes"]}

    @staticmethod
    def kept(one: Story) -> list[Any]:
        return [one.get(field) for field in (*SUBSTANCE, "reviewFeedback")]

    def settle(self, before: Listing, written: object, after: Listing, law: Law) -> None:
        """Judge what the host let stand of what the agent wrote, and take it down."""
        old, new = by_id(before), by_id(after)
        assert set(old) <= set(new), "a story has disappeared"
        for name in set(new) - set(old):
            assert not differ(triple(new[name]), FRESH), "a story was born with a review"
            self.reviews[name] = 0
        changed = moved(before, after)
        assert len(changed) <= 1, "more than one story was decided"
        for name in changed:
            if law.mode == "review":
                self.review(old[name], new[name], law)
                self.written_alone(name, before, written)
            else:
                self.send(old[name], new[name], law.mode)

    @staticmethod
    def send(old: Story, new: Story, mode: str) -> None:
        came = {"implement": None, "review-fix": "changes_requested"}[mode]
        assert triple(old) == (False, came, old["reviewCount"])
        assert not differ(triple(new), (False, "needs_review", old["reviewCount"]))
        assert mode == "implement" or new["reviewFeedback"] == ""
        SEEN[f"sent by {mode}"] += 1

    def review(self, old: Story, new: Story, law: Law) -> None:
        name, count = new["id"], old["reviewCount"] + 1
        assert old["reviewStatus"] == "needs_review", "reviewed what was not to be reviewed"
        assert new["reviewCount"] == count
        assert type(new["reviewCount"]) is int
        self.reviews[name] += 1
        SEEN["reviewed"] += 1
        if new["reviewStatus"] == "approved":
            assert new["passes"] is True
            assert not differ([old.get(f) for f in SUBSTANCE], [new.get(f) for f in SUBSTANCE])
            self.approved[name] = self.kept(new)
            SEEN["approved"] += 1
        else:
            assert triple(new) == (False, "changes_requested", count)
            assert new["reviewFeedback"].strip(), "changes requested without a word"
            assert count < law.cap, "the cap did not end the cycle"

    @staticmethod
    def written_alone(name: str, before: Listing, written: Any) -> None:  # noqa: ANN401
        """It was the agent who reviewed it, and it touched no other story's review."""
        assert moved(before, written) == [name]
        new = by_id(written)
        assert set(by_id(before)) <= set(new)
        assert all(triple(one) == FRESH for n, one in new.items() if n not in by_id(before))
        assert new[name]["reviewStatus"] in ("approved", "changes_requested")


class Reviewed(RuleBasedStateMachine):
    """A host, a list, and an agent that writes whatever it likes."""

    @initialize(begun=st.lists(BEGUN, min_size=1, max_size=4), cap=st.integers(1, 3))
    def begin(self, begun: list[Any], cap: int) -> None:
        stories = [make(f"US-00{n}", priority=n) for n, make in enumerate(begun, 1)]
        self.list, self.cap = listing(*stories), cap
        self.ledger = Ledger(self.list)

    def law(self, other: str | None) -> Law:
        """The mode is the host's choice, by R's priority, where it has one."""
        chosen = next_story(opening(*tasks_of(self.list)))
        mode = chosen.mode.value if chosen is not None else MODES[len(self.list) % 3]
        return Law(other or mode, self.cap)

    # ------------------------------------------------------------ what the agent does

    @rule(edits=st.lists(HARMLESS_EDIT, max_size=2), likes=st.booleans(), place=PLACE)
    def work_honestly(self, edits: list[Any], likes: bool, place: int) -> None:
        law, written = self.law(None), deepcopy(self.list)
        self.do_the_work(written, law, likes, place)
        for name, one, other, given in edits:
            HARMLESS[name](written, one, other, given)
        SEEN["honest turns"] += 1
        late = law.capped(self.list, parsed(spelled(written))) is not None
        if moved(self.list, written) or law.mode != "review":
            assert late or law.repaired(self.list, parsed(spelled(written))) is None
            assert late or law.problems(self.list, parsed(spelled(written))) == []
        self.host(spelled(written), law)

    @rule(
        edits=st.lists(EDIT, min_size=1, max_size=2),
        works=st.booleans(),
        likes=st.booleans(),
        place=PLACE,
        other=st.sampled_from([None, None, None, *MODES]),
    )
    def work_dishonestly(
        self, edits: list[Any], works: bool, likes: bool, place: int, other: str | None
    ) -> None:
        law, written = self.law(other), deepcopy(self.list)
        if works:
            self.do_the_work(written, law, likes, place)
        whole: Any = written
        for name, one, another, given in edits:
            whole = EDITS[name](whole, one, another, given) or whole
        self.host(spelled(whole), law)

    @rule(raw=st.one_of(st.binary(max_size=20), st.text(max_size=20).map(str.encode)), cut=PLACE)
    def write_no_list(self, raw: bytes, cut: int) -> None:
        half = spelled(self.list)[: -cut - 1]
        self.host(raw if cut % 2 else half, self.law(None))

    @rule(edits=st.lists(EDIT, max_size=3), likes=st.booleans())
    def be_cut_off(self, edits: list[Any], likes: bool) -> None:
        """A turn that is taken again has decided nothing."""
        whole: Any = deepcopy(self.list)
        self.do_the_work(whole, self.law(None), likes, 0)
        for name, one, another, given in edits:
            whole = EDITS[name](whole, one, another, given) or whole
        after: Any = undone(self.list, self.read(spelled(whole)))
        assert moved(self.list, after) == []
        self.keep(self.list, None, after, Law("implement", self.cap))

    def do_the_work(self, written: Listing, law: Law, likes: bool, place: int) -> None:
        """What R's prompt asks for in this mode, if there is anything to do."""
        came = {"implement": None, "review": "needs_review", "review-fix": "changes_requested"}
        done = {name for name, one in by_id(written).items() if one["passes"]}
        ready = [
            one
            for one in written["userStories"]
            if triple(one)[:2] == (False, came[law.mode])
            and (
                law.mode != "implement"
                or not ({*(one.get("dependsOn") or ())} & {*by_id(written)}) - done
            )
        ]
        if not ready:
            return
        one = ready[place % len(ready)]
        if law.mode != "review":
            one |= {"reviewStatus": "needs_review", "reviewFeedback": "", "notes": "I did it"}
        elif likes:
            one |= {"reviewStatus": "approved", "passes": True, "notes": "it is good"}
        else:
            one |= {"reviewStatus": "changes_requested", "reviewFeedback": "not yet"}
        one["reviewCount"] += law.mode == "review"

    # ------------------------------------------------------------ what the host does

    @staticmethod
    def read(raw: bytes) -> object:
        try:
            return parsed(raw)
        except NotAListError:
            SEEN["no list"] += 1
            return None

    def host(self, raw: bytes, law: Law) -> None:
        before, written = deepcopy(self.list), self.read(raw)
        SEEN["turns"] += 1
        capped = law.capped(before, written)
        repaired = law.repaired(before, written)
        if capped is not None:
            SEEN["approved at the cap"] += 1
            after: Any = capped[0]
            assert law.problems(before, after) == []
        elif repaired is not None:
            SEEN["repaired"] += 1
            after = repaired
            self.check_mended(before, after, law)
        else:
            SEEN["legal turns"] += 1
            after = written
        assert not differ(before, self.list), "the host's memory was changed"
        event(f"{law.mode}: {'capped' if capped else 'repaired' if repaired else 'legal'}")
        self.keep(before, written, after, law)

    @staticmethod
    def check_mended(before: Listing, repaired: Any, law: Law) -> None:  # noqa: ANN401
        """Nothing is left to mend, and a review that was wrong has decided nothing."""
        quiet = Law("implement" if law.mode == "review" else law.mode, law.cap)
        assert quiet.problems(before, repaired) == []
        again = law.repaired(before, repaired)
        assert again is None or not differ(again, repaired)
        assert law.mode != "review" or moved(before, repaired) == []

    def keep(self, before: Listing, written: object, after: Any, law: Law) -> None:  # noqa: ANN401
        self.ledger.settle(before, written, after, law)
        assert not differ(parsed(as_text(after)), after), "it is not what is read again"
        self.list = after

    # ------------------------------------------------------------ what holds

    @invariant()
    def no_story_is_approved_without_a_review(self) -> None:
        for name, one in by_id(self.list).items() if hasattr(self, "list") else ():
            good = name in self.ledger.approved
            assert (one["passes"], one["reviewStatus"] == "approved") == (good, good)
            assert not good or self.ledger.kept(one) == self.ledger.approved[name]

    @invariant()
    def every_review_is_counted_and_no_other(self) -> None:
        if hasattr(self, "list"):
            counts = {name: one["reviewCount"] for name, one in by_id(self.list).items()}
            assert not differ(
                dict(sorted(counts.items())), dict(sorted(self.ledger.reviews.items()))
            )
            assert malformed(self.list) == []


def test_no_agent_approves_a_story_by_anything_but_a_review() -> None:
    """ADR 20: "the list is the law and the host enforces it". Enough happens to say so."""
    SEEN.clear()
    many = settings(
        max_examples=EXAMPLES or examples(600),
        stateful_step_count=20,
        derandomize=not EXAMPLES,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Reviewed, settings=many)
    print(dict(SEEN))
    for what in ("honest turns", "legal turns", "repaired", "no list", "sent by review-fix"):
        assert SEEN[what] > many.max_examples // 6, SEEN
    least = many.max_examples // 12
    assert SEEN["approved"] > least < SEEN["approved at the cap"], SEEN
