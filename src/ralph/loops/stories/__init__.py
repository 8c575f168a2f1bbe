"""Reviewed stories: what is built must survive a fresh review.

Public: `loop`, `policy`, `rules`, `prompt`, `file`, `folder`, `init_folder`, `archive`, `gates`,
`settlement`, `past_runs`.
"""
