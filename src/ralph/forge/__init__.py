"""GitHub and GitLab by their REST APIs: pull requests, the checks of a commit, issues.

Public: `port` with the values that are spoken of, `judging`, `found`.
"""
