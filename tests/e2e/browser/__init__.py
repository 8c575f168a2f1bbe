"""The pages of `ralph web` in a real browser (`make test-web`)."""
