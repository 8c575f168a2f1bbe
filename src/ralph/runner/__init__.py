"""From a command to an exit code: a loop reads its command into a plan, wires it, and the run is
carried out. Modules: `loops` (the table), `invocation`, `plan`, `wired`, `workplace`, `carry_out`,
those that a loop's wiring asks for: `agent_setup`, `sandboxing`, `display`, …, and `showing`, for
who only looks at runs."""
