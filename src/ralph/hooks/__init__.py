"""The programs that an agent's host calls; standard library only, and quick.

Public: `stop`, `prompt`, `pre_tool`, `post_tool`, `session_start`, `stop_failure`, `installed`.
"""
