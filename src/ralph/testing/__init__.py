"""Fakes, a scripted agent and a scripted model, for outsiders who test agents.

Public: `fakes`, `scripted_agent`, `scripted_model`.
"""
