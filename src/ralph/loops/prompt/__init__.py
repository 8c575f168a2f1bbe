"""The prompt loop: one prompt, again and again until it is done. Public: `loop`, `policy`."""
