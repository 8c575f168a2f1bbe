"""An attempt as a program: its pipe, its result, and what nobody may do."""

import json
import os
import shutil
from pathlib import Path

import pytest

from kits.attempts import RUN, Json, Site
from kits.thorough import dealt
from kits.work_tree import git
from ralph.fleet.coordinator import hearing
from ralph.fleet.machine.attempt import _PAUSES
from ralph.kernel.turn import Ending
from ralph.processes.clock import boottime
from ralph.testing.scripted_agent.install import calls

DONE: Json = {"text": "It is done.", "files": {"made.txt": "made\n"}, "cost": 0.25}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, [DONE])


def failed(result: Json) -> Json:
    assert set(result) == {"failed"}, result
    told: Json = result["failed"]
    assert told["why"].startswith(f"{os.uname().nodename}: ")
    return told


def test_a_turn_is_taken_and_its_result_is_at_the_ref(site: Site) -> None:
    (site.project / "new").write_text("not committed\n")
    (site.project / "b").unlink()
    job = site.job(task_list=b'{"id": "T-1"}\n')
    with site.started(job) as attempt:
        attempt.lend()
        launched = attempt.until("launched")
        result = attempt.result()
        assert attempt.process.returncode == 0
        assert attempt.process.stderr
        assert attempt.process.stderr.read() == b""
    assert {name: launched[name] for name in ("dialect", "agent", "model")} == {
        "dialect": "claude",
        "agent": "claude",
        "model": "",
    }
    found = site.found(job)
    assert result == {"done": {"commit": found.commit}}
    turn = site.turn(job)
    assert (turn.text, turn.cost_usd, turn.failed) == ("It is done.", 0.25, False)
    assert site.files(found.work) == {"made.txt": "made\n"}
    assert found.head == site.work.head()
    assert found.list == b'{"id": "T-1"}\n'
    stream = site.work.repository.ask("cat-file", "blob", found.stream)
    assert stream == Path(launched["stream"]).read_bytes()
    assert b'"type": "result"' in stream or b'"type":"result"' in stream
    (call,) = calls(site.agent)
    assert call["prompt"] == "Do it."
    assert call["env"]["RALPH_RUN"] == f"{RUN}-T-1.1"
    assert call["env"]["HOME"] == str(site.home)


def test_the_agent_sees_the_task_as_a_worker_here_would(site: Site) -> None:
    (site.project / "b").write_text("changed\n")
    (site.project / "new").write_text("not committed\n")
    look = "git branch --show-current; git status --porcelain; cat .ralph/tasks.jsonl"
    site.again({"text": "ok", "tools": [{"name": "bash", "run": look}]})
    job = site.job("T 1/x", task_list=b'{"id": "T 1/x"}\n')
    assert "done" in site.made(job)
    said = site.work.repository.ask("cat-file", "blob", site.found(job).stream).decode()
    for words in ("ralph/T-1-x-", " M b", "?? new", "T 1/x"):
        assert words in said, said


def test_what_the_agent_commits_is_the_second_parent(site: Site) -> None:
    run = "echo mine > c; git add c; git -c user.name=a -c user.email=a@b commit -qm mine"
    site.again({"text": "ok", "tools": [{"name": "bash", "run": run}]})
    job = site.job()
    site.made(job)
    found = site.found(job)
    assert git(site.project, "log", "-1", "--format=%s", found.head) == "mine"
    assert git(site.project, "rev-parse", f"{found.head}^") == site.work.head()
    assert site.files(found.work) == {"c": "mine\n"}


def test_nothing_begins_before_it_is_granted(site: Site) -> None:
    with site.started(site.job()) as attempt:
        attempt.let_go()
        told = failed(attempt.result())
    assert told["passes"]
    assert calls(site.agent) == []
    assert not (site.home / ".cache").exists()


@pytest.mark.slow
def test_a_job_waits_for_its_grant(site: Site) -> None:
    with site.started(site.job()) as attempt:
        for _ in range(12):
            attempt._hear(0.25)
            assert not (site.home / "state").exists()
        attempt.lend()
        assert "done" in attempt.result()


@pytest.mark.parametrize(
    "data", dealt([b"", b"\n", b"nonsense\n", b'{"job": {"version": 3}}\n', b"x" * 200_000], 1)
)
def test_what_is_no_job_is_told_in_one_line(site: Site, data: bytes) -> None:
    with site.started(None) as attempt:
        attempt.write(data)
        attempt.let_go()
        assert not failed(attempt.result())["passes"]
        assert attempt.process.returncode == 0
        assert attempt.process.stderr
        assert attempt.process.stderr.read() == b""


