"""Fits as files and as step CDFs: what is read is what was written, on any clock of rounds."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluator.delays.cdf import DelayCDF
from evaluator.delays.families import FAMILIES, DelayFit
from evaluator.delays.fit_file import SCHEMA, law_cdf, load_fit, save_fit, steps_cdf
from evaluator.delays.nonparametric import fit_nonparametric
from evaluator.delays.study.fitting import fit_family
from evaluator.errors import DataError, ParameterError
from evaluator.units import without_ticks
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
    right = law_cdf(fit, ticks_per_round=3)
    assert saved.delay_cdf(ticks_per_round=3) == replace(right, source=without_ticks(right.source, 1.0))
    assert json.loads(path.read_text())["schema"] == SCHEMA
    assert list(tmp_path.iterdir()) == [path]


def test_nonparametric_fits_too(tmp_path: Path) -> None:
    fit = fit_nonparametric(*truncated_draws(np.random.default_rng(1), "lognormal", displays=500))
    save_fit(tmp_path / "fit.json", fit, tick="round")
    saved = load_fit(tmp_path / "fit.json")
    assert saved.law is None
    right = fit.delay_cdf()
    assert saved.delay_cdf() == replace(right, source=right.source.replace(" ticks", " rounds"))
    slow = saved.delay_cdf(ticks_per_round=60)
    for a in (0, 1, 7, 20):
        assert slow(a) == fit(60 * a + 59)


@pytest.mark.parametrize("name", [n for n in TRUTHS if n != "geometric"])
@pytest.mark.parametrize("rounding", ["floor", "none"])
def test_steps_lie_on_the_law_and_below_it_by_little(name: str, rounding: str) -> None:
    fit = fitted(name, rounding=rounding)
    family, parameters = fit.law
    end = fit.longest + (rounding == "floor")
    for ticks_per_round, endless in ((1.0, False), (17.5, False), (0.25, False), (5.0, True)):
        tau = law_cdf(replace(fit, longest=math.inf) if endless else fit, ticks_per_round=ticks_per_round)
        ages = np.unique(np.concatenate((np.arange(60), np.geomspace(60, end / ticks_per_round, 50).astype(int))))
        x = (ages + 1.0) * ticks_per_round
        truth = family.cdf(x, parameters)
        if not endless:
            truth = np.minimum(truth / family.cdf(np.array(end), parameters), 1)
        lost = truth - tau(ages)
        assert (lost > -1e-9).all()
        assert (lost < 1 / 1024 + 1e-9).all()
        if tau.geometric_ratio is None:
            assert tau.delays.size <= 1024


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


def fit_json(**changes: object) -> dict[str, object]:
    parameters = {"mu": 3.0, "sigma": 1.0}
    law = {
        "family": "lognormal", "parameters": parameters, "standard_errors": {"mu": 0.1, "sigma": None},
        "covariance": [[0.01, None], [0.0, 0.01]], "log_likelihood": -9.0, "aic": 22.0, "bic": None,
        "free_parameters": 2, "conversions": 9, "rounding": "floor", "longest": None, "converged": True, "notes": [],
        "width": 1.0,
    }  # fmt: skip
    steps = {"delays": [0.0, 3.0], "cdf": [0.5, 1.0]}
    whole: dict[str, object] = {"schema": SCHEMA, "tick": "1 s", "longest": None, "law": law, "steps": steps}
    whole["source"] = "by hand"
    for path, value in changes.items():
        *outer, last = path.split("__")
        at: object = whole
        for key in outer:
            at = at[key]  # type: ignore[index]
        at[last] = value  # type: ignore[index]
    return whole


def paths(value: dict[str, object], before: str = "") -> list[str]:
    found = []
    for key, part in value.items():
        found.append(before + key)
        if isinstance(part, dict):
            found += paths(part, f"{before}{key}__")
    return found


def refused(path: Path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=r"Delay fit .*fit\.json") as raised:
        load_fit(path)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 600
    return str(raised.value)


WRONG = ("1", [[1]], [], {}, {"x": 1}, True, 10**400, -(10**19), float("nan"), float("inf"), float("-inf"))
# A text takes any, a flag is a flag, there may be no notes, and some numbers may be of any size below 1e300.
RIGHT = {"source": ("1",), "law__notes": ([],), "law__converged": (True,)}
SIZES = ("log_likelihood", "aic", "bic", "parameters__mu", "standard_errors__mu", "standard_errors__sigma")
RIGHT |= {f"law__{name}": (-(10**19),) for name in SIZES}


def test_a_fit_by_hand_is_read(tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(fit_json()))
    assert load_fit(path).law is not None
    path.write_text(json.dumps(fit_json(law=None)))
    np.testing.assert_array_equal(load_fit(path).delays, [0, 3])


@pytest.mark.parametrize("where", paths(fit_json()))
def test_wrong_types_are_one_line(tmp_path: Path, where: str) -> None:
    for value in WRONG:
        if not any(value == right and type(value) is type(right) for right in RIGHT.get(where, ())):
            refused(tmp_path / "fit.json", json.dumps(fit_json(**{where: value})))


def test_files_that_are_no_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fit.json"
    assert "too deeply nested" in refused(path, "[" * 100_000)
    assert "a key is given twice" in refused(path, '{"schema": "delay-fit/1", "schema": "delay-fit/1"}')
    for content in (b"", b"\xff\xfe{}", b"\0" * 50, b"caf\xe9", b"[1]", b"1" * 5_000, b"NaN", b'"x"'):
        refused(path, content)
    good = json.dumps(fit_json())
    assert "0 is longer" not in refused(path, good.replace('"1 s"', '"0 s"'))
    assert "Expected a duration" in refused(path, good.replace('"1 s"', '"soon"'))
    monkeypatch.setattr("evaluator.delays.fit_file.MOST_BYTES", 100)
    assert "more than 100 bytes" in refused(path, good)
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        load_fit(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fit.json")
    with pytest.raises(DataError, match=r"fit\.json cannot be read: it is no regular file\."):
        load_fit(tmp_path / "fit.json")
