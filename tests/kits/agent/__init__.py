"""Tries an agent's module with the scripted agent of its kind. Public: `kit`, `bench`."""
