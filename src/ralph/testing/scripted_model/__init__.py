"""A scripted model on loopback, for agents. Public: `server`, `script`, `protocols`."""
