"""The restart supervisor: attempts at one task until it is marked done.

Public: `library`, `policy`, `rules`, `attempts`, `child_runs`, `bus`, `marks`, `folder`.
"""
