"""Round trips lose nothing that the format can hold: whatever a list of stories says, it says the
same after it was read and written."""

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from story_list_support import as_json, records_of, written

from kits.thorough import examples
from ralph.formats.prd import IANNUTTALL, PRD, RALPH_TUI, STORIES, StoryList

ALL = (PRD, RALPH_TUI, STORIES, IANNUTTALL)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
LINES = st.one_of(
    WORDS,
    st.sampled_from(
        [
            "Acceptance criteria:\n- a",
            "x\n\nAcceptance criteria:\n- a\n  b",
            "A review asks for changes:\nall",
            "\n\n",
            "- a\n- b",
        ]
    ),
)
NUMBERS = st.one_of(st.integers(-3, 9), st.integers(), st.floats(-5, 5))
ANY = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(["US-1", "US-2", "US-3", "a b", "ü", "7"])
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "description": LINES | ANY,
    "acceptanceCriteria": st.lists(LINES, max_size=3) | ANY,
    "priority": NUMBERS | ANY,
    "passes": st.booleans(),
    "notes": LINES | ANY,
    "labels": st.lists(WORDS, max_size=3) | ANY,
    "dependsOn": st.lists(KEYS, max_size=3) | ANY,
    "completionNotes": WORDS,
    "reviewStatus": st.sampled_from([None, "needs_review", "changes_requested", "approved"]) | ANY,
    "reviewCount": st.integers(0, 4) | ANY,
    "reviewFeedback": LINES | ANY,
    "status": st.sampled_from(["open", "in_progress", "done", "?"]),
    "startedAt": WORDS,
    "another": ANY,
}


@st.composite
def stories(draw: st.DrawFn, form: StoryList) -> dict[str, Any]:
    """A list with any stories that can be told apart, their keys in any order."""
    keys = draw(st.lists(KEYS, unique=True, max_size=4))
    made = []
    for key in keys:
        names = draw(st.lists(st.sampled_from(sorted(FIELDS)), unique=True))
        names = [name for name in names if name not in form.refused]
        title = draw(WORDS.filter(str.strip))
        story = {"id": key, "title": title, **{name: draw(FIELDS[name]) for name in names}}
        order = draw(st.permutations(list(story)))
        made.append({name: story[name] for name in order})
    root = draw(st.dictionaries(st.sampled_from(["project", "name", "metadata", "x"]), ANY))
    return {**root, form.stories: made, **draw(st.dictionaries(st.just("after"), ANY))}


@pytest.mark.parametrize("form", ALL, ids=[form.name for form in ALL])
@settings(max_examples=examples(100))
@given(data=st.data())
def test_any_list_is_the_same_after_a_round_trip(form: StoryList, data: st.DataObject) -> None:
    """ "Round trips lose nothing the other format can hold", to the letter."""
    listing = data.draw(stories(form))
    assume(listing[form.stories])  # without a task there is nothing to keep the rest in
    text = as_json(listing)
    assert json.loads(written(form, text)) == listing
    assert written(form, text) == text


@pytest.mark.parametrize("form", ALL, ids=[form.name for form in ALL])
@settings(max_examples=examples(100))
@given(data=st.data())
def test_what_is_written_is_read_as_the_same(form: StoryList, data: st.DataObject) -> None:
    """Also where the list is written in another order, and tasks have changed here."""
    reading = form.read(as_json(data.draw(stories(form))), "list")
    records = records_of(reading, form.name)
    for record in records:
        record["status"] = data.draw(st.sampled_from(["pending", "done"]))
        record["description"] = data.draw(LINES)
        record["notes"] = data.draw(WORDS)
        record["priority"] = data.draw(st.integers(-9, -1))
        record["tags"] = data.draw(st.lists(WORDS, max_size=2))
    again = form.read(form.write(records, reading.root).text, "list")
    for record, item in zip(records, again.items, strict=True):
        fields = {name: held for name, held in record.items() if held not in ("", [], None)}
        known = ["title", "description", "status"]
        if form is not IANNUTTALL:
            known += ["notes", "tags", "priority"]
        if form is STORIES:
            known.remove("status")  # what is done here waits for its review there
            known.remove("notes")  # what a review asks for goes with the status
        assert item.key == record["source"]["key"]
        assert {n: item.fields.get(n) for n in known} == {n: fields.get(n) for n in known}
