"""Answers whether a shell command is dangerous, without running it.

Public: `judge`, `paths`; `shell` parses, `follow` looks through what a command runs, `rules` holds
what is refused.
"""
