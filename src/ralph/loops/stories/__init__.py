"""Reviewed stories: what is built must survive a fresh review.

Public: `policy`, `rules`, `prompt`, `file`, `gates`, `settlement`, `archive`, `templates`.
"""
