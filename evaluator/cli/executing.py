"""Who computes: this process, or the workers that ``--cluster`` names."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Annotated

from evaluator.cli.lending import offered
from evaluator.cli.options import note
from evaluator.options.shared import CLUSTER, STUDY

Cluster = Annotated[str | None, offered("cluster", CLUSTER)]
# Of a command that replays nothing.
DelaysCluster = Annotated[str | None, offered("cluster", CLUSTER.but(panel=STUDY))]
# Of a command whose options have no panels.
SimulateCluster = Annotated[str | None, offered("cluster", CLUSTER.but(panel=""))]


@contextmanager
def workers(cluster: str | None) -> Iterator[Executor | None]:
    """Give the executor of a cluster's workers, who say on stderr what becomes of them; None for this process."""
    if cluster is None:
        yield None
        return
    from evaluator.jobs.addresses import workers_at

    with workers_at(cluster, note) as executor:
        yield executor
