"""`ralph watch`: looks at runs from a terminal, and steers them by requests.

Public: `model` (facts and events in, a `View` out), `follow`, `lines` and `pager` (the log),
`draw` (a view as lines of text), `controls`, `plain` (a redraw of our own), `app/` (Textual).
"""
