"""Calls an agent's CLI, one module each, and understands what it prints.

Public: `kinds`, `cli_agent`, `environment`, `turn_files`, `probe`, `prices`; `streams` reads their
output.
"""
