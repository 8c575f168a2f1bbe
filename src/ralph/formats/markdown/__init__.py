"""Checklists and plans in markdown. Public: `format`, `entries`, `labels`, `outline`."""
