"""Looks at this machine: what is there, what is wrong, and what to type.

Public: `checks`, `machine`, `report`, and one module a subject.
"""
