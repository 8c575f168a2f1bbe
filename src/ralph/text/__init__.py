"""Makes words safe to show and to keep.

Public: `plain`, `clean` (one line, no escapes), `redact`, `secrets`, `words`, `timestamps`,
`headers` (of HTTP), `yaml_scalars`.
"""
