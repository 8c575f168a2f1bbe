"""Compares what a sandbox changed with the project, and brings it there.

Public: `landing`, `apply`, `review`, `commit`, `compare`, `diff`, `by_descriptor`, `manifest`.
"""
