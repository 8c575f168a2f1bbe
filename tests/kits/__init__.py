"""Kits and support that only our tests use.

Public: `agent`, `model`, `sandbox` and the modules beside them.
"""
