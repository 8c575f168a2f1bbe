"""Checklists and plans in markdown. Public: `format`, `entries`, `outline`, `write`."""
