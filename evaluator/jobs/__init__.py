"""Jobs: work that threads, processes, or any `concurrent.futures.Executor` such as Dask workers computes.

*A job* is a frozen dataclass of plain values: where a log lies and the hash of what it holds, what is to be replayed
on it, an index range, and the hash of all that fixes its result. It holds no array of the log: a worker opens the log
itself, once, keeps it for the jobs that follow (`evaluator.jobs.workers.OpenedLast`), and refuses it if it is another
one, or if the worker runs other code (`evaluator.jobs.software`). A job depends on nothing but its own values, so a
scheduler may compute it twice, elsewhere, or again after a worker died: the result is the same to the bit, and is
counted once (`evaluator.jobs.run_jobs`).

*State* is ours: the result of every job is written beside the output at once, and what a scheduler forgets costs the
jobs in progress alone. There is no scheduler here, and none of its options: workers are the executor's.
"""
