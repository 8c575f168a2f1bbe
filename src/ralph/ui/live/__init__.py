"""The part of the screen that moves while a run works.

Public: `activity`, `region`.
"""
