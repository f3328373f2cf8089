"""Real rows, which are never part of the project: skipped where they are absent."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from evaluator import replay
from evaluator.datasets import convert, load, show, validate
from evaluator.errors import UsageError

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
CRITEO = SHARED / "criteo_attribution" / "first_100_rows.tsv.gz"
OBD = SHARED / "obd"

needs_criteo = pytest.mark.skipif(not CRITEO.exists(), reason="the sample of the Criteo attribution dataset is absent")
needs_obd = pytest.mark.skipif(not OBD.exists(), reason="the sample of the Open Bandit Dataset is absent")


@needs_criteo
def test_criteo_rows(tmp_path: Path) -> None:
    log = load("criteo_attribution", path=CRITEO)
    with gzip.open(CRITEO, "rt") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    assert log.column("time").tolist() == [int(r["timestamp"]) for r in rows]
    assert [log.labels[a] for a in log.column("action")] == [r["campaign"] for r in rows]
    sold = [(i, int(r["conversion_timestamp"]), 1.0) for i, r in enumerate(rows) if r["conversion"] == "1"]
    assert [tuple(c.values()) for c in log.conversions.to_pylist()] == sold
    assert log.column("context").shape == (100, 17)
    assert (log.meta.tick, log.meta.attribution_window, log.meta.observed_until) == ("s", 30 * 86400, None)
    assert any("unmeasured confounding" in n for n in log.meta.notes)
    assert load("criteo_attribution", path=CRITEO, attributed_only=True).conversions.num_rows == 3
    assert validate("criteo_attribution", path=CRITEO)["ok"]
    assert show("criteo_attribution", path=CRITEO)["log"]["displays"] == 100
    assert len(convert("criteo_attribution", tmp_path / "out", path=CRITEO).log) == len(load(tmp_path / "out")) == 100


@needs_criteo
@pytest.mark.parametrize("column", ["click_pos", "click_nb", "conversion", "conversion_id", "attribution", "cpo"])
def test_criteo_outcomes_are_refused_as_features(column: str) -> None:
    with pytest.raises(UsageError, match="known only after"):
        load("criteo_attribution", path=CRITEO, features=f"cat1,{column}")


@needs_obd
def test_open_bandit_random() -> None:
    log = load("open_bandit", path=OBD / "random" / "all" / "all.csv")
    assert (len(log), log.n_actions, log.conversions.num_rows) == (10_000, 80, 38)
    assert log.labels[:3] == ["0", "1", "2"]
    np.testing.assert_allclose(log.column("propensity"), 1 / 80, rtol=1e-9)
    assert log.meta.tick == "us"
    with (OBD / "random" / "all" / "all.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert sorted(map(int, log.column("slot"))) == sorted(int(row["position"]) for row in rows)
    affinity = np.array([[row[f"user-item_affinity_{label}"] for label in log.labels] for row in rows], np.float32)
    found = log.column("action_set")
    assert found.shape == (10_000, 80, 1)
    # Displays of one moment come in an order by chance.
    np.testing.assert_array_equal(np.sort(found[:, :, 0].sum(axis=1)), np.sort(affinity.sum(axis=1)))
    [by_slot] = replay(log, "linucb", by="slot").to_dict()["segments"]
    assert by_slot["column"] == "slot"
    facts = show("open_bandit", path=OBD / "random" / "all" / "all.csv")["log"]
    assert (facts["action_vector_dimensions"], facts["kept_columns"]) == (1, ["slot"])


@needs_obd
def test_open_bandit_bts() -> None:
    log = load("open_bandit", path=OBD / "bts" / "all" / "all.csv", features="none")
    p = log.column("propensity")
    assert len(log) == 10_000
    assert (p.min(), p.max()) == (4.5e-05, pytest.approx(0.954, abs=5e-4))
