"""Parses bash into nodes. Public: `parser`, `nodes`, `words`, `lines`, `text`."""
