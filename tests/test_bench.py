"""The bench runs: a table for people, JSON for programs, clear words for bad input, no traces."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BENCH = (sys.executable, "-m", "bench")
CHEAPEST = ("--quick", "--only", "turnaround", "--iterations", "3")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the bench reads /proc"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="the fake agent needs a C compiler"),
]


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Where the bench makes its directories."""
    directory = tmp_path / "scratch"
    directory.mkdir()
    return directory


def bench(scratch: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    argv = [*BENCH, "--dir", str(scratch), *words]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_one_measure_gives_a_table_and_json(scratch: Path, tmp_path: Path) -> None:
    """bench/README.md: a table, the rounds as JSON, and nothing is left behind."""
    file = tmp_path / "figures.json"
    loop = shlex.quote(f"{ROOT}/bench/loop.sh")
    again = f"again=bash {loop} {{agent}} {{iterations}} {{prompt}}"
    done = bench(scratch, *CHEAPEST, "--json", str(file), "--contender", again)
    assert done.returncode == 0, done.stderr
    head, first = done.stdout.splitlines()[:2]
    assert " ".join(head.split()) == "measure floor bash ralph again ratio aim met"
    assert first.startswith("agent start to next start  ms")
    assert first.endswith(("yes", "no"))
    found = json.loads(file.read_text("utf-8"))
    assert set(found["rows"][0]["figures"]) == {"floor", "bash", "ralph", "again"}
    assert all(figure > 0 for row in found["rows"] for figure in row["figures"].values())
    assert found["machine"]["cores"] >= 1
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
def test_a_sandbox_is_measured_where_there_can_be_one(scratch: Path, tmp_path: Path) -> None:
    """A row for a small project and one for a large one; elsewhere a row that says why not."""
    words = ("--quick", "--only", "sandbox", "--json", str(tmp_path / "figures.json"))
    done = bench(scratch, *words)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "figures.json").read_text("utf-8"))["rows"]
    assert rows[0]["name"].startswith("sandbox: ")
    if rows[0]["figures"]:
        assert [row["name"].split(", ")[-1] for row in rows[:4:2]] == ["200 files", "2,000 files"]
        assert all(row["figures"]["ralph"] > 0 for row in rows)
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
def test_the_hooks_are_measured_at_every_size_of_a_transcript(
    scratch: Path, tmp_path: Path
) -> None:
    """1, 10 and 100 MB: what a hook costs does not depend on it."""
    words = ("--quick", "--only", "hooks", "--json", str(tmp_path / "figures.json"))
    done = bench(scratch, *words)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "figures.json").read_text("utf-8"))["rows"]
    names = [row["name"] for row in rows]
    assert names[:4] == [
        *(f"post-tool hook, {size} MB" for size in (1, 10, 100)),
        "as `ralph hook post-tool`",
    ]
    assert names[4:7] == [f"stop hook, {size} MB" for size in (1, 10, 100)]
    assert all(row["figures"]["ralph"] > 0 for row in rows)
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
def test_a_large_backlog_is_measured(scratch: Path, tmp_path: Path) -> None:
    """The next task and one edit, which does not rewrite the file."""
    words = ("--quick", "--only", "tasks", "--json", str(tmp_path / "figures.json"))
    done = bench(scratch, *words)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "figures.json").read_text("utf-8"))["rows"]
    assert rows[0]["name"] == "tasks next, 2,000 tasks"
    assert all(row["figures"]["ralph"] > 0 for row in rows)
    assert rows[-1]["figures"]["ralph"] < 1000, "bytes"
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
def test_what_grows_with_the_work_is_measured(scratch: Path, tmp_path: Path) -> None:
    """A large repository beside one `git status`, and the last of many tasks beside the first."""
    file = tmp_path / "figures.json"
    done = bench(scratch, "--quick", "--only", "large", "--only", "many", "--json", str(file))
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(file.read_text("utf-8"))["rows"]}
    assert rows["a task of `tasks run`, 2,000 files"]["ratio"] > 1
    assert rows["`run` with a commit"]["figures"]["floor"] > 0
    assert rows["last beside first"]["figures"]["ralph"] > 0
    assert rows["kept in .git"]["figures"]["ralph"] > 0
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
def test_a_fleet_is_simulated_the_same_each_time(scratch: Path, tmp_path: Path) -> None:
    """With the train, beside tasks that are merged one at a time."""
    found = []
    for name in ("one", "other"):
        done = bench(scratch, "--quick", "--only", "fleet", "--json", str(tmp_path / name))
        assert done.returncode == 0, done.stderr
        found.append(json.loads((tmp_path / name).read_text("utf-8"))["rows"])
    rows = [row for row in found[0] if row["unit"] != "ms"]
    assert rows == [row for row in found[1] if row["unit"] != "ms"]
    merges = {row["name"]: row for row in rows if "merges an hour" in row["name"]}
    assert [round(row["ratio"], 1) for row in merges.values()][:2] == [1.0, 1.0]
    many = merges["200 tasks, 64 workers: merges an hour"]
    assert many["figures"]["floor"] < 360, "gates of 10 s allow no more"
    assert many["figures"]["ralph"] > 1.3 * many["figures"]["floor"]
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--iterations", "1"), "two iterations at least"),
        (("--only", "nothing"), "invalid choice"),
        (("--json", "/no/such/place/figures.json"), "cannot be written"),
        (("--contender", "nameless"), "write NAME="),
        (("--contender", "x=run {agent}"), "needs {iterations}"),
        (("--contender", "x=run '{agent} {iterations}"), "No closing quotation"),
        (("--contender", "x=/no/such/loop {agent} {iterations}"), "/no/such/loop"),
        (("--contender", "x=echo {agent} {iterations}"), "echo started the agent 0 times, not 3"),
        (("--ralph", "/no/such/ralph"), "/no/such/ralph"),
        (("--dir", "/no/such/place"), "/no/such/place"),
    ],
)
def test_bad_input_is_told_and_leaves_nothing(
    words: tuple[str, ...], told: str, scratch: Path, tmp_path: Path
) -> None:
    """Bad input: a clear error, exit 2, nothing lost and nothing left."""
    file = str(tmp_path / "figures.json")
    done = bench(scratch, *CHEAPEST, "--json", file, *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not os.path.exists(file)
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing(number: signal.Signals, scratch: Path, tmp_path: Path) -> None:
    """Ctrl+C ends every process of every contender and removes the directory."""
    words = ("--only", "turnaround", "--iterations", "100000", "--json", str(tmp_path / "json"))
    argv = [*BENCH, "--dir", str(scratch), *words]
    process = subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True)
    await_that(lambda: list(scratch.glob("*/*/times")), process)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert b"Traceback" not in said
    assert list(scratch.iterdir()) == []
    assert not processes_of(scratch)


def await_that(happened: Callable[[], object], process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert process.poll() is None, "it ended too soon"
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def processes_of(scratch: Path) -> list[str]:
    """The command lines of processes that were started for this directory."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue  # it has ended
        if str(scratch) in line:
            lines.append(line)
    return lines


@pytest.mark.slow
def test_forecasts_are_compared_with_what_came_of_them() -> None:
    """bench/README.md: a row for each kind, how often it was told, and the shares inside."""
    words = ("-m", "bench.forecasts", "--runs", "7", "--only", "run: 2 to 8")
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    head, row, together, aim = done.stdout.splitlines()
    assert head.split()[-3:] == ["iterations", "seconds", "cost_usd"]
    runs, shares, *_ = found = row.removeprefix("run: 2 to 8").split()
    told, asked = map(int, shares.split("/"))
    assert (runs, 0 < told < asked) == ("7", True)
    assert found == together.removeprefix("together").split()
    assert aim.startswith("aim: 70 to 92 % of truths inside the 80 % interval: ")
