"""A scripted agent that speaks each CLI's stream.

Public: `install`, `script`, `program`, `commandline`.
"""
