"""Our hooks in somebody's settings: there once, beside all else, and gone without trace."""

import json
from typing import Any

import pytest

from ralph.files.json_edit import JsonText, JsonTextError
from ralph.hosts.settings_edit import MARK, found, installed, is_ours, uninstalled

Json = dict[str, Any]


def group(hook: str, **more: object) -> Json:
    return {**more, "hooks": [{"type": "command", "command": f"python -c '{MARK} {hook}'"}]}


OURS: Json = {"Stop": group("stop"), "PreToolUse": group("pre-tool", matcher="Bash")}
THEIRS = {"hooks": [{"type": "command", "command": "make lint"}]}
SETTINGS = [
    "{}",
    "{ }",
    '{"hooks": {}}',
    '{"hooks":{"Stop":[]}}',
    '{\n    "model": "opus",\n    "permissions": {"allow": ["Bash(ls)", "Read"]}\n}\n',
    json.dumps({"z": 1, "hooks": {"Stop": [THEIRS], "Other": [THEIRS]}, "a": [2]}, indent=2),
    json.dumps({"hooks": {"PreToolUse": [THEIRS, THEIRS]}, "a": 1}, indent="\t") + "\n",
    json.dumps({"hooks": {"Stop": [THEIRS]}}),
]


@pytest.mark.parametrize("raw", SETTINGS)
def test_in_and_out_again_to_the_byte(raw: str) -> None:
    """ "never loses or reorders what is there; exactly once"."""
    before = JsonText.of(raw)
    after = JsonText.of(installed(before, OURS))
    assert found(after) == {event: [ours] for event, ours in OURS.items()}
    assert installed(after, OURS) == after.raw
    assert uninstalled(after) == raw
    was, now = json.loads(raw), json.loads(after.raw)
    assert [key for key in now if key in was or key != "hooks"] == list(was)
    for event, groups in was.get("hooks", {}).items():
        assert now["hooks"][event][: len(groups)] == groups


def test_a_file_that_is_not_there() -> None:
    fresh = installed(None, OURS)
    assert json.loads(fresh) == {"hooks": {event: [ours] for event, ours in OURS.items()}}
    assert uninstalled(JsonText.of(fresh)) is None


@pytest.mark.parametrize("raw", [*SETTINGS, installed(None, OURS)])
def test_an_older_installation_is_replaced(raw: str) -> None:
    older = {"Stop": group("stop --old"), "Gone": group("gone")}
    text = JsonText.of(installed(JsonText.of(raw), older))
    newer = installed(text, OURS)
    assert newer == installed(JsonText.of(raw), OURS)


def test_a_command_in_our_group_that_is_not_ours_stays() -> None:
    content = {"hooks": {"Stop": [{"hooks": [*OURS["Stop"]["hooks"], *THEIRS["hooks"]]}]}}
    left = uninstalled(JsonText.of(json.dumps(content)))
    assert left is not None
    assert json.loads(left) == {"hooks": {"Stop": [THEIRS]}}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"hooks": None}, '"hooks" is not an object'),
        ({"hooks": []}, '"hooks" is not an object'),
        ({"hooks": {"Stop": {}}}, '"Stop" in "hooks" is not a list'),
    ],
)
def test_what_has_another_shape_is_left_alone(content: Json, why: str) -> None:
    text = JsonText.of(json.dumps(content))
    with pytest.raises(JsonTextError, match=why):
        installed(text, OURS)
    assert uninstalled(text) == text.raw


@pytest.mark.parametrize(
    "content",
    [
        {"hooks": {"Stop": 5, "Other": [5, {}, {"hooks": 5}, {"hooks": [5, {}]}]}},
        {"hooks": {"Stop": [{"hooks": [{"command": ["ralph.hooks.installed"]}]}]}},
        {"hooks": {"Stop": [{"hooks": [{"command": "python -m ralph hook stop"}]}]}},
        {"env": {"x": MARK}},
    ],
)
def test_odd_or_foreign_entries_are_not_ours(content: Json) -> None:
    text = JsonText.of(json.dumps(content))
    assert found(text) == {}
    assert uninstalled(text) == text.raw


def test_is_ours() -> None:
    assert is_ours(OURS["Stop"]["hooks"][0])
    assert not is_ours("ralph.hooks.installed")


def test_what_others_put_behind_ours_stays() -> None:
    content = json.loads(installed(None, OURS))
    content["hooks"]["Stop"].append(THEIRS)
    content["hooks"]["Mine"] = [THEIRS]
    left = uninstalled(JsonText.of(json.dumps(content, indent=2)))
    assert left is not None
    assert json.loads(left) == {"hooks": {"Stop": [THEIRS], "Mine": [THEIRS]}}
