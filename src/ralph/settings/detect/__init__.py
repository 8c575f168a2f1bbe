"""Proposes the checks that a directory's own files declare: `found.checks_of` asks the module of
each ecosystem whose files are there. Nothing is run."""
