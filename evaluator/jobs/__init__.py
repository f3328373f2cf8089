"""Work in units that any `concurrent.futures.Executor` computes: threads, processes, the workers of a Dask cluster.

*A unit* is a frozen dataclass of plain values: where a log lies and the hash of what it holds, what is to be replayed
on it, an index range, and the hash of all that fixes its result. It holds no array of the log: a worker opens the log
itself, once, keeps it for the units that follow, and refuses it if it is another one, or if the worker runs other code
(`evaluator.jobs.software`). A unit returns a small table. It depends on nothing but its own values, so a scheduler
may compute it twice, elsewhere, or again after a worker died: the result is the same to the bit, and is counted by the
unit, once (`evaluator.jobs.run_jobs`).

*State* is ours: every unit that is finished is written beside the output at once, and what a scheduler forgets costs
the units in progress alone. There is no scheduler here, and none of its options: workers are the executor's.
"""
