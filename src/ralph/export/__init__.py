"""A run for other tools: `atif` (Harbor's trajectories), `otlp` (OpenTelemetry's traces, `sending`
takes them to a collector) and `whole` (all facts and events). Each is told by a source: `reading`
is that of a run, and `transcript` reads for that of a loop in a session.
"""
