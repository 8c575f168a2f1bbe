"""The task list and its records on disk.

Public: `task_file`, `lines`, `records`, `selection`, `watch`.
"""
