"""Keeps the work as it stands and restores it; commits exactly what was proven.

Public: `checkpoint`, `work`, `trees`, `commit`, `proven_commit`, `start_ref`.
"""
