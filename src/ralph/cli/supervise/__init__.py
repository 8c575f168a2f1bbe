"""`ralph supervise`, and what its tasks call: `ralph job` and `ralph bus`."""
