"""Loads, merges, checks and explains settings.

Public: `load`, `schema`, `explain`, `problems`, `source`, `paths`, `from_others`.
"""
