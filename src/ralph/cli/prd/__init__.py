"""`ralph prd`. Public: `group`, `stdlib_main`."""
