"""Kills of real runs, by every route, of an agent that does not want to end (ADR 23).

`make faults` does it 200 times a route; `test_faults.py` is the short version.
"""
