"""Readers of facts and events: they show a run and never act on it.

Public: `reader`, `console`, `jsonlines`, `narration`, `replay`, `style`, `terminal`, `safe_stream`;
`live` and `status` draw the screen and the report.
"""