def test_another_version_refuses(site: Site) -> None:
    told = failed(site.made(site.job(version="0.0.1")))
    assert "pip install 'ralph-engine[fleet]==0.0.1'" in told["remedy"]
    assert told["passes"], "another machine may have it"


@pytest.mark.parametrize("settings", dealt(["[]", "{", '{"agent": {"flags": 3}}', "[" * 9000], 1))
def test_settings_that_cannot_be_read_are_hopeless(site: Site, settings: str) -> None:
    job = site.job()
    told = failed(site.made(type(job)(**{**vars_of(job), "settings": settings})))
    assert not told["passes"]
    assert "settings of the run" in told["why"]


def vars_of(job: object) -> Json:
    return {name: getattr(job, name) for name in job.__match_args__}  # type: ignore[attr-defined]


def test_an_agent_that_is_not_there_is_named(site: Site) -> None:
    told = failed(site.made(site.job(settings={"agent": {"command": "not-there-agent"}})))
    assert "not-there-agent" in told["why"]
    assert told["passes"]


@pytest.mark.slow
def test_the_service_may_fail_the_turn(site: Site) -> None:
    site.again({"error": {"status": 529, "message": "overloaded"}})
    job = site.job()
    site.made(job)
    turn = site.turn(job)
    assert turn.failure
    assert turn.failure.passes


def test_a_remote_that_is_gone_says_what_to_type(site: Site) -> None:
    job = site.job()
    shutil.move(site.remote.url, f"{site.remote.url}.away")
    told = failed(site.made(job))
    assert f"git ls-remote {site.remote.url}" in told["remedy"]
    assert told["passes"]


def test_an_order_that_was_given_up_is_not_begun(site: Site) -> None:
    job = site.job()
    site.remote.forget(site.remote.at(job.ref))
    assert "given it up" in failed(site.made(job))["why"]
    assert calls(site.agent) == []


def test_a_fenced_attempt_brings_nothing(site: Site, tmp_path: Path) -> None:
    """Issue: "an old attempt that comes back is recorded and ignored"."""
    go = tmp_path / "go"
    wait = f"until test -e {go}; do sleep 0.05; done"
    site.again({"text": "late", "tools": [{"name": "bash", "run": wait}]})
    job = site.job()
    with site.started(job) as attempt:
        attempt.lend()
        attempt.until("launched")
        site.remote.forget(site.remote.at(job.ref))
        go.touch()
        assert "given this attempt up" in failed(attempt.result())["why"]
    assert site.remote.at(job.ref) == {}


def test_a_cut_turn_comes_back(site: Site) -> None:
    site.again({"hang": "before", "files": {"half": "done\n"}})
    job = site.job()
    with site.started(job) as attempt:
        attempt.lend()
        attempt.until("pulse")
        attempt.tell(cut={"why": "the budget is used up", "grace": 0.2})
        assert "done" in attempt.result()
    turn = site.turn(job)
    assert (turn.ending, turn.why) == (Ending.CUT, "the budget is used up")
    assert site.files(site.found(job).work) == {"half": "done\n"}


@pytest.mark.slow
def test_an_agent_that_only_does_not_exit_after_its_result_has_ended(site: Site) -> None:
    site.again({"text": "ok", "cost": 0.5, "hang": 600})
    job = site.job()
    with site.started(job) as attempt:
        attempt.lend()
        while not any(m["pulse"]["since_result"] for m in attempt.messages if "pulse" in m):
            attempt._hear(0.1)
        attempt.tell(cut={"why": "still running 10s after its result", "grace": 0.2})
        assert "done" in attempt.result()
    turn = site.turn(job)
    assert (turn.failed, turn.cost_usd) == (False, 0.5)
    assert "after its result" in turn.why


@pytest.mark.slow
def test_a_push_goes_on_after_a_moment_without_the_remote(site: Site, tmp_path: Path) -> None:
    run = f"mv {site.remote.url} {tmp_path}/away; (sleep 1; mv {tmp_path}/away {site.remote.url}) &"
    site.again({"text": "ok", "spawn": [{"run": "true"}], "tools": [{"run": run + "sleep 0"}]})
    away = tmp_path / "away"
    job = site.job()
    with site.started(job) as attempt:
        attempt.lend()
        attempt.until("launched")
        while not away.exists() and attempt.process.poll() is None:
            attempt._hear(0.05)
        if away.exists():  # the agent's child that would bring it back was ended with it
            away.rename(site.remote.url)
        assert "done" in attempt.result()


def test_a_run_spares_the_time_that_a_push_may_take() -> None:
    """Else it would cut a turn that has ended, for the time that its result is on the way."""
    assert 100 < sum(_PAUSES) < hearing._SLACK


