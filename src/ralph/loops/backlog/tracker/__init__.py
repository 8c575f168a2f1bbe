"""Lists elsewhere that tasks come from. Public: `importing`, `sync`, `github`."""
