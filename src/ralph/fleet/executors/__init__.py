"""Who dispatches attempts: `local` in this process, `dask` on other machines. Each is an `Executor`
(fleet.port); `following` is what they share, and pure.
"""
