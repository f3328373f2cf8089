"""What the check says of real logs and of one whose logger is known to choose by context."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator import check, load
from evaluator.datasets import make


@pytest.mark.parametrize("logger", ["random", "bts"])
def test_open_bandit_samples(shared_data: Path, logger: str) -> None:
    report = check(load("open_bandit", path=shared_data / "obd" / logger / "all" / "all.csv"))
    wrong = {f.name: f.verdict for f in report.checks if f.verdict in ("warn", "fail")}
    if logger == "random":
        assert wrong == {}
        assert report["uniformity"].verdict == "pass"
    else:
        # Propensities are right, but 4.5e-05 leaves no round to a contextual replay of 10,000 displays.
        assert wrong == {"overlap": "fail"}
        mean, error = (report["calibration"].numbers[name] for name in ("mean_inverse_propensity", "standard_error"))
        assert abs(mean - 80) < 4 * error


def test_criteo_sample_is_too_small(shared_data: Path) -> None:
    path = shared_data / "criteo_attribution" / "first_100_rows.tsv.gz"
    report = check(load("criteo_attribution", path=path))
    assert not report.fit
    assert report["overlap"].verdict == "fail"


def test_the_campaigns_of_the_criteo_twin_depend_on_the_context(tmp_path: Path) -> None:
    made = tmp_path / "twin.tsv.gz"
    make("criteo_twin", made, rows=200_000, seed=1)
    log = load("criteo_twin", path=made, actions="top:10")
    report = check(log, propensity="estimate")
    assert report["independence"].verdict == "fail"
    assert report["duplicated displays"].verdict == "pass"
    assert report["shared conversions"].verdict == "pass"
    copied = check(load("criteo_twin", path=made, actions="top:10", deduplicate="all"))
    assert copied["shared conversions"].verdict == "fail"
    shared = check(load("criteo_twin", path=made, actions="top:10", deduplicate="share"))
    assert shared["shared conversions"].verdict == "pass"
    assert "shared out" in shared["shared conversions"].what
