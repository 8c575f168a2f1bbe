"""What would be committed, whatever an agent writes to `.git` (ADR 33)."""

import os
from pathlib import Path

import pytest

from kits.work_tree import git, new_repository
from ralph.errors import StateError
from ralph.git.attributes import flattened
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.git.checkpoint.proven_commit import ProvenCommit
from ralph.git.checkpoint.trees import GitTrees, made_by_checks, trees_of_run
from ralph.git.repository import find, repository_of_run
from ralph.kernel.ports import Committed
from ralph.kernel.world import HEAD, REFS, SETTINGS


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "top")


def trees_of(top: Path, workspace: str = "") -> GitTrees:
    """Those of a run that begins, or goes on."""
    run_dir = top.parent / "runs" / "run-1"
    run_dir.mkdir(parents=True, exist_ok=True)
    trees = trees_of_run(str(top / workspace), os.environ, str(run_dir))
    assert trees is not None
    trees.begin()
    trees.pin()
    return trees


def text(top: Path, tree: str, path: str) -> str:
    return git(top, "cat-file", "blob", f"{tree}:{path}")


def names(top: Path, tree: str) -> list[str]:
    return git(top, "ls-tree", "-r", "--name-only", tree).splitlines()


HIDDEN = {
    "assume-unchanged": ("update-index", "--assume-unchanged", "b"),
    "skip-worktree": ("update-index", "--skip-worktree", "b"),
    "untracked cache": ("config", "core.untrackedCache", "true"),
    "file modes": ("config", "core.fileMode", "false"),
}


@pytest.mark.parametrize("how", HIDDEN)
def test_nothing_hides_a_file(top: Path, how: str) -> None:
    trees = trees_of(top)
    git(top, *HIDDEN[how])
    (top / "b").write_text("changed\n")
    assert text(top, trees.look().tree, "b") == "changed"


def test_an_index_that_somebody_wrote_is_made_anew(top: Path) -> None:
    """In place an agent can write to the state directory, too."""
    trees = trees_of(top)
    before = trees.look()
    bad = git(top, "hash-object", "-w", "--stdin")
    git(top, "update-index", "--cacheinfo", f"100644,{bad},b")
    Path(trees.view.index).write_bytes((top / ".git" / "index").read_bytes())
    Path(trees.view.directory, "config").write_text('[filter "x"]\n\tclean = echo bad\n')
    assert trees.look() == before


