"""A tree with other entries at some paths is what an index of all files would give."""

import os
import random
from pathlib import Path

import pytest

from kits.thorough import dealt
from ralph.git.repository import NOTHING, Entry, Repository, find, scratch_index

NAMES = ("a", "a-b", "a.b", "ab", "A", "ü\n", "b\t\\", "c\udcff", ".x", "-f", ":(top)z")


@pytest.fixture(params=["sha1", "sha256"])
def repository(tmp_path: Path, request: pytest.FixtureRequest) -> Repository:
    top = tmp_path / "top"
    os.system(f"git init -q --object-format={request.param} {top}")
    return Repository(find(str(top), os.environ, str(tmp_path / "run")), os.environ)


def by_index(repository: Repository, directory: Path, tree: str, entries: dict[str, Entry]) -> str:
    with scratch_index(str(directory)) as index:
        repository.ask("read-tree", tree, index=index)
        for only_removed in (True, False):
            lines = "".join(
                f"{mode if mode != NOTHING else 0} {identifier}\t{path}\0"
                for path, (mode, identifier) in entries.items()
                if (mode == NOTHING) is only_removed
            )
            words = ("update-index", "--replace", "-z", "--index-info")
            repository.ask(*words, stdin=os.fsencode(lines), index=index)
        return repository.identifier("write-tree", index=index)


@pytest.mark.parametrize("seed", dealt(range(12), 4))
def test_it_is_what_an_index_of_all_files_would_give(
    repository: Repository, tmp_path: Path, seed: int
) -> None:
    """Files that become folders, folders that become files, odd names, links and modes."""
    choose = random.Random(seed)
    blobs = [
        repository.identifier("hash-object", "-w", "--stdin", stdin=str(n).encode())
        for n in range(4)
    ]
    gone = (NOTHING, repository.place.zeros)

    def path() -> str:
        return "/".join(choose.choices(NAMES, k=choose.randint(1, 4)))

    def entry() -> Entry:
        link = ("160000", "1" * len(repository.place.zeros))  # a commit of another repository
        files = [(mode, choose.choice(blobs)) for mode in ("100644", "100755", "120000")]
        return choose.choice((*files, link))

    tree, held = repository.empty, dict[str, Entry]()
    for _ in range(6):
        entries = {name: gone for name in held if choose.random() < 0.4}
        for new in [path() for _ in range(choose.randint(0, 8))]:
            parts = new.split("/")
            above = {"/".join(parts[:depth]) for depth in range(1, len(parts))}
            if any(name.startswith(f"{new}/") or name in above for name in entries):
                continue
            entries[new] = entry()
            below = {name for name in held if name.startswith(f"{new}/")}
            entries |= dict.fromkeys(below | (above & held.keys()), gone)
        expected = by_index(repository, tmp_path, tree, entries)
        assert repository.edited(tree, entries) == expected
        assert repository.run("cat-file", "-e", expected).code == 0
        held = {name: each for name, each in {**held, **entries}.items() if each != gone}
        tree = expected


def test_a_folder_may_hold_thousands(repository: Repository, tmp_path: Path) -> None:
    blob = repository.identifier("hash-object", "-w", "--stdin", stdin=b"x")
    many = {f"x/file-{number}": ("100644", blob) for number in range(3000)}
    tree = repository.edited(repository.empty, many)
    assert tree == by_index(repository, tmp_path, repository.empty, many)
    other = {"x/file-77": (NOTHING, repository.place.zeros), "x/file": ("100755", blob)}
    assert repository.edited(tree, other) == by_index(repository, tmp_path, tree, other)


def test_a_whole_folder_is_put_in_and_taken_out(repository: Repository) -> None:
    blob = repository.identifier("hash-object", "-w", "--stdin", stdin=b"x")
    folder = repository.edited(repository.empty, {"x/y": ("100644", blob)})
    other = repository.edited(repository.empty, {"k": ("100755", blob)})
    both = repository.edited(other, {".ralph": ("040000", folder)})
    assert repository.names("ls-tree", "-r", "-z", "--name-only", both) == [".ralph/x/y", "k"]
    assert repository.edited(both, {".ralph": (NOTHING, repository.place.zeros)}) == other
    assert repository.edited(other, {}) == other
