"""Makes a sandbox of Linux namespaces, from the host's side and from inside.

Public: `client`, `maker`, `mounts`, `proxy`, `streams`, `available`, `trial`.
"""
