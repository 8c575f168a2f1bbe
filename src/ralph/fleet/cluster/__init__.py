"""The machines of a fleet: a scheduler, its workers, and questions to them. Dask distributed does the
dispatching (ADR 47); only what is imported lazily here knows it.

Public: `up`, `worker`, `asking`, `checking`.
"""
