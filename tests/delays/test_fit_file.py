"""Fits as files and as step CDFs: what is read is what was written, on any clock of rounds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evaluator.delays import DelayCDF
from evaluator.delays.families import FAMILIES
from evaluator.delays.fit_file import SCHEMA, law_cdf, load_fit, save_fit, steps_cdf
from evaluator.delays.fitting import DelayFit, fit_family
from evaluator.delays.nonparametric import fit_nonparametric
from evaluator.errors import DataError, ParameterError
from tests.delays.laws import TRUTHS, truncated_draws


def fitted(name: str, *, limits: bool = True, rounding: str = "floor") -> DelayFit:
    delays, ends = truncated_draws(np.random.default_rng(0), name, displays=3000, rounding=rounding)
    return fit_family(delays, ends if limits else None, family=name, rounding=rounding)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("limits", [True, False])
def test_what_is_read_is_what_was_written(tmp_path: Path, name: str, limits: bool) -> None:
    fit = fitted(name, limits=limits)
    path = tmp_path / "fit.json"
    save_fit(path, fit, tick="1 s")
    saved = load_fit(path)
    assert saved.law == fit
    assert (saved.tick, saved.longest) == ("1 s", fit.longest)
    assert saved.delay_cdf(ticks_per_round=3) == law_cdf(fit, ticks_per_round=3)
    assert json.loads(path.read_text())["schema"] == SCHEMA
    assert list(tmp_path.iterdir()) == [path]


def test_nonparametric_fits_too(tmp_path: Path) -> None:
    fit = fit_nonparametric(*truncated_draws(np.random.default_rng(1), "lognormal", displays=500))
    save_fit(tmp_path / "fit.json", fit, tick="round")
    saved = load_fit(tmp_path / "fit.json")
    assert saved.law is None
    assert saved.delay_cdf() == fit.delay_cdf()
    slow = saved.delay_cdf(ticks_per_round=60)
    for a in (0, 1, 7, 20):
        assert slow(a) == fit(60 * a + 59)


@pytest.mark.parametrize("name", [n for n in TRUTHS if n != "geometric"])
@pytest.mark.parametrize("rounding", ["floor", "none"])
def test_steps_lie_on_the_law_and_below_it_by_little(name: str, rounding: str) -> None:
    fit = fitted(name, rounding=rounding)
    family, parameters = fit.law
    end = fit.longest + (rounding == "floor")
    for ticks_per_round, extrapolate in ((1.0, False), (17.5, False), (0.25, False), (5.0, True)):
        tau = law_cdf(fit, ticks_per_round=ticks_per_round, max_steps=200, extrapolate=extrapolate)
        ages = np.unique(np.concatenate((np.arange(60), np.geomspace(60, end / ticks_per_round, 50).astype(int))))
        x = (ages + 1.0) * ticks_per_round
        truth = family.cdf(x, parameters)
        if not extrapolate:
            truth = np.minimum(truth / family.cdf(np.array(end), parameters), 1)
        lost = truth - tau(ages)
        assert (lost > -1e-9).all()
        assert (lost < 1 / 200 + 1e-9).all()
        if tau.geometric_ratio is None:
            assert tau.delays.size <= 200


def test_geometric_and_exponential_laws_stay_geometric() -> None:
    geometric, exponential = (fitted(name, limits=False) for name in ("geometric", "exponential"))
    tau = law_cdf(geometric)
    assert tau.geometric_ratio is not None
    assert tau.start == 1
    assert tau.mean == pytest.approx(geometric.mean)
    np.testing.assert_allclose(tau(np.arange(50)), geometric.cdf(np.arange(50)), rtol=1e-10, atol=1e-14)
    slow = law_cdf(exponential, ticks_per_round=60)
    assert slow.geometric_ratio is not None
    np.testing.assert_allclose(slow(np.arange(9)), exponential.cdf(60 * np.arange(9) + 59), rtol=1e-10)
    slower = law_cdf(geometric, ticks_per_round=10)
    np.testing.assert_allclose(slower(slower.delays), geometric.cdf(10 * slower.delays + 9), rtol=1e-9)
    assert law_cdf(fitted("exponential")).geometric_ratio is None
    assert law_cdf(fitted("exponential"), extrapolate=True).geometric_ratio is not None
    assert isinstance(steps_cdf(np.array([0.0, 5.0]), np.array([0.5, 1.0]), "by hand"), DelayCDF)


def test_broken_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    with pytest.raises(DataError, match="cannot be read"):
        load_fit(path)
    path.write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        load_fit(path)
    path.write_text('{"schema": "delay-fit/9"}')
    with pytest.raises(DataError, match="this version reads delay-fit/1"):
        load_fit(path)
    save_fit(path, fitted("lognormal"), tick="1 s")
    good = json.loads(path.read_text())
    for change in ({"law": {**good["law"], "parameters": {"mu": 1}}}, {"law": {**good["law"], "family": "normal"}},
                   {"law": {**good["law"], "parameters": {"mu": 1, "sigma": -1}}}, {"law": None},
                   {"law": {**good["law"], "more": 1}}):  # fmt: skip
        path.write_text(json.dumps({**good, **change}))
        with pytest.raises(DataError, match="breaks schema"):
            load_fit(path)
    save_fit(path, fitted("geometric"), tick="1 s")
    path.write_text(path.read_text().replace('"start": 1.0', '"start": 2.0'))
    with pytest.raises(DataError, match="no geometric law has parameters"):
        load_fit(path)
    with pytest.raises(ParameterError, match="ticks_per_round is 0"):
        law_cdf(fitted("lognormal"), ticks_per_round=0)
    with pytest.raises(ParameterError, match="ticks_per_round is 0"):
        steps_cdf(np.array([1.0]), np.array([1.0]), "", ticks_per_round=0)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fit.json"
    fit = fitted("lognormal")
    save_fit(path, fit, tick="1 s")
    before = path.read_text()

    def fails(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(json, "dump", fails)
    with pytest.raises(OSError, match="disk full"):
        save_fit(path, fit, tick="1 min")
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]
