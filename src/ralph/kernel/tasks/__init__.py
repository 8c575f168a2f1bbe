"""Tasks, their completion criteria, and which one is next.

Public: `task`, `completion`, `select`.
"""
