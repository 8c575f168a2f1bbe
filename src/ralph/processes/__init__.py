"""Starts and ends processes: the keeper, children, signals.

Public: `child`, `keeper`, `keeper_main`, `signals`, `procfs`, `ancestry`, `usage`, `user_command`,
`clock`, `interpreters`.
"""
