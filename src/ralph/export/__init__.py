"""A run for other tools: `atif` (Harbor's trajectories), `otlp` (OpenTelemetry's traces, `sending`
takes them to a collector) and `whole` (all facts and events). Each is told by what `reading` finds.
"""
