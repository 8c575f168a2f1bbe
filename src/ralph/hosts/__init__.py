"""Claude Code, Codex and Gemini as hosts of our hooks: their events, and how hooks get into their
settings; standard library only.

Public: `protocol`, `hosts`, `install`, `files`, `settings_edit`, `stop_cap`,
`plugin_state`.
"""
