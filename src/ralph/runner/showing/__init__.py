"""What only loops know of their runs, for those who show them. Public: `ladders` and `recaps`."""
