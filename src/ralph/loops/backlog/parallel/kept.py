"""Keeps the papers of workers, work that was not merged, and the money they share."""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ralph.git.checkpoint.work import Checkpoint
from ralph.git.repository import Repository
from ralph.journal.journal import JOURNAL, read_journal
from ralph.journal.ledger import read_ledger
from ralph.kernel.state import RunState, replay
from ralph.kernel.verdict import Reason, Stop
from ralph.loops.backlog.kept_work import reopen
from ralph.loops.backlog.parallel.budget import Budget
from ralph.loops.backlog.parallel.merging import on_branch
from ralph.loops.backlog.parallel.worktrees import unmerged
from ralph.loops.backlog.plan import MONEY, TaskWork
from ralph.loops.backlog.store.task_file import TaskFile
from ralph.runner.plan import Plan

_RECENT = 50  # turns that tell what one may cost


def keep_unmerged(
    repository: Repository, run_dir: str, record: Mapping[str, Any], state: RunState
) -> str:
    """The commit in which people find what was not merged; "" if there is nothing."""
    saved, base = str(record.get("saved") or ""), Checkpoint.of(state.task_checkpoint)
    if base is None or not saved.startswith(f"refs/ralph/{os.path.basename(run_dir)}/"):
        return ""
    message = unmerged(str(record.get("id")), str(record.get("title") or ""))
    return on_branch(repository, run_dir, saved, base.head, message)


def reopen_barren(file: TaskFile, run_dir: str, stop: Stop) -> None:
    """Tasks that only a broken agent failed in are for the next run."""
    if stop.reason is Reason.FAILING:
        facts = read_journal(os.path.join(run_dir, JOURNAL))[0]
        reopen(file, *replay(facts).barren)


def keep_papers(workspace: str, run_dir: str) -> None:
    """Logs of gates, and what was reverted, go with the work tree: people may want them."""
    papers = os.path.join(workspace, ".ralph")
    with suppress(OSError):
        ours = shutil.ignore_patterns("*.jsonl", ".gitignore", "settings*.json")
        shutil.copytree(papers, os.path.join(run_dir, "papers"), ignore=ours, symlinks=True)


def shared_purse(plan: Plan[TaskWork], spent: float) -> Budget:
    """The budget of all workers, with what a turn is expected to cost."""
    costs = [entry.cost_usd or 0.0 for entry in read_ledger(plan.project)]
    asked_for = any(plan.loaded.origins.get(name) is not None for name in MONEY)
    # A limit that somebody has set is worth a first turn alone, if no turn has a price yet.
    dearest = max(costs[-_RECENT:], default=0.0) or (None if asked_for else 0.0)
    return Budget(plan.work.bounds.within.dollars, plan.workers, spent, dearest)
