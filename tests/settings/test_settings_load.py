"""H §Testing Requirements: "Test settings loading and merging"."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from settings_files import BASE, H_EXAMPLE, LOCAL, lay

from ralph.errors import ConfigError
from ralph.kernel.limits import Prices
from ralph.kernel.verdict import Placement
from ralph.settings.load import load, merge
from ralph.settings.paths import Json
from ralph.settings.schema import Settings


def test_no_files_give_the_defaults_of_h(tmp_path: Path) -> None:
    """H §Defaults; a workspace without .ralph is fine."""
    loaded = load(str(tmp_path))
    assert loaded.settings == Settings()
    assert loaded.settings.maximum_iterations == 10
    assert loaded.settings.completion_response == "DONE"
    assert loaded.settings.output_truncate_chars == 5000
    assert loaded.settings.stream_agent_output is True
    assert (loaded.files, loaded.origins, loaded.merged) == ((), {}, {})


# B §Configuration, the example, word for word.
B_EXAMPLE = """{
  "loop": {
    "maxIterationsPerTask": 10,
    "maxTimePerTask": 1800,
    "maxCostPerTask": 5,
    "maxTasksPerRun": 50,
    "maxTimePerRun": 14400,
    "maxCostPerRun": 50,
    "onFailure": "continue",
    "parallelism": 1
  }
}
"""


def test_the_example_of_b_is_the_default(tmp_path: Path) -> None:
    """B §Configuration, §Per-Task Limits, §Global Limits."""
    loaded = load(lay(tmp_path, B_EXAMPLE))
    assert loaded.settings == Settings()
    assert loaded.origins["loop.maxTimePerRun"] == BASE
    assert loaded.settings.loop.max_cost_per_day is None


def test_the_example_of_h_loads(tmp_path: Path) -> None:
    """H §Settings File, the example."""
    loaded = load(lay(tmp_path, H_EXAMPLE))
    assert loaded.files == (BASE,)
    assert loaded.settings.agent.flags == ("--model opus", "--no-auto-compact")
    assert [g.command for g in loaded.settings.guardrails] == ["make lint", "make test"]
    assert loaded.settings.scm is not None
    assert loaded.settings.scm.tasks == ("commit", "push")
    assert loaded.merged == json.loads(H_EXAMPLE)


def test_the_merge_example_of_h(tmp_path: Path) -> None:
    """H §Deep Merge Behavior, the example."""
    base = {"agent": {"command": "claude", "flags": ["--model opus"]}}
    local = {"agent": {"flags": ["--verbose"]}}
    loaded = load(lay(tmp_path, base, local))
    assert loaded.merged == {"agent": {"command": "claude", "flags": ["--verbose"]}}
    assert loaded.files == (BASE, LOCAL)
    assert loaded.origins == {"agent.command": BASE, "agent.flags": LOCAL}


def test_flags_have_the_last_word(tmp_path: Path) -> None:
    """H §Loading Priority: settings.json, settings.local.json, CLI flags."""
    loaded = load(
        lay(tmp_path, {"maximumIterations": 1, "failAfter": 1}, {"maximumIterations": 2}),
        {"maximumIterations": (3, "-m"), "agent.model": ("opus", "--model")},
    )
    assert loaded.settings.maximum_iterations == 3
    assert loaded.settings.agent.model == "opus"
    assert loaded.origins == {
        "maximumIterations": "-m",
        "failAfter": BASE,
        "agent.model": "--model",
    }


@pytest.mark.parametrize("hidden_by", ["a flag", "the local file"])
def test_a_bad_value_is_refused_also_where_something_hides_it(
    tmp_path: Path, hidden_by: str
) -> None:
    """The issue: "a bad value in the settings file is refused also when a flag hides it"."""
    base = {"maximumIterations": "many", "guardrails": [{"hint": "x"}]}
    local: Json = {"guardrails": []}
    local |= {} if hidden_by == "a flag" else {"maximumIterations": 3}
    flags = {"maximumIterations": (3, "-m")} if hidden_by == "a flag" else {}
    with pytest.raises(ConfigError) as caught:
        load(lay(tmp_path, base, local), flags)
    first, second = caught.value.message.splitlines()
    assert first.startswith(f'{BASE}: maximumIterations: found "many"; allowed: a whole number')
    assert second.startswith(f"{BASE}: guardrails[0]: command is missing")
    assert f"Fix {BASE};" in caught.value.remedy


def test_what_one_file_lacks_another_may_have(tmp_path: Path) -> None:
    base, local = ({"agent": {"prices": {name: 1}}} for name in ("input", "output"))
    assert load(lay(tmp_path, base, local)).settings.agent.prices is not None
    (tmp_path / LOCAL).unlink()
    with pytest.raises(ConfigError, match="output is missing"):
        load(str(tmp_path))


def test_a_flag_that_was_not_given_changes_nothing(tmp_path: Path) -> None:
    """None is how the command line says so."""
    loaded = load(lay(tmp_path, {"maxTime": 5}), {"maxTime": (None, "--max-time")})
    assert loaded.settings.max_time == 5
    assert loaded.origins == {"maxTime": BASE}


def test_local_settings_alone_are_enough(tmp_path: Path) -> None:
    """H: the local file is optional, and so is the other."""
    loaded = load(lay(tmp_path, local={"failAfter": 0}))
    assert (loaded.settings.fail_after, loaded.files) == (0, (LOCAL,))


@pytest.mark.parametrize(
    ("base", "local"),
    [
        ({"maximumIterations": 3}, {"maximumIterations": None}),
        ({"agent": {"command": "x", "env": {"set": {"A": "1"}}}}, {"agent": None}),
        ({"agent": {"env": {"set": {"A": "1"}}}}, {"agent": {"env": {"set": {"A": None}}}}),
        ({"scm": {"tasks": ["commit"]}}, {"scm": None}),
        ({"maximumIterations": None, "guardrails": None}, {}),
    ],
)
def test_null_is_the_default(tmp_path: Path, base: object, local: object) -> None:
    """null in the local file takes a value back, at any depth."""
    assert load(lay(tmp_path, base, local)).settings == Settings()


def test_null_in_a_guardrail_is_the_default(tmp_path: Path) -> None:
    """Objects in lists are no exception."""
    guardrail = {"command": "x", "failAction": None, "hint": None, "timeout": None}
    (loaded,) = load(lay(tmp_path, {"guardrails": [guardrail]})).settings.guardrails
    assert (loaded.fail_action, loaded.hint, loaded.timeout) == (Placement.APPEND, None, None)


@pytest.mark.parametrize("action", ["prepend", "Prepend", "PREPEND"])
def test_fail_action_in_any_case(tmp_path: Path, action: str) -> None:
    """H §Init Command normalizes it; a file may hold it in any case too."""
    loaded = load(lay(tmp_path, {"guardrails": [{"command": "x", "failAction": action}]}))
    assert loaded.settings.guardrails[0].fail_action is Placement.PREPEND


def test_cached_is_another_name_of_cache_read(tmp_path: Path) -> None:
    """Also when the two files use different names. A price that is not given is that of input."""
    prices = {"input": 3, "output": 15, "cached": 0.3}
    loaded = load(
        lay(tmp_path, {"agent": {"prices": prices}}, {"agent": {"prices": {"cacheRead": 0.5}}})
    )
    assert loaded.settings.agent.prices is not None
    assert loaded.settings.agent.prices.prices() == Prices(3, 15, cache_read=0.5, cache_write=3)


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    """Some editors write one."""
    assert load(lay(tmp_path, b'\xef\xbb\xbf{"failAfter": 7}')).settings.fail_after == 7


def test_settings_may_be_a_link(tmp_path: Path) -> None:
    """Shared settings are often linked into a workspace."""
    workspace = lay(tmp_path)
    (tmp_path / "shared.json").write_text('{"failAfter": 7}')
    os.symlink(tmp_path / "shared.json", tmp_path / ".ralph" / "settings.json")
    assert load(workspace).settings.fail_after == 7


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    """ADR 12: settings are read once, at the start."""
    settings = load(lay(tmp_path, {})).settings
    with pytest.raises(AttributeError):
        settings.maximum_iterations = 99  # type: ignore[misc]


leaf_values = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers())


def objects() -> st.SearchStrategy[Json]:
    """Settings of one shape: keys that hold objects ("o1"), and keys that hold leaves ("l1")."""
    leaf_keys, object_keys = st.sampled_from(["l1", "l2", "l3"]), st.sampled_from(["o1", "o2"])
    flat = st.dictionaries(leaf_keys, leaf_values)
    return st.recursive(
        flat,
        lambda inner: st.builds(
            lambda leaves, nested: {**leaves, **nested}, flat, st.dictionaries(object_keys, inner)
        ),
        max_leaves=6,
    )


@given(objects())
def test_nothing_laid_over_settings_changes_nothing(settings: Json) -> None:
    """{} is the identity of the merge, on both sides."""
    assert merge(settings, {}) == settings
    assert merge({}, settings) == settings


@given(objects(), objects(), objects())
def test_layers_may_be_merged_in_any_grouping(base: Json, local: Json, flags: Json) -> None:
    """H §Loading Priority: only the order of the layers counts."""
    assert merge(merge(base, local), flags) == merge(base, merge(local, flags))


@given(objects(), objects())
def test_each_leaf_is_the_upper_one(base: Json, over: Json) -> None:
    """H §Deep Merge: scalars override, arrays replace, keys not in local are preserved."""
    before = json.dumps([base, over])
    merged = merge(base, over)
    for key in base.keys() | over.keys():
        if key.startswith("l"):
            assert merged[key] == (over if key in over else base)[key]
        else:
            assert merged[key] == merge(base.get(key, {}), over.get(key, {}))
    assert json.dumps([base, over]) == before, "merging changes neither side"
