"""Several tasks at once, each in a worktree of its own.

Public: `policy`, `coordinator`, `worktrees`, `settlement`, `budget`, `train`, `wiring`.
"""
