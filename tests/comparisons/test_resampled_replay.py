"""A replay with a bootstrap in jobs: whoever computes them and wherever it was interrupted, the result is the same."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator import replay
from evaluator.arguments import as_description
from evaluator.comparisons import kept, variant_runs
from evaluator.comparisons.kept import KeptResults
from evaluator.comparisons.variant_runs import DrawsJob, execute_in_jobs
from evaluator.errors import NoRoundsError, UsageError
from evaluator.outputs.kept_folder import kept_beside
from evaluator.replays.options import ReplayOptions
from evaluator.replays.planning import plan_replay
from evaluator.replays.result import ReplayResult
from tests.logs import linear_log

LOG = linear_log(1500, n_actions=3, dimension=5, mean_delay=10.0, seed=1)
ASKED: dict[str, Any] = {"window": 50, "bootstrap": 20, "repeats": 2}
POLICY = as_description("linucb")


def said(result: ReplayResult) -> list[object]:
    assert result.learned is not None
    content = result.learned.content()
    return [json.dumps(result.to_dict()), result.resampled, repr(result.trajectory.to_pydict()), repr(content[2:])]


@pytest.fixture(scope="module")
def alone() -> list[object]:
    return said(replay(LOG, "linucb", **ASKED))


@pytest.fixture(autouse=True)
def small_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variant_runs, "TOGETHER", 6)
    monkeypatch.setattr(variant_runs, "WORK", 3 * 2 * 1500)
    monkeypatch.setattr(variant_runs, "FEWEST", 1)


def test_workers_replay_the_resampled_logs(alone: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    variant_runs._opened.clear()
    computed: list[str] = []
    compute = DrawsJob.compute
    monkeypatch.setattr(DrawsJob, "compute", lambda job, *on: computed.append(job.name) or compute(job, *on))
    with ThreadPoolExecutor(2) as pool:
        assert said(replay(LOG, "linucb", executor=pool, **ASKED)) == alone
    assert len(computed) == 7
    assert all("resampled logs" in name for name in computed)


def test_one_that_is_stopped_wherever_it_writes_goes_on_from_there(
    tmp_path: Path, alone: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    write = kept.write_kept
    written: list[object] = []

    def killed(*arguments: Any) -> None:
        before = rng.random() < 0.5
        if before and rng.random() < 0.5:
            raise KeyboardInterrupt
        write(*arguments)
        written.append(arguments[2])
        if not before:
            raise KeyboardInterrupt

    monkeypatch.setattr(kept, "write_kept", killed)
    plan = plan_replay(LOG, POLICY, ReplayOptions(**ASKED))
    times, told = 0, []
    while True:
        try:
            with kept_beside(tmp_path / "run") as folder:
                found = execute_in_jobs(plan, LOG, kept=KeptResults(folder, [POLICY]), say=told.append)
            break
        except KeyboardInterrupt:
            times += 1
    assert said(found) == alone
    assert times > 2
    assert any("of 20 resampled logs, finished before" in sentence for sentence in told)
    blocks = -(-20 // 6)
    # Once all are there the result itself is written, as often as it takes.
    assert len(set(written)) == blocks + 1
    assert len([key for key in written if key != written[-1]]) == blocks
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_spread_or_replayed_is_refused() -> None:
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(UsageError, match="Workers have nothing to do"):
            replay(LOG, "linucb", window=50, executor=pool)
        with pytest.raises(NoRoundsError):
            replay(
                linear_log(2, n_actions=50, dimension=5, mean_delay=10.0, seed=1), "random", bootstrap=20, executor=pool
            )
