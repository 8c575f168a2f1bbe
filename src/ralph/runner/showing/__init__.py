"""Knowledge that only loops have of their runs, for whatever shows them. Public: `ladders`,
`recaps`."""
