"""The ways of working, one package each, with one `LOOP` value in its module `loop`. They are
loaded by name, from the table in `ralph.runner.loops`; `session` is run by hooks alone. `library`
is what their libraries share, `exported` a session's loop for `ralph export`."""
