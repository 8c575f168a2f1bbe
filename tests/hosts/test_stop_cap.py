"""Claude's cap of held stops: lifted beside whatever the settings say, and back to the byte."""

import json

import pytest

from ralph.files.json_edit import JsonText, JsonTextError
from ralph.hosts.stop_cap import CAP, MARK, cap_in, lifted, unlifted

SETTINGS = [
    "{}",
    '{"env": {}}',
    '{"env":{"A":"1"}}',
    json.dumps({"env": {"A": "1", "B": "2"}, "hooks": {"Stop": []}}, indent=2) + "\n",
    json.dumps({"z": 1, "a": [2]}, indent="\t"),
]


@pytest.mark.parametrize("raw", SETTINGS)
def test_in_and_out_again_to_the_byte(raw: str) -> None:
    after = lifted(JsonText.of(raw))
    assert cap_in(JsonText.of(raw)) is None
    assert json.loads(after)["env"] == {**json.loads(raw).get("env", {}), CAP: "0", MARK: "1"}
    assert lifted(JsonText.of(after)) == after
    assert cap_in(JsonText.of(after)) == "0"
    assert unlifted(JsonText.of(after)) == raw


@pytest.mark.parametrize("cap", ["0", "20"])
def test_a_cap_of_a_persons_own_stays(cap: str) -> None:
    raw = json.dumps({"env": {CAP: cap}})
    assert lifted(JsonText.of(raw)) == raw
    assert unlifted(JsonText.of(raw)) == raw


def test_one_that_was_changed_since_is_a_persons() -> None:
    raw = json.dumps({"env": {CAP: "20", MARK: "1"}})
    assert json.loads(unlifted(JsonText.of(raw))) == {"env": {CAP: "20"}}


@pytest.mark.parametrize("raw", ['{"env": 5}', '{"env": [1]}'])
def test_another_shape_is_left_alone(raw: str) -> None:
    with pytest.raises(JsonTextError, match='"env" is not an object'):
        lifted(JsonText.of(raw))
    assert unlifted(JsonText.of(raw)) == raw
    assert cap_in(JsonText.of(raw)) is None
    assert cap_in(JsonText.of(json.dumps({"env": {CAP: 0}}))) is None
