"""How much there is on the disk, in bytes and in words."""

from pathlib import Path

import pytest

from ralph.files.disk_use import size_of, size_words


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (34_000, "34 kB"), (2**40, "1.1 TB")],
)
def test_sizes_in_words(number: int, words: str) -> None:
    assert size_words(number) == words


def test_the_size_of_a_tree(tmp_path: Path) -> None:
    """A link is not followed; what is not there takes nothing."""
    before = size_of(str(tmp_path))
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(b"x" * 1_000_000)
    (tmp_path / "again").symlink_to(tmp_path)
    assert 1_000_000 <= size_of(str(tmp_path)) - before < 1_100_000
    assert size_of(str(tmp_path), lambda: True) < 1_000_000
    assert size_of(str(tmp_path / "none")) == 0
