"""How a worker's work is joined with what others have merged, and becomes the project's HEAD."""

import os

from crew_support import LINES, LIST, MARKER, Crew, code_of, crew

from kits.work_tree import git
from ralph.git.checkpoint.work import Checkpoint
from ralph.git.repository import GitResult, Repository
from ralph.loops.backlog.parallel.settlement import Merged, SavedWork

__all__ = ["crew"]

# ------------------------------------------------------------------ keeping and merging


def test_kept_work_is_found_again_as_it_was(crew: Crew) -> None:
    """Who is killed in the middle keeps nothing twice, whatever stands there by then."""
    crew.write(crew.own, "code", "mine\n")
    kept = crew.joining.keep(crew.base, 1)
    crew.write(crew.own, "code", "half a merge\n")
    assert crew.joining.keep(crew.base, 1) == kept == SavedWork(kept.commit, crew.base.head)
    assert git(crew.own, "show", f"{kept.commit}:code") == "mine"
    assert crew.joining.keep(crew.base, 2) != kept


def test_where_nobody_merged_commits_of_the_agents_become_files(crew: Crew) -> None:
    """Commits of the agent's own are a part of its task's one."""
    crew.write(crew.own, "new", "mine\n")
    crew.commit(crew.own, "the agent's")
    git(crew.own, "switch", "--quiet", "--detach")
    assert crew.merged() == Merged()
    assert git(crew.own, "symbolic-ref", "HEAD") == "refs/heads/ralph/T-1"
    assert git(crew.own, "rev-parse", "HEAD") == crew.base.head
    assert git(crew.own, "status", "--porcelain") == "?? new"


def test_work_stands_uncommitted_on_top_of_what_others_merged(crew: Crew) -> None:
    crew.write(crew.own, "code", LINES.replace("1\n", "one\n"))
    crew.write(crew.top, "code", LINES.replace("7\n", "seven\n"))
    head = crew.commit(crew.top, "theirs")
    merged = crew.merged()
    assert (merged.conflicts, merged.words) == ((), ())
    assert code_of(crew.own) == LINES.replace("1\n", "one\n").replace("7\n", "seven\n")
    assert git(crew.own, "rev-parse", "HEAD") == head
    assert git(crew.own, "status", "--porcelain") == " M code"
    to = Checkpoint.of(merged.checkpoint)
    assert to is not None
    crew.work.restore(to, "cut-1")
    assert code_of(crew.own) == LINES.replace("7\n", "seven\n")


def test_a_merge_that_was_cut_off_is_made_again(crew: Crew) -> None:
    """ "Who is killed in it, or before its end is told, calls it again"."""
    crew.write(crew.own, "code", LINES.replace("1\n", "one\n"))
    crew.write(crew.top, "new", "theirs\n")
    crew.commit(crew.top, "theirs")
    first = crew.merged()
    crew.write(crew.own, "left", "by the half of a merge\n")
    assert crew.merged().tree == first.tree
    assert git(crew.own, "status", "--porcelain") == " M code"


def test_in_a_list_alone_the_projects_side_wins(crew: Crew) -> None:
    """Lists are the host's to change: nobody has to resolve them."""
    crew.write(crew.own, LIST, "- [ ] one\n- [ ] mine\n")
    crew.write(crew.own, "code", "mine\n")
    crew.write(crew.top, LIST, "- [ ] one\n- [x] two\n")
    crew.commit(crew.top, "theirs")
    merged = crew.merged(LIST)
    assert merged.conflicts == ()
    assert (crew.own / LIST).read_text() == "- [ ] one\n- [x] two\n"
    assert code_of(crew.own) == "mine\n"


