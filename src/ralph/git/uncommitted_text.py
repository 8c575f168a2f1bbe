"""Uncommitted paths by what git says, and what an agent is told about them (R §5b, check 3)."""

from ralph.text.words import listed

MARKER = ".ralph-active"  # of a run over stories, in the root of its project
STATUS = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal")
_OURS = (MARKER, ".ralph")  # what Ralph itself writes into a project
_MOST = 10  # paths that are named
_LONGEST = 200  # characters of one


def foreign(status: bytes) -> list[str]:
    """The paths in what git says, Ralph's own left out."""
    names = (entry[3:].decode("utf-8", "surrogateescape") for entry in status.split(b"\0"))
    return [name for name in names if name and not is_ours(name)]


def is_ours(name: str) -> bool:
    """True for the marker of a run, and in `.ralph`."""
    return any(part in _OURS for part in name.split("/"))


def commit_all(folder: str, paths: list[str]) -> str:
    """Instructions for paths that are not committed; `folder` is that of the stories."""
    named = listed([path[:_LONGEST] for path in paths], _MOST)
    return (
        f"There are uncommitted changes: {named}.\n"
        f"1. Add to {folder}/progress.txt what you did and what you learned.\n"
        "2. Consider whether a lasting rule belongs into CLAUDE.md or .claude/rules/.\n"
        f"3. Commit ALL changes, {folder}/progress.txt and {folder}/tasks.json too."
    )
