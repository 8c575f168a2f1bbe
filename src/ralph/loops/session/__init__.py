"""The promise loop inside one session of an agent, which hooks drive; standard library only.

Public: `stop`, `answer`, `commands`, `state`, `store`, `policy`, `rules`, `words`.
"""
