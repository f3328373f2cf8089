"""The option ``--cluster``, and the workers that it names."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Annotated

from evaluator.cli.lending import offered
from evaluator.cli.options import note
from evaluator.options.shared import CLUSTER, STUDY

Cluster = Annotated[str | None, offered("cluster", CLUSTER)]
# Option of a command without replays, which has another panel.
DelaysCluster = Annotated[str | None, offered("cluster", CLUSTER.but(panel=STUDY))]
# Option of a command whose options have no panels.
SimulateCluster = Annotated[str | None, offered("cluster", CLUSTER.but(panel=""))]


@contextmanager
def workers(cluster: str | None) -> Iterator[Executor | None]:
    """Give the executor of a cluster, whose workers report to stderr; None if this process computes."""
    if cluster is None:
        yield None
        return
    from evaluator.jobs.addresses import workers_at

    with workers_at(cluster, note) as executor:
        yield executor
