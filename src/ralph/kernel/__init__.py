"""Decides and loops: the engine, what it asks of the world, and the rules it asks in order; pure
but for its ports.

Public: `engine`, `ports`, `rules`, `case`, `verdict`, `state`, `facts`, `turn`, `world`, `proving`,
`value`.
"""
