"""Serves the runs of this machine to a browser: reads journals and streams, and leaves requests.

Public: `serve`, `settings`. `static/` is the page, without a build step.
"""