def test_a_look_that_is_held_reads_no_files_again(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds for the next look, and not for long; where HEAD moved meanwhile it says so."""
    trees = trees_of(top)
    (top / "new").write_text("x")
    (top / "b").unlink()
    (top / "a" / "one").write_text("two")
    stand = trees.look()
    assert ProvenCommit(trees)(stand, ("work",)).ok
    trees.hold()
    (top / "late").write_text("x")
    held = trees.look()
    assert (held.tree, held.head) == (stand.tree, git(top, "rev-parse", "HEAD"))
    seen = trees.seen
    (top / "late").unlink()
    assert trees.look() == held
    assert trees.seen == seen
    git(top, "reset", "-q", "--soft", "HEAD^")
    trees.hold()
    assert trees.look().head == stand.head
    seen = trees.seen
    assert {*seen.staged} == {"new", "b", "a/one"}
    trees.look()
    assert trees.seen == seen
    monkeypatch.setattr("ralph.git.checkpoint.trees._SOON", 0.0)
    trees.hold()
    (top / "late").write_text("x")
    assert "late" in names(top, trees.look().tree)


@pytest.mark.parametrize("between", ["nothing", "staged", "committed", "hidden"])
def test_a_run_may_begin_with_the_look_that_found_it_clean(top: Path, between: str) -> None:
    """Unless the index says something else by then, or did not tell all."""
    git(top, "add", "-f", ".env")
    git(top, "commit", "-q", "-m", "more")
    if between == "hidden":
        git(top, "update-index", "--assume-unchanged", "b")
        (top / "b").write_text("unseen")
    run_dir = top.parent / "runs" / "run-1"
    run_dir.mkdir(parents=True)
    work = WorkTree(str(top), os.environ, str(run_dir))
    assert work.dirty() == ()
    (top / "c").write_text("c")
    if between in ("staged", "committed"):
        git(top, "add", "c")
    if between == "committed":
        git(top, "commit", "-q", "-m", "a person's")
    trees = trees_of_run(str(top), os.environ, str(run_dir))
    assert trees is not None
    trees.begin(work.clean)
    begun = trees.memo
    expected = trees.look()
    assert begun.head == expected.head
    assert ("c" in names(top, begun.tree)) is (between != "nothing")
    assert text(top, begun.tree, "b") == ("unseen" if between == "hidden" else "b")
    assert (begun.tree == expected.tree) is (between != "nothing")


def test_filters_and_attributes_are_those_of_the_runs_start(top: Path) -> None:
    """(h) and the other way round: what the user has configured works."""
    git(top, "config", "filter.upper.clean", "tr a-z A-Z")
    (top / "deep").mkdir()
    (top / "deep" / ".gitattributes").write_text('"*.up x" filter=upper\n/here filter=upper\n')
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "filters")
    trees = trees_of(top)
    git(top, "config", "filter.upper.clean", "echo bad")
    git(top, "config", "filter.evil.clean", "echo bad")
    (top / ".gitattributes").write_text("* filter=evil\n")
    (top / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    for path in ("deep/a.up x", "deep/here", "here"):
        (top / path).write_text("word\n")
    tree = trees.look().tree
    found = [text(top, tree, path) for path in ("deep/a.up x", "deep/here", "here")]
    assert found == ["WORD", "WORD", "word"]


def test_attributes_of_folders_are_written_as_the_top_would() -> None:
    files = [
        ("", "[attr]big -text\n# nothing\n*.bin big\n"),
        ("a[b", '*.c text\n/x/*.d eol=lf\n"a \\"b" ident\n[attr]no -text\n'),
    ]
    lines = flattened(files).decode().splitlines()
    assert lines[1:] == [
        "[attr]big -text",
        "*.bin big",
        r"/a\[b/**/*.c text",
        r"/a\[b/x/*.d eol=lf",
        r'"/a\\[b/**/a \"b" ident',
    ]


def test_what_was_not_committed_before_stays_out_until_a_turn_changes_it(top: Path) -> None:
    """ADR 33: "What was not committed when a run began is a person's"."""
    (top / "mine").write_text("mine\n")
    (top / "b").write_text("mine\n")
    trees = trees_of(top)
    (top / "new").write_text("the turn's\n")
    proof = trees.proved(1.0, trees.look(), ())
    assert proof is not None
    assert (proof.yours, proof.mixed) == (("b", "mine"), ())
    assert names(top, proof.tree) == sorted([*names(top, "HEAD"), "new"])
    (top / "mine").write_text("changed\n")
    proof = trees.proved(1.0, trees.look(), ())
    assert proof is not None
    assert (proof.yours, proof.mixed) == (("b",), ("mine",))
    assert text(top, proof.tree, "mine") == "changed"


def test_what_lies_beside_the_workspace_stays_out(top: Path) -> None:
    trees = trees_of(top, "a")
    (top / "beside").write_text("x")
    (top / "a" / "new").write_text("x")
    proof = trees.proved(1.0, trees.look(), ())
    assert proof is not None
    assert names(top, proof.tree) == sorted([*names(top, "HEAD"), "a/new"])


def test_files_that_only_gates_write_are_left_out_also_after_a_crash(top: Path) -> None:
    (top / "old.xml").write_text("a person's, which is not committed\n")
    trees = trees_of(top)
    before = trees.look()
    for name in ("coverage.xml", "old.xml"):
        (top / name).write_text("by a gate\n")
    now = trees.look(after="make test")
    assert trees.changed(before, now) == frozenset()
    again = trees_of(top)
    assert again.memo.left_out == ("coverage.xml", "old.xml")
    assert made_by_checks(str(top.parent / "runs")) == {"coverage.xml", "old.xml"}
    assert again.commit_tree(again.look()) == git(top, "rev-parse", "HEAD^{tree}")
    (top / "coverage.xml").write_text("by a turn\n")
    assert "coverage.xml" in names(top, again.commit_tree(again.look()))


def test_ignored_files_that_are_committed_are_part_of_the_work(top: Path) -> None:
    """And what is ignored and in no commit is not, whatever the index says."""
    trees = trees_of(top)
    (top / "kept.log").write_text("x")
    git(top, "add", "-f", "kept.log")
    assert "kept.log" not in names(top, trees.look().tree)
    git(top, "commit", "-q", "-m", "by force")
    assert "kept.log" in names(top, trees.look().tree)
    (top / "new.py").write_text("x")
    assert "new.py" in names(top, trees.look().tree)
    (top / ".gitignore").write_text("new.py\n*.log\n.env\nbuild/\n")
    assert "new.py" not in names(top, trees.look().tree)


def test_new_rules_that_hide_files_are_named(top: Path) -> None:
    """ "new ignore rules that hide existing files are named"; those of before are not."""
    trees = trees_of(top)
    (top / "late.log").write_text("ignored by the rules of before")
    (top / "helper.py").write_text("x")
    (top / ".gitignore").write_text(".env\nbuild/\n*.log\nhelper.py\n")
    (top / "cache").mkdir()
    (top / "cache" / ".gitignore").write_text("*\n")
    proof = trees.proved(1.0, trees.look(), ())
    assert proof is not None
    assert proof.hidden == ("cache/.gitignore", "helper.py")
    assert trees.proved(1.0, trees.look(), ()) == proof


def test_work_inside_a_submodule_must_be_committed_there(top: Path) -> None:
    """ "Uncommitted changes inside a submodule are a finding"."""
    library = new_repository(top.parent / "library")
    allowed = ("-c", "protocol.file.allow=always")
    git(top, *allowed, "submodule", "--quiet", "add", str(library), "library")
    git(top, "commit", "-q", "-m", "library")
    trees = trees_of(top)
    assert trees.objections(trees.look()) == ()
    (top / "library" / "b").write_text("changed")
    [finding] = trees.objections(trees.look())
    assert "inside the submodule library" in finding.text
    assert trees_of(top).objections(trees.look()) == (finding,), "it was not so when the run began"


def test_head_refs_and_settings_are_put_back_too(top: Path) -> None:
    trees = trees_of(top)
    before = trees.look()
    git(top, "commit", "-q", "--allow-empty", "-m", "cheat")
    git(top, "switch", "-q", "-c", "other")
    git(top, "config", "alias.x", "!evil")
    changed = trees.changed(before, trees.look())
    assert changed == {HEAD, REFS, SETTINGS}
    trees.put_back(before, changed, "1")
    assert trees.look() == before
    assert git(top, "log", "-1", "--format=%s", "refs/ralph/run-1/moved-1.0") == "cheat"


def test_a_link_leads_nothing_out_of_the_project(top: Path) -> None:
    outside = top.parent / "outside"
    outside.mkdir()
    (outside / "one").write_text("not ours")
    trees = trees_of(top)
    before = trees.look()
    (top / "a" / "one").unlink()
    for inner in (top / "a").iterdir():
        inner.unlink()
    (top / "a").rmdir()
    (top / "a").symlink_to(outside)
    trees.put_back(before, trees.changed(before, trees.look()), "1")
    assert trees.look() == before
    assert (outside / "one").read_text() == "not ours"
    assert os.readlink(top / ".ralph/reverted/1/a") == str(outside)


def test_a_commit_holds_the_stand_and_the_users_index_knows_it(top: Path) -> None:
    trees = trees_of(top)
    (top / "new").write_text("proven\n")
    (top / "b").unlink()
    stand = trees.look()
    (top / "new").write_text("later\n")
    (top / "staged").write_text("a person's\n")
    git(top, "add", "staged")
    made = ProvenCommit(trees)(stand, ("-q", "-m", "x"))
    assert made == Committed(commit=git(top, "rev-parse", "HEAD"))
    assert git(top, "rev-parse", "HEAD^{tree}") == trees.commit_tree(stand)
    assert git(top, "show", "HEAD:new") == "proven"
    assert git(top, "status", "--porcelain").splitlines() == [" M new", "A  staged"]


def test_somebody_who_commits_meanwhile_is_not_overwritten(top: Path) -> None:
    trees = trees_of(top)
    (top / "new").write_text("proven\n")
    stand = trees.look()
    git(top, "commit", "-q", "--allow-empty", "-m", "theirs")
    made = ProvenCommit(trees)(stand, ("-q", "-m", "x"))
    assert made.said == "somebody has committed here since the work was proven"


def test_a_repository_that_is_gone_is_told(top: Path) -> None:
    trees = trees_of(top)
    (top / ".git" / "HEAD").unlink()
    with pytest.raises(StateError, match="git show-ref"):
        trees.look()


def test_a_run_that_goes_on_knows_its_repository(top: Path) -> None:
    trees_of(top)
    (top / "a" / ".git").mkdir()
    git(top / "a", "init", "-q")
    run_dir = str(top.parent / "runs" / "run-1")
    place = repository_of_run(str(top / "a"), os.environ, run_dir).place
    assert place.top == str(top)
    assert find(str(top / "a"), os.environ, run_dir).top == str(top / "a")
