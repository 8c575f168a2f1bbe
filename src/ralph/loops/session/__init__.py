"""The promise loop inside one session of an agent, which hooks drive; standard library only.

Public: `answer`, `commands`, `state`, `store`, `memory`, `transcript`, `git_status`, `policy`,
`words`.
"""
