"""A scripted model on loopback, for real CLIs. Public: `server`, `script`, `protocols`."""
