"""Sandboxes, one module a backend, named in `sandbox.names`.

Public: `overlay`, `srt`, `sbx`, `docker`, `worktree`, `direct`.
"""
