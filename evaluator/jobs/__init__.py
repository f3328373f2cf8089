"""Jobs: work that threads, processes, or any `concurrent.futures.Executor` such as Dask workers computes.

*A job* is a frozen dataclass of plain values: the place of a log and its fingerprint, what to replay on it, an index
range, and a hash of everything that determines its result. It holds no array of the log. A worker opens the log itself
and keeps it open for the jobs that follow (`evaluator.jobs.workers.OpenedLast`). It raises if it finds another log, or
if it runs other code than the command (`evaluator.jobs.workers`). A job depends on nothing but its own values, so a
scheduler may compute it twice, elsewhere, or again after a worker died: the result is the same to the bit, and is
counted once (`evaluator.jobs.run_jobs`).

*State* is kept by this package: it writes the result of every job beside the output at once, so that a scheduler that
fails costs only the jobs in progress. The package has no scheduler of its own: the executor manages the workers.
"""
