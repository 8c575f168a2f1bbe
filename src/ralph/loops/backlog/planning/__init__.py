"""Splitting a goal into tasks: an agent is asked, and a person decides.

Public: `answer`, `prompt`, `policy`, `loop`, `adding`; `proposal` is what the agent proposes.
"""
