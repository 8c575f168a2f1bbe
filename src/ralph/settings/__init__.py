"""Loads, merges, checks and explains settings.

Public: `load`, `schema`, `explain`, `problems`, `source`, `paths`, `secrets`; `from_others` imports
settings of other loops.
"""