def test_a_lease_that_ends_ends_it_all(site: Site) -> None:
    site.again({"hang": "before"})
    job = site.job(lease=5.0)
    with site.started(job) as attempt:
        until = attempt.lend()
        attempt.until("launched")
        told = failed(attempt.result())
        assert boottime() < until
    assert told["passes"]
    assert "lease is over" in told["why"]
    assert list(site.remote.at(job.ref).values()) == [job.order]


@pytest.mark.slow
def test_a_pulse_is_told_while_it_works(site: Site) -> None:
    site.again({"text": "ok", "tools": [{"run": "sleep 1.2"}]})
    with site.started(site.job()) as attempt:
        attempt.lend()
        attempt.result()
        pulses = [m["pulse"] for m in attempt.messages if "pulse" in m]
    assert 1 <= len(pulses) <= 4
    assert pulses[-1]["seconds"] > 0
    assert [m for m in attempt.messages if not {"launched", "pulse", "done"} & set(m)] == []


def test_what_a_tool_prints_is_no_answer(site: Site) -> None:
    run = 'echo \'{"done": {"commit": "x"}}\' > /proc/$PPID/fd/1; true'
    site.again({"text": "ok", "tools": [{"run": run}]})
    job = site.job()
    result = site.made(job)
    assert result == {"done": {"commit": site.found(job).commit}}


@pytest.mark.slow
def test_old_directories_go(site: Site) -> None:
    for number in range(60):
        path = site.runs / f"old-{number}"
        path.mkdir(parents=True)
        (path / "lock").touch()
        os.utime(path, (1, 1))
    site.made(site.job())
    assert len(list(site.runs.iterdir())) == 51
    assert (site.runs / f"{RUN}-T-1.1" / "001.stream").is_file()


@pytest.mark.slow
def test_a_cache_that_nobody_used_for_long_goes(site: Site) -> None:
    old = site.home / ".cache" / "ralph" / "fleet" / "old-01234567"
    old.mkdir(parents=True)
    (old / "lock").touch()
    os.utime(old / "lock", (1, 1))
    site.made(site.job())
    assert not old.exists()


def test_a_home_without_room_says_so(site: Site) -> None:
    (site.home / "state").write_text("no directory\n")
    told = failed(site.made(site.job()))
    assert "state directory" in told["why"]
    assert "RALPH_STATE_DIR" in told["remedy"]
    (site.home / "state").unlink()
    (site.home / ".cache").write_text("no directory\n")
    told = failed(site.made(site.job("T-2")))
    assert "cache" in told["why"]
    assert "XDG_CACHE_HOME" in told["remedy"]


def test_a_machine_without_git_says_so(site: Site) -> None:
    job = site.job()
    site.environ["PATH"] = str(site.root / "nothing")
    told = failed(site.made(job))
    assert "git was not found" in told["why"]
    assert "Install git" in told["remedy"]


@pytest.mark.slow
def test_a_project_below_the_top_of_its_repository(site: Site) -> None:
    site.again({"text": "ok", "files": {"made.txt": "made\n"}})
    job = site.job(inside="a", task_list=b"{}\n")
    site.made(job)
    assert site.files(site.found(job).work) == {"a/made.txt": "made\n"}
    (call,) = calls(site.agent)
    assert call["cwd"] == str(site.cache / "trees" / "0" / "a")
    elsewhere = site.root / "elsewhere"
    (elsewhere / ".ralph").mkdir(parents=True)
    site.again({"text": "ok", "tools": [{"run": f"cd ..; mv a away; ln -s {elsewhere} a"}]})
    for task in ("T-2", "T-3"):
        assert "done" in site.made(site.job(task, inside="a", task_list=b"{}\n"))
    assert (elsewhere / ".ralph").is_dir(), "nothing of the next attempt follows a link"
    assert not (elsewhere / ".ralph" / "tasks.jsonl").exists()


def test_secrets_of_the_machine_are_not_in_the_result(site: Site) -> None:
    secret = "sk-ant-api03-" + "A" * 80
    site.environ["ANTHROPIC_API_KEY"] = secret
    site.again({"text": f"I have {secret}.", "tools": [{"run": "echo $ANTHROPIC_API_KEY"}]})
    job = site.job()
    with site.started(job) as attempt:
        attempt.lend()
        attempt.result()
        assert secret not in json.dumps(attempt.messages)
    found = site.found(job)
    for name in (f"{found.commit}:result.json", found.stream):
        assert secret.encode() not in site.work.repository.ask("cat-file", "blob", name)
