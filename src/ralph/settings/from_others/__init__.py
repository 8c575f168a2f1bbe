"""Takes over the settings of other loops. Public: `catalog`, `keys`, `merge`, `draft`."""
