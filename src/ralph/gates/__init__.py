"""Checks what a turn left behind: guardrails, protected paths, secrets, and proofs in a clean room.

Public: `guardrail`, `protect`, `secrets`, `secret_files`, `artifacts`, `clean_room`, `tree_setup`.
"""
