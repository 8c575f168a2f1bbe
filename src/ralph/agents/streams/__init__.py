"""Reads agents' streams: bytes in, events out, one module a dialect; pure.

Public: `dialects`, `collect`.
"""
