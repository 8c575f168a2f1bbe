"""Ralph as tools for other programs: a server of the Model Context Protocol over stdin and stdout
(ADR 52). `jsonrpc` reads messages and `protocol` answers them, both pure; `tools` is the table of
tools, `serve` the only place that reads and writes, `pending` what an answer waits for. `looking`,
`asking`, `reading` and `steering` are what the tools do, for the runs in the server's `scope`."""
