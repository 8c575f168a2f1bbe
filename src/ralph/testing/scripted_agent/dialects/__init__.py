"""How each CLI speaks, one module each. Public: `speech`."""
