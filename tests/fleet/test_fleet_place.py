"""Where turns are taken, by the settings: what is sent with them, and what is refused."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from kits.work_tree import git, new_repository, work_of
from ralph.errors import ConfigError
from ralph.fleet.place import Fleet, fleet_of
from ralph.kernel.value import replace
from ralph.settings.load import load
from ralph.testing.fake_fleet import FakeExecutor, FakeFleet
from ralph.text.redact import know

HERE = "tcp://127.0.0.1:8786"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "project")


def fleet(
    project: Path, settings: Mapping[str, object] = {}, command: str = "claude"
) -> Fleet | None:
    (project / ".ralph").mkdir(exist_ok=True)
    (project / ".ralph" / "settings.json").write_text(json.dumps(settings))
    loaded = load(str(project), {"fleet.address": (HERE, "--fleet")})
    return fleet_of(loaded, str(project), os.environ, command)


def sent(project: Path, settings: dict[str, object]) -> dict[str, object]:
    found = fleet(project, settings)
    assert found is not None
    told: dict[str, object] = json.loads(found.settings)
    return told


def test_there_is_none_unless_somebody_names_one(project: Path) -> None:
    assert fleet_of(load(str(project)), str(project), os.environ, "claude") is None
    none = load(str(project), {"fleet.address": ("none", "--fleet")})
    assert fleet_of(none, str(project), os.environ, "claude") is None


def test_an_address_is_written_in_one_way(project: Path) -> None:
    """Dask knows no TCP://, and takes a `/` for a part of the port."""
    for said in (f"{HERE}/", HERE.replace("tcp", "TCP"), f" {HERE}"):
        loaded = load(str(project), {"fleet.address": (said, "--fleet")})
        found = fleet_of(loaded, str(project), os.environ, "claude")
        assert found is not None
        assert found.address == HERE


def test_on_this_machine_the_repository_itself_is_the_remote(project: Path) -> None:
    git(project, "remote", "add", "origin", "https://forge.test/acme/shop")
    found = fleet(project)
    assert found is not None
    assert found.remote == str(project / ".git")


def test_a_remote_has_a_name_a_path_or_a_url(project: Path) -> None:
    git(project, "remote", "add", "team", "ssh://git@host.test/shop")
    (project.parent / "bare.git").mkdir()
    for said, meant in {
        "team": "ssh://git@host.test/shop",
        "../bare.git": str(project / "../bare.git"),
        "https://forge.test/acme/shop": "https://forge.test/acme/shop",
        "https://me@forge.test/acme/shop": "https://me@forge.test/acme/shop",
    }.items():
        found = fleet(project, {"fleet": {"remote": said}})
        assert found is not None
        assert found.remote == meant


def test_a_turn_is_told_what_it_needs_and_no_more(project: Path) -> None:
    step = {"at": 0.5, "model": "haiku"}
    told = sent(
        project,
        {
            "agent": {"model": "opus", "env": {"set": {"LEVEL": "2", "API_TOKEN": "s3cr3t-value"}}},
            "hooks": {"onTaskEnd": "curl x"},
            "notify": {"command": "mail"},
            "guardrails": [{"command": "make test"}],
            "loop": {"setup": "npm ci", "maxTasksPerRun": 3, "stepDown": step},
            "sandbox": "worktree",
        },
    )
    agent = {"command": "claude", "model": "opus", "env": {"set": {"LEVEL": "2"}}}
    assert told == {
        "agent": agent,
        "loop": {"setup": "npm ci", "stepDown": step},
        "sandbox": "worktree",
    }


