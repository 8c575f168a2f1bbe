"""Readers of facts and events: they show a run and never act on it.

Public: `lines`, `console`, `jsonlines`, `narration`, `closing`, `replay`, `style`, `safe_stream`;
`live` and `status` draw the screen and the status, `recap` and `paper` what `ralph report` shows.
"""
