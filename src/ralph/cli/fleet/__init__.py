"""`ralph fleet`: other machines for the turns of `ralph tasks run`."""
