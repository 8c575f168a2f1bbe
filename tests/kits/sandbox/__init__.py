"""Tries a sandbox backend, and fakes of the tools that backends stand on.

Public: `kit`, `tools`, `stage`.
"""
