"""Gates that a task must pass before it counts as done.

Public: `completion`, `history`, `scripts`.
"""
