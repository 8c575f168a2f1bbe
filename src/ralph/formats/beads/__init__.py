"""The issues of beads. Public: `format`, `fields`, `write`."""
