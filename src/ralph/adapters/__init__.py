"""Thin adapters, each around one foreign thing. Only `cli` puts them together."""
