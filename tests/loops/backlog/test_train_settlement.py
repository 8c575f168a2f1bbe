"""How a worker's task is settled in a merge train (ADR 48), with real git."""

import os
from pathlib import Path

import pytest
from crew_support import LINES, LIST, Crew, code_of, crew
from settlement_support import ACCEPT
from test_worker_settlement import Bench

from kits.work_tree import git
from ralph.git.checkpoint.work import Checkpoint
from ralph.kernel.facts import Proved
from ralph.kernel.findings import Finding
from ralph.kernel.value import replace
from ralph.loops.backlog.parallel.ports import Coupled
from ralph.loops.backlog.parallel.worktrees import OWN_WORK, Worktrees
from ralph.loops.backlog.store.task_file import TaskFile

__all__ = ["crew"]


@pytest.fixture
def bench(crew: Crew) -> Bench:
    """Its task has written `mine`."""
    bench = Bench(crew)
    crew.write(crew.own, "mine", "mine\n")
    bench.worker.keep(bench.state)
    return bench


def other(crew: Crew, below: Coupled | None = None, /, **files: str) -> Coupled:
    """Another task's work at the head of the train, as a commit on no branch."""
    elsewhere = crew.top.parent / "elsewhere"
    if not elsewhere.exists():
        git(crew.top, "worktree", "add", "--quiet", "--detach", str(elsewhere))
    onto = below.commit if below else git(crew.top, "rev-parse", "HEAD")
    git(elsewhere, "checkout", "--quiet", "--detach", onto)
    for name, text in files.items():
        crew.write(elsewhere, name, text)
    made = crew.commit(elsewhere, "another task")
    return Coupled(made, onto)


def coupled(bench: Bench, before: Coupled | None = None) -> Coupled:
    found = bench.worker.couple(bench.state, before)
    assert found is not None
    return found


def names(crew: Crew, tree: str) -> list[str]:
    """The files that a tree has and the project's first commit has not."""
    return git(crew.top, "diff", "--name-only", "main", tree, "--", ":!.ralph").split()


# ------------------------------------------------------------------ the chain


def test_work_is_coupled_in_no_work_tree_and_on_no_branch(bench: Bench) -> None:
    crew, before = bench.crew, other(bench.crew, theirs="theirs\n")
    seen = crew.seen(crew.own), crew.seen(crew.top)
    first, second = coupled(bench), coupled(bench, before)
    assert names(crew, first.commit) == ["mine"]
    assert names(crew, second.commit) == ["mine", "theirs"]
    assert (first.below, second.below) == (git(crew.top, "rev-parse", "HEAD"), before.commit)
    assert (crew.seen(crew.own), crew.seen(crew.top)) == seen


def test_what_git_cannot_join_is_merged_alone(bench: Bench) -> None:
    crew = bench.crew
    assert bench.worker.couple(bench.state, other(crew, mine="theirs\n")) is None
    assert git(crew.own, "status", "--porcelain", "--", ":!.ralph") == "?? mine"


def test_what_is_in_a_persons_way_is_merged_alone(bench: Bench) -> None:
    """Also where only somebody before it in the train has looked."""
    crew = bench.crew
    before = replace(other(crew, theirs="theirs\n"), theirs=frozenset({"mine"}))
    assert bench.worker.couple(bench.state, before) is None
    crew.write(crew.top, "mine", "a person's\n")
    assert bench.worker.couple(bench.state, None) is None
    (crew.top / "mine").unlink()
    crew.write(crew.top, "file", "a person's\n")
    assert coupled(bench).theirs == {"file"}


def test_a_project_that_is_elsewhere_takes_no_train(bench: Bench) -> None:
    git(bench.crew.top, "switch", "--quiet", "-c", "mine")
    assert bench.worker.couple(bench.state, None) is None


# ------------------------------------------------------------------ trying, and committing


def test_the_last_tree_is_tried_on_the_projects_head(bench: Bench) -> None:
    """As it will be: uncommitted, with the work of all in the files."""
    crew, last = bench.crew, coupled(bench, other(bench.crew, theirs="theirs\n"))
    crew.write(crew.own, "left", "by a gate\n")
    bench.worker.try_on(bench.state, last, crew.joining.head())
    assert git(crew.own, "status", "--porcelain", "--", ":!.ralph").split() == [
        "??",
        "mine",
        "??",
        "theirs",
    ]
    assert git(crew.own, "rev-parse", "HEAD") == git(crew.top, "rev-parse", "HEAD")


def test_each_commits_on_the_one_before_and_all_land_at_once(bench: Bench) -> None:
    crew, worker = bench.crew, bench.worker
    head, before = crew.joining.head(), other(bench.crew, theirs="theirs\n")
    last = coupled(bench, before)
    worker.try_on(bench.state, last, head)
    merge = worker.follow(bench.state, last, before.commit)
    state = replace(bench.state, checkpoint=merge.checkpoint, task_checkpoint=merge.checkpoint)
    stand = crew.work.trees.look()
    proof = Proved(1.0, git(crew.top, "rev-parse", f"{last.commit}^{{tree}}"), stand)
    state = replace(state, proof=replace(proof, train=("T-0", "T-1")))
    worker.record(state, ACCEPT)
    made = worker.commit(state)
    assert worker.is_predicted(made.commit, last), "records aside"
    assert not worker.is_predicted(made.commit, before)
    assert git(crew.top, "rev-parse", "HEAD") == head
    assert worker.landed(state) is None
    assert git(crew.own, "show", "--format=", "--name-only", "HEAD", "--", "mine", "theirs") == (
        "mine"
    )
    said = git(crew.own, "log", "-1", "--format=%(trailers:only)")
    assert f"Ralph-Train: T-0 T-1\nRalph-Tree: {proof.tree}" in said
    assert worker.arrive(made.commit, head) == ""
    assert git(crew.top, "rev-parse", "HEAD", "HEAD~2").split() == [made.commit, head]
    assert worker.landed(state) == made
    assert git(crew.top, "status", "--porcelain", "--", ":!.ralph") == ""
    evidence = TaskFile(str(crew.top)).record("T-1") or {}
    assert evidence["evidence"]["train"] == ["T-0", "T-1"]


