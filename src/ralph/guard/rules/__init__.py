"""Rules of what is refused, one module a subject. Public: `catalog`, `rule`."""
