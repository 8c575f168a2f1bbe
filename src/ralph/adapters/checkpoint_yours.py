"""A person's uncommitted files, which something changed in a task that is done: they come back."""

import os

from ralph.adapters.checkpoint_files import Files, differing
from ralph.adapters.checkpoint_work import Checkpoint, Work


def give_back(work: Work, since: Checkpoint, label: str) -> tuple[str, tuple[str, ...]]:
    """Put a person's files back as they were when the task began: the ref that keeps what stood
    there, and which they are; nothing if they were left alone. Who is killed calls it again."""
    persons = work.persons_paths.difference(
        work.trees.memo.left_out
    )  # a gate may write what it likes
    if not persons:
        return "", ()
    tree = work.tree()
    entries = [e for e in differing(work.repository, tree, since.tree) if e.path in persons]
    if not entries:
        return "", ()
    ref = f"{work.refs}/{label}"
    if not work.repository.resolve(ref):
        parents = [work.head()] if work.head() else []
        saved = work.save(tree, parents, "what stood in the place of a person's files")
        work.repository.ask("update-ref", ref, saved)
    aside = os.path.join(work.run_dir, "aside", label)
    files = Files(work.repository, work.workspace, work.run_dir, aside, work.apart(since))
    files.put_back(entries)
    files.put_modes_back()
    return ref, tuple(entry.path for entry in entries)
