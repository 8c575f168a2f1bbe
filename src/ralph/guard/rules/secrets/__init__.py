"""Rules about files and variables that hold secrets.

Public: `files`, `readers`, `variables`, `names`.
"""
