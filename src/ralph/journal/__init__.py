"""Keeps one run on disk.

Public: `journal`, `runs`, `lock`, `ledger`, `spending`, `recovery`, `merged`, `life`, `run_id`,
`codec`, `write_access`.
"""
