"""B §Concurrency: several tasks at once, each in a run and a work tree of its own."""
