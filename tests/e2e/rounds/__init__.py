"""A toy loop, made by following "Add a loop" in CONTRIBUTING: so many turns at one prompt."""
