"""Parses bash into nodes. Public: `parser`, `nodes`, `words`, `text`."""
