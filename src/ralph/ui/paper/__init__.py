"""Recaps on paper, for people who read afterwards: one HTML file without network or scripts, and
Markdown for a chat. Public: `page`, `markdown`, `plots.catalog`."""
