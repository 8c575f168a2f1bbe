"""Takes over the settings of other loops, one module each. Public: `catalog`, `merge`, `draft`."""
