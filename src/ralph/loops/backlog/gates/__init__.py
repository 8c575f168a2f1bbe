"""What a task must pass before it counts as done.

Public: `completion`, `history`, `task_list`, `script_runners`.
"""
