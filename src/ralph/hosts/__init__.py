"""Claude Code, Codex and Gemini as hosts of our hooks: what they say, and how hooks get into their
settings; standard library only.

Public: `protocol`, `hook_names`, `hook_commands`, `hosts`, `install`, `files`, `settings_edit`,
`stop_cap`, `plugin_state`, `lean_imports`.
"""
