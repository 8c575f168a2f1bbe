"""Tries an agent's adapter with the scripted agent of its kind. Public: `kit`, `bench`."""
