"""The machines of a fleet: a scheduler, its workers, and questions to them. Dask distributed does
the dispatching (ADR 47); `dask_nodes` is where it is taken in hand.

Public: `up`, `worker`, `asking`, `probe`.
"""