def test_people_are_told_what_does_not_travel(project: Path) -> None:
    found = fleet(project, {"agent": {"env": {"set": {"API_TOKEN": "s3cr3t-value"}}}})
    assert found is not None
    assert "not sent: API_TOKEN (agent.env.set)" in found.words()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fleet": {"lease": 1.9}}, "too short"),
        ({"fleet": {"lease": 1e7}}, "too long"),
        ({"fleet": {"remote": "https://me:pass@forge.test/shop"}}, "holds a password"),
        ({"fleet": {"remote": f"https://ghp_{'a1' * 18}@forge.test/shop"}}, "holds a password"),
        ({"fleet": {"remote": f"HTTPS://{'deadbeef' * 5}@forge.test/shop"}}, "holds a password"),
        ({"fleet": {"remote": "https://forge.test/shop?private_token=x"}}, "holds a password"),
        ({"fleet": {"remote": "--upload-pack=touch x;"}}, "an option of git"),
        ({"agent": {"flags": ["--key", "sk-ant-0123456789abcdef0123456789"]}}, "hold a secret"),
        ({"agent": {"flags": ["--key", "what-we-know"]}}, "hold a secret"),
        ({"agent": {"flags": ["x" * 40_000]}}, "too long to send"),
    ],
)
def test_what_must_not_be_sent_is_refused(
    project: Path, settings: dict[str, object], words: str
) -> None:
    know({"what-we-know"})
    with pytest.raises(ConfigError, match=words) as caught:
        fleet(project, settings)
    assert caught.value.remedy
    assert "what-we-know" not in caught.value.words


def test_other_machines_need_a_remote_that_they_reach(project: Path) -> None:
    loaded = load(str(project), {"fleet.address": ("local", "--fleet")})
    assert fleet_of(loaded, str(project), os.environ, "claude") is not None
    with pytest.raises(ConfigError, match="has no TLS"):
        fleet_of(
            load(str(project), {"fleet.address": ("tcp://10.0.0.7:8786", "--fleet")}),
            str(project),
            os.environ,
            "claude",
        )


def test_a_remote_that_is_none_is_told_before_anything_is_begun(project: Path) -> None:
    wrong = fleet(project, {"fleet": {"remote": "upstraem"}})
    assert wrong is not None
    with pytest.raises(ConfigError, match="cannot reach upstraem") as caught:
        wrong.look_at_remote(str(project), os.environ)
    assert "git ls-remote upstraem" in caught.value.remedy
    assert "fleet.remote" in caught.value.remedy
    right = fleet(project)
    assert right is not None
    right.look_at_remote(str(project), os.environ)


def test_outside_a_repository_there_is_no_remote(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is in no git repository"):
        fleet(tmp_path)


def test_an_agent_that_nobody_names_is_not_guessed_elsewhere(project: Path) -> None:
    with pytest.raises(ConfigError, match="no agent is named"):
        fleet(project, command="none")


@pytest.mark.parametrize(
    ("slots", "wanted", "said"),
    [
        (2, 2, ()),
        (2, 6, ("The fleet has 2 slots: other tasks wait until one is free",)),
        (0, 2, ("ralph fleet worker --scheduler tcp://127.0.0.1:8786",)),
        (0, 1, ("The fleet has no workers", "--parallel N")),
    ],
)
def test_a_fleet_that_has_too_few_slots_is_told_before_anybody_waits(
    project: Path, slots: int, wanted: int, said: tuple[str, ...]
) -> None:
    found = fleet(project)
    assert found is not None
    lines = list(replace(found, executor=FakeExecutor(FakeFleet(slots=slots))).lacks(wanted))
    assert len(lines) == len(said)
    assert all(part in line for part, line in zip(said, lines, strict=True))


def test_a_run_that_begins_anew_waits_for_what_machines_may_still_have(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agents of a run that was killed go on until their leases are over."""
    now = 1000.0
    monkeypatch.setattr("ralph.fleet.place.boottime", lambda: now)
    repository = work_of(project).repository
    for ref in ("one/T-1/2", "two/T-2/1", "one/start", "one/T-3/x"):
        repository.ask("update-ref", f"refs/ralph/{ref}", "HEAD")
    found = fleet(project, {"fleet": {"lease": 10}})
    assert found is not None
    earlier = found.earlier(repository, ["one"])
    assert "T-1: a machine may have it from a run that was killed" in "".join(earlier.words())
    assert [earlier.is_over(task) for task in ("T-1", "T-2", "T-3")] == [False, True, True]
    now += 11.3
    assert earlier.is_over("T-1")
    assert found.earlier(repository, []).words() == []
    here = replace(found, address="local")
    assert here.earlier(repository, ["one"]).is_over("T-1"), "those have ended with their run"
