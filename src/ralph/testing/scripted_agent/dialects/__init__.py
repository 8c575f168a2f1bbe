"""The streams of each CLI, one module a dialect. Public: `speech`."""
