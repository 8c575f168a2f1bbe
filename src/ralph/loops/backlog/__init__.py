"""The backlog loop: one proven task at a time.

Public: `policy`, `rules`, `prompt`, `settlement`, `hooks`, `library`; `store` keeps the tasks,
`tracker` speaks with other lists, `parallel` works on several at once.
"""