def test_a_conflict_in_the_list_and_in_the_source_at_once_is_told_whole(crew: Crew) -> None:
    """Neither is taken for resolved: what is left as the merge made it is no one's resolution."""
    crew.write(crew.own, LIST, "- [ ] one\n- [ ] mine\n")
    crew.write(crew.own, "code", "mine\n")
    crew.write(crew.top, LIST, "- [ ] one\n- [x] two\n")
    crew.write(crew.top, "code", "theirs\n")
    crew.commit(crew.top, "theirs")
    merged = crew.merged(LIST)
    assert merged.conflicts == (LIST, "code")
    assert all("CONFLICT (content)" in words for words in merged.words)
    assert (MARKER in (crew.own / LIST).read_text(), MARKER in code_of(crew.own)) == (True, True)
    crew.joining.remember(1, merged.tree, merged.conflicts)
    crew.write(crew.own, "code", f"both\n{code_of(crew.own)}")
    left = crew.joining.keep(crew.work.checkpoint(), 2)
    assert crew.joining.unresolved(2, left.commit) == (LIST, "code")
    crew.write(crew.own, "code", "both\n")
    crew.write(crew.own, LIST, "- [ ] one\n- [x] two\n")
    resolved = crew.joining.keep(crew.work.checkpoint(), 3)
    assert crew.joining.unresolved(3, resolved.commit) == ()
    assert crew.joining.unresolved(1, left.commit) == ()  # of this very merge


def test_without_markers_a_conflict_that_nobody_touched_is_left(crew: Crew) -> None:
    """A file that one side deleted can hold no markers: it must not stay as git left it."""
    crew.write(crew.own, "code", "mine\n")
    (crew.top / "code").unlink()
    crew.commit(crew.top, "theirs")
    merged = crew.merged()
    assert (merged.conflicts, code_of(crew.own)) == (("code",), "mine\n")
    crew.joining.remember(1, merged.tree, merged.conflicts)
    again = crew.joining.keep(crew.work.checkpoint(), 2)
    assert crew.joining.unresolved(2, again.commit) == ("code",)


def test_what_a_person_rewrote_meanwhile_does_not_come_back(crew: Crew) -> None:
    """A commit that is gone from the project is not the task's own work."""
    crew.write(crew.top, "dropped", "by a person\n")
    crew.commit(crew.top, "To be dropped")
    git(crew.own, "merge", "--quiet", "--ff-only", "main")
    crew.base = crew.work.checkpoint()
    git(crew.top, "reset", "--quiet", "--hard", "HEAD~")
    crew.write(crew.own, "new", "mine\n")
    assert crew.merged().conflicts == ()
    assert git(crew.own, "status", "--porcelain") == "?? new"


# ------------------------------------------------------------------ landing


def test_a_commit_lands_in_the_project_and_its_files(crew: Crew) -> None:
    crew.write(crew.own, "code", "mine\n")
    assert crew.landed() == ""
    assert (code_of(crew.top), git(crew.top, "status", "--porcelain")) == ("mine\n", "")
    assert git(crew.top, "reflog", "-1", "--format=%gs", "main") == "ralph: merge a task"


def test_landing_again_after_a_kill_changes_nothing(crew: Crew) -> None:
    """It is told by HEAD alone, whoever has committed on top of it since."""
    crew.write(crew.own, "code", "mine\n")
    head = git(crew.own, "rev-parse", "HEAD")
    made = crew.commit(crew.own, "T-1: It")
    assert crew.joining.land(made, head) == ""
    crew.write(crew.top, "later", "a person's\n")
    crew.commit(crew.top, "Later")
    before = crew.seen(crew.top)
    assert (crew.joining.land(made, head), crew.seen(crew.top)) == ("", before)


def test_nothing_lands_beside_somebody_elses_commit(crew: Crew) -> None:
    crew.write(crew.own, "code", "mine\n")
    crew.write(crew.top, "new", "theirs\n")
    crew.commit(crew.top, "theirs")
    before = crew.seen(crew.top)
    assert crew.landed() == "somebody has committed meanwhile"
    assert crew.seen(crew.top) == before


def test_somebodys_changes_are_not_overwritten(crew: Crew) -> None:
    """Git's own words say what is in the way, and the records are not left staged."""
    records = ".ralph/tasks.jsonl"
    for where in (crew.own, crew.top):
        crew.write(where, records, "the task is done\n")
    crew.write(crew.own, "code", "mine\n")
    git(crew.own, "add", "--force", records)
    crew.write(crew.top, "code", "a person's\n")
    before = crew.seen(crew.top)
    assert "code" in crew.landed()
    assert crew.seen(crew.top) == before


