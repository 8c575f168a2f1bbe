"""Fleets on this machine, for tests."""
