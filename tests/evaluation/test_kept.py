"""Finished results of a study come back as they were."""

from __future__ import annotations

from pathlib import Path

from evaluator.api import as_description
from evaluator.evaluation.comparison import plan_comparison
from evaluator.evaluation.execute import execute_all
from evaluator.evaluation.kept import KeptResults
from evaluator.evaluation.options import ReplayOptions
from tests.logs import linear_log


def test_every_number_comes_back_also_those_asked_for(tmp_path: Path) -> None:
    log = linear_log(1500, n_actions=3, dimension=2, mean_delay=10.0, seed=1)
    options = ReplayOptions(final="last:20%", doubly_robust=True, bootstrap=20, horizon=200)
    plans = plan_comparison(log, [as_description(p) for p in ("linucb", "lints")], [50], options)
    results = execute_all(plans)
    kept = KeptResults(tmp_path / "kept", reading={})
    for plan, result in zip(plans, results, strict=True):
        kept.keep(plan, result)
    found = kept.find(plans)
    for i, result in enumerate(results):
        assert found[i].to_dict() == result.to_dict()
        assert found[i].trajectory.equals(result.trajectory)
        assert found[i].resampled == result.resampled
        assert repr(found[i].final) == repr(result.final)  # in which what is withheld, nan, equals itself