def test_what_the_host_has_changed_since_stays(bench: Bench) -> None:
    """The list that the one before has ticked, and the records; the prediction has neither."""
    crew = bench.crew
    before = replace(other(crew, theirs="theirs\n"), lists=(LIST,))
    last = coupled(bench, before)
    ticked = other(crew, theirs="theirs\n", **{LIST: "- [x] one\n- [ ] two\n"})
    assert bench.worker.is_predicted(ticked.commit, before)
    bench.worker.follow(bench.state, last, ticked.commit)
    assert (crew.own / LIST).read_text() == "- [x] one\n- [ ] two\n"
    assert git(crew.own, "status", "--porcelain", "--", ":!.ralph") == "?? mine"


def test_what_the_gates_have_changed_is_in_the_last(bench: Bench) -> None:
    crew, last = bench.crew, coupled(bench, other(bench.crew, theirs="theirs\n"))
    made = other(crew, last, code="formatted\n")
    tree = git(crew.top, "rev-parse", f"{made.commit}^{{tree}}")
    proven = bench.worker.as_proven(last, Proved(1.0, tree))
    bench.worker.follow(bench.state, proven, last.below)
    assert code_of(crew.own) == "formatted\n"
    tree = git(crew.top, "rev-parse", f"{last.commit}^{{tree}}")
    assert bench.worker.as_proven(last, Proved(1.0, tree)) == last


# ------------------------------------------------------------------ a train that comes to nothing


def test_after_a_train_a_task_has_its_own_work_again(bench: Bench) -> None:
    """Also where the project is where the task began: nothing of the others' stays in its files."""
    crew, before = bench.crew, other(bench.crew, theirs="theirs\n")
    last = coupled(bench, before)
    bench.worker.try_on(bench.state, last, crew.joining.head())
    merge = bench.merge()
    assert Checkpoint.of(merge.checkpoint), "the gates have to run again"
    assert git(crew.own, "status", "--porcelain", "--", ":!.ralph") == "?? mine"
    bench.worker.follow(bench.state, last, before.commit)
    assert bench.merge().refusal == ""
    assert git(crew.own, "status", "--porcelain", "--", ":!.ralph") == "?? mine"
    assert git(crew.own, "rev-parse", "HEAD") == git(crew.top, "rev-parse", "HEAD")
    assert crew.work.repository.resolve(OWN_WORK) == "", "nobody needs it any more"


def test_a_run_that_begins_anew_finds_the_tasks_own_work(bench: Bench, tmp_path: Path) -> None:
    """Not that of others, which was in its files when the run before was killed."""
    crew, before = bench.crew, other(bench.crew, theirs="theirs\n")
    bench.worker.follow(bench.state, coupled(bench, before), before.commit)
    trees = Worktrees(str(crew.top), os.environ, str(tmp_path / "worktrees"))
    tree = trees.opened("T-2")
    git(crew.top, "-C", tree.top, "update-ref", OWN_WORK, crew.work.head())
    crew.write(Path(tree.top), "theirs", "theirs\n")
    file = TaskFile(str(crew.top))
    file.update("T-2", lambda _: {"status": "in_progress"})
    run = tmp_path / "runs" / "run-2"
    run.mkdir()
    own = crew.work.repository.resolve(f"{crew.work.refs}/work-1")
    git(crew.top, "-C", tree.top, "update-ref", OWN_WORK, own)
    assert len([*trees.put_away(file, str(run))]) == 1
    saved = (file.record("T-2") or {})["saved"]
    assert names(crew, saved) == ["mine"]
    assert names(crew, "ralph/T-2") == ["mine"]


def test_only_a_commit_of_this_task_has_landed(bench: Bench) -> None:
    """Whoever is killed on top of others' work has not landed its own."""
    crew = bench.crew
    crew.write(crew.top, "theirs", "theirs\n")
    crew.commit(crew.top, "T-2: Another")
    git(crew.own, "reset", "--quiet", "--hard", "main")
    assert bench.worker.landed(bench.state) is None


def test_logs_of_the_one_that_tried_are_there_for_the_guilty_one(
    bench: Bench, tmp_path: Path
) -> None:
    crew = bench.crew
    crew.write(tmp_path / "tried", ".ralph/guardrail_001.log", LINES)
    found = [Finding("make test", "it fails", log=log) for log in (".ralph/guardrail_001.log", "")]
    gone = Finding("other", "it fails", log=".ralph/gone.log")
    bench.worker.take_logs([*found, gone], str(tmp_path / "tried"))
    assert (crew.own / ".ralph/guardrail_001.log").read_text() == LINES
