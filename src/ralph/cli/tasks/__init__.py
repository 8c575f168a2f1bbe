"""`ralph tasks`. Public: `group`."""
