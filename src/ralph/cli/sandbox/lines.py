"""The lines that `ralph sandbox` prints: changes, what became of them, what a machine can do."""

import os
from collections.abc import Iterator

from ralph.sandbox.catalog import Probed
from ralph.sandbox.interface import Change, ChangeKind, CommitResult, FileType, Network
from ralph.text.words import counted
from ralph.ui.style import Style, Tone

_MOST = 40  # changes that are listed one by one
_WIDTH = max(map(len, ChangeKind))


def shown(path: str) -> str:
    """A name as people can read it on one line, whatever bytes it holds."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def change_lines(changes: tuple[Change, ...]) -> Iterator[str]:
    """A heading, then one line a change; of git's own files only their number."""
    yield f"{counted(len(changes), 'change')}:"
    # Of git's own only hooks and configuration are worth a line: not objects, index, refs.
    own = (".git/hooks", ".git/config")
    ours = [c for c in changes if not c.path.startswith(".git/") or c.path.startswith(own)]
    for change in ours[:_MOST]:
        slash = "/" if change.entry is FileType.DIRECTORY else ""
        yield f"  {change.kind:<{_WIDTH}}  {shown(change.path)}{slash}"
    if len(ours) > _MOST:
        yield f"  ... and {len(ours) - _MOST} more"
    if gits := len(changes) - len(ours):
        yield f"  {counted(gits, 'change')} in .git"


def kept_lines(kept: CommitResult) -> Iterator[str]:
    """The number of changes that were applied, and those that were not, with the reason."""
    yield f"Kept {counted(len(kept.applied), 'change')}."
    for heading, spared in (
        ("Not overwritten, since somebody changed it meanwhile", kept.changed),
        ("Held for review (--keep=all applies it)", kept.held),
        ("Could not be applied", kept.failed),
    ):
        if spared:
            yield f"{heading}:"
        for one in spared:  # all of them: what is not named here is taken for applied
            yield f"  {shown(one.path)}: {one.why}"
    if kept.saved:
        yield f"What was not applied is in {shown(kept.saved)}"


def refused_lines(refused: tuple[str, ...], network: Network) -> Iterator[str]:
    """The hosts that the command called in vain, and how to allow them."""
    if refused:
        verb, them = ("was", "it") if len(refused) == 1 else ("were", "them")
        allowed = ",".join((*network.hosts, *refused))
        yield f"{', '.join(refused)} {verb} refused. To allow {them}: --network {allowed}"


def probe_lines(found: tuple[Probed, ...], name: str | None, style: Style) -> Iterator[str]:
    """A line for each backend, and which one is taken."""
    for one in found:
        mark = "usable    " if one.can.usable else "not usable"
        tone = Tone.GOOD if one.can.usable else Tone.FAINT
        can = [word for word in ("contain", "rollback", "egress") if getattr(one.can, word)]
        yield f"{one.name:<9} {style.paint(mark, tone)}  {' '.join(can) or '-':<23}  {one.can.why}"
    yield f"Chosen: {name}" if name else "None is usable: see the reasons above."
