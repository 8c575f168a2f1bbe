"""`ralph tasks learn` shows what the records say."""

import json
from pathlib import Path
from typing import Any

import pytest

from ralph.cli.tasks.show import learn
from ralph.loops.backlog.store.records import Records

HELP: Any = {"help_option_names": ["-h", "--help"]}  # click remembers what it saw first


class Learn:
    """The command, in a workspace with records of its own."""

    def __init__(self, workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.workspace = workspace
        self.capsys = capsys
        self.records = Records(str(workspace), "run")

    def end(self, task: str, kind: str, status: str, **more: Any) -> None:  # noqa: ANN401
        key = f"{task}/{status}/{len(self.records.lessons())}"
        told = {"key": key, "taskId": task, "taskType": kind, "status": status}
        self.records.lesson({**told, **more})

    def __call__(self, *arguments: str) -> str:
        learn.main(list(arguments), "ralph tasks learn", standalone_mode=False, **HELP)
        said = self.capsys.readouterr()
        assert said.err == ""
        return said.out

    def json(self, *arguments: str) -> Any:  # noqa: ANN401
        return json.loads(self("--json", *arguments))


@pytest.fixture
def command(workspace: Path, capsys: pytest.CaptureFixture[str]) -> Learn:
    return Learn(workspace, capsys)


@pytest.fixture
def taught(command: Learn) -> Learn:
    took = {"iterations": 3, "seconds": 120.0, "cost": 0.5, "estimate": 2}
    command.end("T-1", "bug", "done", gates={"make test": 2}, **took)
    command.end("T-2", "bug", "blocked", iterations=10, seconds=600.0, blockers=["task limit"])
    command.end("T-3", "", "done", iterations=1, seconds=5.0)
    return command


def test_no_records_are_no_error(command: Learn) -> None:
    assert command() == (
        "Nothing was learned here yet: no task has ended. Work on some: ralph tasks run\n"
    )
    assert command.json()["types"] == []
    assert command.json()["total"]["iterations"] is None


def test_people_read_a_table(taught: Learn) -> None:
    """ "iterations and time against estimate, blockers, by task type"."""
    assert (
        taught()
        == """\
type       done  blocked  iterations         time           cost  of estimate
bug           1        1   6.5 (6.5)      6m (6m)  $0.50 ($0.50)        150 %
(no type)     1        0       1 (1)  5.0s (5.0s)              –            –
all           2        1    4.67 (3)    4m2s (2m)  $0.50 ($0.50)        150 %

Iterations, time and cost: mean of a task (median).

Tasks of type bug were blocked by:
    1 × task limit

Tasks of type bug met most objections from:
    2 × make test
"""
    )


def test_programs_read_one_object(taught: Learn) -> None:
    bug, other = taught.json()["types"]
    assert bug == {
        "type": "bug",
        "done": 1,
        "blocked": 1,
        "iterations": {"count": 2, "mean": 6.5, "median": 6.5},
        "seconds": {"count": 2, "mean": 360.0, "median": 360.0},
        "cost": {"count": 1, "mean": 0.5, "median": 0.5},
        "ratio": {"count": 1, "mean": 1.5, "median": 1.5},
        "blockers": [{"reason": "task limit", "count": 1}],
        "gates": [{"gate": "make test", "count": 2}],
    }
    assert (other["type"], other["cost"], other["blockers"]) == ("", None, [])
    assert taught.json()["total"]["done"] == 2


def test_one_type_only(taught: Learn) -> None:
    assert "(no type)" not in taught("--type", "bug")
    assert "all " not in taught("--type", "bug")
    assert taught.json("--type", "bug")["total"]["done"] == 1
    assert taught("--type", "feature") == (
        "No task of type feature has ended yet. There are: (no type), bug\n"
    )


def test_broken_lines_and_odd_values_do_not_matter(taught: Learn) -> None:
    """An agent can write to the file, and must not write to the terminal."""
    with (taught.workspace / ".ralph" / "learning.jsonl").open("ab") as file:
        file.write(b'nonsense\n{"taskId": 7}\n\xff\n{"taskId":"T-9","status":"done","gates":[],')
        file.write(b'"taskType":"\\u001b]0;x\\u0007bug","iterations":1e999}\n{"torn')
    assert "\x1b" not in taught()
    assert taught.json()["total"]["done"] == 3


def test_another_directory(taught: Learn, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    assert taught("-C", str(tmp_path / "elsewhere")).startswith("Nothing was learned")


def test_the_help_has_examples(command: Learn, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        learn.main(["--help"], "ralph tasks learn", **HELP)
    assert ended.value.code == 0
    assert "ralph tasks learn --type bug" in capsys.readouterr().out
