"""Rules about git: what is pushed, rewritten, thrown away or configured.

Public: `remote`, `local`, `settings`, `keys`, `branches`.
"""
