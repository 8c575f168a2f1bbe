"""Calls an agent's CLI and understands what it prints.

Public: `kinds`, `clis`, `cli_agent`, `turn_files`, `probe`, `prices`; `streams` reads output.
"""
