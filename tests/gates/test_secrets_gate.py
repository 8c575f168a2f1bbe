"""New files that look like secrets, in what would be committed or already is (ADR 13)."""

from pathlib import Path

import pytest

from kits.work_tree import git, new_repository, work_of
from ralph.gates.secrets import SecretsGate
from ralph.kernel.case import Case
from ralph.kernel.findings import Finding
from ralph.kernel.state import NEW
from ralph.kernel.verdict import Boundary
from ralph.kernel.world import Snapshot, Stand

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


class Judged:
    """A run in a repository, and its gate."""

    def __init__(
        self, tmp_path: Path, *, allow: tuple[str, ...] = (), history: bool = True
    ) -> None:
        self.top = new_repository(tmp_path / "top")
        self.write("old.env.txt", f"KEY={KEY}\n")
        self.commit("An old sin")
        self.trees = work_of(self.top).trees
        self.told: list[str] = []
        self.gate = SecretsGate(self.trees, allow, self.told.append, history=history)

    def write(self, name: str, text: str = "x\n") -> None:
        (self.top / name).parent.mkdir(parents=True, exist_ok=True)
        (self.top / name).write_text(text)

    def commit(self, subject: str) -> str:
        git(self.top, "add", "--all")
        git(self.top, "commit", "--quiet", "--message", subject)
        return git(self.top, "rev-parse", "HEAD")

    def found(self) -> list[Finding]:
        snapshot = Snapshot(stand=self.trees.look())
        return list(self.gate.check(Case(Boundary.CLOSING, NEW, 0.0, snapshot=snapshot)))


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    return Judged(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [("id_rsa", "x\n"), ("conf/prod.pem", "x\n"), ("notes.txt", f"the key: {KEY}\n")],
)
def test_a_new_file_that_looks_like_one_is_named_and_its_content_is_not(
    judged: Judged, name: str, text: str
) -> None:
    judged.write(name, text)
    (found,) = judged.found()
    assert name in found.text
    assert KEY not in found.text
    (judged.top / name).unlink()
    assert judged.found() == []


def test_what_git_ignores_is_nobodys_business(judged: Judged) -> None:
    judged.write(".env", f"KEY={KEY}\n")
    assert judged.found() == []


def test_what_is_allowed_is_no_objection(tmp_path: Path) -> None:
    judged = Judged(tmp_path, allow=("fixtures",))
    judged.write("fixtures/id_rsa")
    assert judged.found() == []
    judged.write("id_rsa")
    assert len(judged.found()) == 1


def test_one_that_git_kept_before_the_run_is_told_of_once(judged: Judged) -> None:
    """It is no new one, and a person may want it there."""
    for text in ("one", "two"):
        judged.write("old.env.txt", f"KEY={KEY}\n# {text}\n")
        assert judged.found() == []
    assert len(judged.told) == 1
    assert "was in git before this run" in judged.told[0]


@pytest.mark.parametrize("history", [True, False])
def test_a_commit_of_the_run_that_held_one_is_found_though_a_later_one_removed_it(
    tmp_path: Path, *, history: bool
) -> None:
    """Where commits stay as they are; those of a task become one."""
    judged = Judged(tmp_path, history=history)
    judged.write("notes.txt", f"{KEY}\n")
    held = judged.commit("With it")
    assert len(judged.found()) == 1
    (judged.top / "notes.txt").unlink()
    judged.commit("Without it")
    found = judged.found()
    assert [held[:7] in each.text for each in found] == ([True] if history else [])


def test_a_link_is_no_secret_and_a_long_file_is_read_to_a_limit(judged: Judged) -> None:
    (judged.top / "server.pem").symlink_to("b")
    judged.write("long.txt", "x" * (1 << 20) + KEY)
    assert judged.found() == []


def test_outside_git_there_is_nothing_to_commit(judged: Judged) -> None:
    judged.write("id_rsa")
    case = Case(Boundary.CLOSING, NEW, 0.0, snapshot=Snapshot(stand=Stand()))
    assert list(judged.gate.check(case)) == []


def test_what_is_as_before_the_run_again_is_no_objection(judged: Judged) -> None:
    """Of what a run has changed only what is new is looked at, and everything is told."""
    judged.write("b.txt", f"{KEY}\n")
    judged.write("a.txt", f"{KEY}\n")
    (found,) = judged.found()
    assert found.text.index("a.txt") < found.text.index("b.txt")
    (judged.top / "b.txt").unlink()
    (found,) = judged.found()
    assert "b.txt" not in found.text
    assert "a.txt" in found.text
    judged.write("a.txt")
    assert judged.found() == []


@pytest.mark.parametrize("cut", [0, 7, len(KEY)])
def test_a_key_at_the_end_of_what_was_known_of_a_record_is_found(judged: Judged, cut: int) -> None:
    """Records only grow, and each task adds to them."""
    text = "{}\n" * 2000 + KEY[:cut]
    judged.write(".ralph/progress.jsonl", text)
    judged.commit("Records")
    before = judged.found()
    judged.write(".ralph/progress.jsonl", f"{text}{KEY[cut:]}\n")
    judged.commit("More")
    assert (len(before), len(judged.found())) == (int(cut == len(KEY)), 1)
