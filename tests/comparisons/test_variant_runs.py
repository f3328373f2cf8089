"""A study in jobs: however it is cut, and wherever it was interrupted, its results are the same to the bit."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evaluator.arguments import as_description
from evaluator.comparisons import kept, variant_runs
from evaluator.comparisons.conditions import pairs_to_expect
from evaluator.comparisons.kept import FoundResults, KeptResults
from evaluator.comparisons.run import plan_comparison
from evaluator.comparisons.variant_runs import FIRST, STEP, VariantRuns
from evaluator.outputs.kept_folder import kept_beside, part_files
from evaluator.replays.options import ReplayOptions
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import execute_all
from tests.logs import linear_log

LOG = linear_log(1500, n_actions=3, dimension=5, mean_delay=10.0, seed=1)
POLICIES = [as_description(policy) for policy in ("ucb1", "linucb", "random")]
OPTIONS = ReplayOptions(horizon=60, bootstrap=20, repeats=2)
PLANS = plan_comparison(LOG, POLICIES, [50, None], OPTIONS)


def said(results: list[ReplayResult]) -> list[tuple[str, tuple[float, ...], str]]:
    return [(json.dumps(r.to_dict()), r.resampled, r.trajectory.to_pydict().__repr__()) for r in results]


@pytest.fixture(scope="module")
def at_once() -> list[tuple[str, tuple[float, ...], str]]:
    return said(execute_all(PLANS))


@pytest.fixture(autouse=True)
def small_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variant_runs, "LANES", 4)
    monkeypatch.setattr(variant_runs, "TOGETHER", 6)


def test_jobs_of_any_size_add_up_to_the_same(at_once: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(VariantRuns(PLANS).run()) == at_once
    monkeypatch.setattr(variant_runs, "LANES", 64)
    monkeypatch.setattr(variant_runs, "TOGETHER", 1)
    assert said(VariantRuns(PLANS).run()) == at_once


def test_a_study_stopped_wherever_it_writes_goes_on_from_there(
    tmp_path: Path, at_once: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    write = kept.write_kept
    left: list[int] = []
    kinds: Counter[str] = Counter()

    def killed(*arguments: object) -> None:
        if left[0] == 0 and rng.random() < 0.5:  # before it is written, else after
            raise KeyboardInterrupt
        write(*arguments)  # type: ignore[arg-type]
        kinds[arguments[1].__name__] += 1  # type: ignore[attr-defined]
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(kept, "write_kept", killed)
    times = 0
    while True:
        left[:] = [int(rng.integers(0, 4))]
        try:
            with kept_beside(tmp_path / "run") as folder:
                own = KeptResults(folder, POLICIES)
                found = VariantRuns(PLANS, kept=own, found=own.find(PLANS, LOG)).run()
            break
        except KeyboardInterrupt:
            times += 1
    assert said(found) == at_once
    assert list(tmp_path.iterdir()) == []
    assert times > 5
    # Three scans of two variants; on each of them, four blocks of resampled logs. None of them was written twice.
    assert kinds == {"kept_name": 6, "part_name": 6 + 3 * 4}


def test_what_decides_goes_on_after_any_stop_and_tells_of_no_more_than_was_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = plan_comparison(LOG, POLICIES, [50], ReplayOptions(jobs=2))
    pairs = pairs_to_expect(plans, 2)
    assert pairs == ((0, 2), (1, 2))
    told: list[int] = []
    whole = VariantRuns(plans, pairs=pairs)
    total = sum(whole.totals.values())
    whole.run(told.append)
    assert 0.9 * total < sum(told) <= total
    monkeypatch.setattr(variant_runs, "TOGETHER", 40)
    write, written = kept.write_kept, Counter[str]()

    def killed(*arguments: object) -> None:
        write(*arguments)  # type: ignore[arg-type]
        written[arguments[1].__name__] += 1  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    monkeypatch.setattr(kept, "write_kept", killed)
    for _ in range(20):
        own = KeptResults(tmp_path, POLICIES)
        runs = VariantRuns(plans, kept=own, found=own.find(plans, LOG), pairs=pairs)
        try:
            runs.run()
            break
        except KeyboardInterrupt:
            pass
    logs = len(whole.compared[0].values)
    assert set(runs.compared) == {0, 1, 2}
    for i, of in whole.compared.items():
        np.testing.assert_array_equal(runs.compared[i].values, of.values)
    # Three results; and the resampled logs in blocks of 40, none of them twice.
    assert written == {"kept_name": 3, "part_name": 3 + (logs - FIRST) // STEP * 2}
    # Where other lines are compared, it is after another number of rounds, and what was kept says nothing of these.
    fewer = VariantRuns(plans[1:], found=FoundResults({}, 0, 0, draws={0: {0: (9.0, True, 9.0, 7)}}), pairs=((0, 1),))
    fewer.run()
    assert fewer.compared[0].values[0] != 9.0


def test_results_that_are_kept_are_written_after_scans_of_bounded_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variant_runs, "LANES", 64)
    plans = plan_comparison(LOG, POLICIES, [50, None], ReplayOptions(horizon=60, repeats=2))
    own = KeptResults(tmp_path, POLICIES)
    own.find(plans, LOG)
    assert sum(VariantRuns(plans, kept=own).totals.values()) == len(LOG)
    monkeypatch.setattr(variant_runs, "KEPT_WORK", 4 * len(LOG))
    assert sum(VariantRuns(plans).totals.values()) == len(LOG)
    written: list[int] = []
    found = VariantRuns(plans, kept=own).run(lambda displays: written.append(len(list(tmp_path.glob("*.kept")))))
    assert written == [0, 2, 4]
    assert said(found) == said(execute_all(plans))


def test_parts_are_counted_damaged_ones_are_computed_anew_and_those_of_others_left(tmp_path: Path) -> None:
    own = KeptResults(tmp_path, POLICIES)
    own.find(PLANS, LOG)
    runs = VariantRuns(PLANS, kept=own)
    runs.run()
    for file in tmp_path.glob("*.kept"):
        file.unlink()
    found = own.find(PLANS, LOG)
    assert (len(found.bare), len(found.draws), found.parts, found.damaged, found.others) == (6, 6, 6, 0, 0)
    assert sum(VariantRuns(PLANS, found=found).totals.values()) == 0
    first = next(iter(part_files(tmp_path)))
    first.write_bytes(first.read_bytes()[:-1])
    assert own.find(PLANS, LOG).damaged == 1
    assert not first.exists()
    other = plan_comparison(LOG, POLICIES, [50, None], ReplayOptions(horizon=61, bootstrap=20, repeats=2))
    assert own.find(other, LOG).others == 17
