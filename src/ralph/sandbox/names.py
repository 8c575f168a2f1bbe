"""Sandboxes: places to run that can be undone. A backend is a module, named here."""

BACKENDS = ("overlay", "srt", "sbx", "docker", "worktree", "direct")
