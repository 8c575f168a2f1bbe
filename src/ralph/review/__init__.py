"""The law of reviewed stories: what a list must be and who may change what.

Public: `law`, `check`, `repair`, `stats`.
"""
