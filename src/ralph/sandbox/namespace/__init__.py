"""Makes a sandbox of Linux namespaces, from the host's side and from inside.

Public: `client`, `maker`, `inside`, `proxy`, `streams`, `trial`.
"""
