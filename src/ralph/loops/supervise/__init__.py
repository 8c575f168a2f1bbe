"""S: restarts an agent until its task is marked DONE."""