def test_records_that_stand_there_already_are_no_obstacle(crew: Crew) -> None:
    """They are written into the project first, and git would refuse to overwrite them."""
    records = ".ralph/tasks.jsonl"
    for where in (crew.own, crew.top):
        crew.write(where, records, "the task is done\n")
    git(crew.own, "add", "--force", records)
    assert crew.landed() == ""
    assert git(crew.top, "status", "--porcelain") == ""
    assert git(crew.top, "show", f"HEAD:{records}") == "the task is done"


class Interrupting(Repository):
    """Somebody moves the branch after the files are written, before the branch is."""

    theirs = ""

    def run(self, *words: str, stdin: bytes = b"", index: str = "") -> GitResult:
        if words[0] == "update-ref" and not self.theirs:
            head = self.resolve("HEAD")
            self.theirs = self.commit(f"{head}^{{tree}}", [head], "somebody's")
            super().run("update-ref", "HEAD", self.theirs, head)
        return super().run(*words, stdin=stdin, index=index)


def test_a_branch_that_moves_in_the_last_moment_takes_nothing(crew: Crew) -> None:
    """The files that were written already are as before, and the merge begins anew."""
    crew.write(crew.own, "code", "mine\n")
    crew.write(crew.own, "new", "mine\n")
    known = crew.joining.project
    project = Interrupting(known.place, os.environ)
    _, *before = crew.seen(crew.top)
    assert crew.landed(crew.with_project(project)) == "somebody has committed meanwhile"
    assert crew.seen(crew.top) == (project.theirs, *before)
    assert not (crew.top / "new").exists()


class Twice(Repository):
    """The last git of a killed run moves the branch, before the resumed run does."""

    def run(self, *words: str, stdin: bytes = b"", index: str = "") -> GitResult:
        if words[0] == "update-ref":
            super().run(*words)
        return super().run(*words, stdin=stdin, index=index)


def test_what_the_last_git_of_a_killed_run_has_landed_is_not_merged_again(crew: Crew) -> None:
    """A task is committed once, also where a git process outlives the run that started it."""
    crew.write(crew.own, "new", "mine\n")
    assert crew.landed(crew.with_project(Twice(crew.joining.project.place, os.environ))) == ""
    assert git(crew.top, "rev-parse", "HEAD") == git(crew.own, "rev-parse", "HEAD")
    assert git(crew.top, "status", "--porcelain", "--untracked-files=no") == ""
    assert (crew.top / "new").read_text() == "mine\n"


class FullDisk(Repository):
    """No branch can be moved."""

    def run(self, *words: str, stdin: bytes = b"", index: str = "") -> GitResult:
        if words[0] == "update-ref":
            return GitResult(128, b"", "fatal: cannot update the ref: No space left on device")
        return super().run(*words, stdin=stdin, index=index)


def test_git_says_why_a_branch_does_not_move(crew: Crew) -> None:
    """It need not be somebody's commit."""
    crew.write(crew.own, "new", "mine\n")
    before = crew.seen(crew.top)
    project = FullDisk(crew.joining.project.place, os.environ)
    assert crew.landed(crew.with_project(project)).endswith("No space left on device")
    assert crew.seen(crew.top) == before


# ------------------------------------------------------------------ whether it may


def test_only_the_branch_that_the_run_began_on_takes_work(crew: Crew) -> None:
    assert crew.joining.elsewhere() == ""
    git(crew.top, "switch", "--quiet", "-c", "mine")
    words = "the project is on mine now, and was on main when the run began"
    assert crew.joining.elsewhere() == words
    git(crew.top, "switch", "--quiet", "--detach")
    assert crew.joining.elsewhere().startswith("the project is on no branch now")


def test_a_project_in_the_middle_of_a_merge_takes_no_work(crew: Crew) -> None:
    git(crew.top, "switch", "--quiet", "-c", "other")
    crew.write(crew.top, "new", "other\n")
    crew.commit(crew.top, "other")
    git(crew.top, "switch", "--quiet", "main")
    git(crew.top, "merge", "--quiet", "--no-ff", "--no-commit", "other")
    assert crew.joining.elsewhere() == "git is in the middle of a merge in the project"


def test_changes_that_nobody_has_committed_are_known(crew: Crew) -> None:
    crew.write(crew.top, "code", "a person's\n")
    crew.write(crew.top, "new", "a person's\n")
    crew.write(crew.top, ".ralph/tasks.jsonl", "ours\n")
    assert crew.joining.theirs() == {"code", "new"}
