"""The restart supervisor: attempts at one task until it is marked done.

Public: `library`, `policy`, `attempts`, `child_runs`, `bus`, `marks`, `folder`.
"""
