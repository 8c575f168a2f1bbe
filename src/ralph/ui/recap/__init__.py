"""Runs told whole, from their journals and the files beside them: what `ralph report` and `ralph
web` show. Public: `values`, `gather` and `beside`."""
