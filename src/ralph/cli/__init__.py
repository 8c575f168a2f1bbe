"""The command line: one file a command. `wiring` is the only place that joins adapters."""
