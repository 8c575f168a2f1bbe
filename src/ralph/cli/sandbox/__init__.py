"""`ralph sandbox`. Public: `group`."""
