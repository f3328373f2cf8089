"""Writing: determinism, atomic output, refusals."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evaluator.datasets import make
from evaluator.errors import OutputExistsError, ParameterError, SpecError, UsageError
from evaluator.outputs.atomic import described
from evaluator.reading.resolve import dataset_spec
from evaluator.reading.spec import parse_spec
from evaluator.worlds.criteo import make as module
from evaluator.worlds.criteo.make import plan_twin
from tests.cli.runs import evaluate, validate


def written(folder: Path, name: str, **options: int) -> list[bytes]:
    made = make("criteo_twin", folder / f"{name}.tsv.gz", **{"rows": 2_000, **options})
    return [p.read_bytes() for p in (made.path, made.table)]


def test_same_seed_same_bytes_whatever_the_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_ROWS", 500)
    one = written(tmp_path, "one", seed=5, jobs=1)
    assert one == written(tmp_path, "many", seed=5, jobs=4)
    other = written(tmp_path, "other", seed=6, jobs=1)
    assert one[0] != other[0]
    assert one[1] == other[1]  # the truth is the dataset's, not the seed's


def test_a_truth_says_of_which_files_it_is(tmp_path: Path) -> None:
    made = make("criteo_twin", tmp_path / "t.tsv.gz", rows=1_000)
    assert json.loads(made.truth.read_text())["files"] == described([made.path, made.table])


def test_chunks_join_in_time_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_ROWS", 100)
    text = gzip.decompress(written(tmp_path, "small")[0]).decode().splitlines()[1:]
    times = [int(line.split("\t")[0]) for line in text]
    assert len(times) == 2_000
    assert times == sorted(times)
    assert (times[0], times[-1]) == (0, 2_671_199)


@pytest.mark.parametrize("rows", [1_000, 1_777, 10_000, 131_073])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_row_has_its_user(rows: int, seed: int) -> None:
    twin = dataset_spec("criteo_twin").twin
    plan, _ = plan_twin(twin, rows=rows, seed=seed)
    assert len(plan.users.of_others) + plan.journeys.rows.sum() == rows
    assert plan.others[-1] == len(plan.users.of_others)
    assert len(set(plan.users.of_journey.tolist())) == len(plan.journeys.rows)
    assert plan.users.total == round(twin.users * rows / twin.rows)
    assert plan.journeys.row_time.min() >= 0
    assert plan.journeys.row_time.max() < twin.arrivals.seconds


@pytest.mark.parametrize("options", [{"rows": 999}, {"rows": 16_468_028}, {"seed": -1}, {"jobs": 0}])
def test_impossible_parameters(tmp_path: Path, options: dict[str, int]) -> None:
    with pytest.raises(ParameterError):
        make("criteo_twin", tmp_path / "t.tsv.gz", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dataset", ["synthetic", "criteo_attribution"])
def test_only_twins_can_be_made(tmp_path: Path, dataset: str) -> None:
    with pytest.raises(UsageError, match=r"no \[twin\] section"):
        make(dataset, tmp_path / "t.tsv.gz")


@pytest.mark.parametrize("name", ["t.tsv.gz", "t.tsv.gz.truth.json", "t.tsv.gz.truth.parquet"])
def test_existing_output_is_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(OutputExistsError, match="exists"):
        make("criteo_twin", tmp_path / "t.tsv.gz", rows=1_000)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(name, "mine")]


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No folder"):
        make("criteo_twin", tmp_path / "gone" / "t.tsv.gz", rows=1_000)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError])
def test_interruption_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: type[BaseException]
) -> None:
    monkeypatch.setattr(module, "CHUNK_ROWS", 100)
    calls = []

    def advance(rows: int) -> None:
        calls.append(rows)
        if len(calls) == 3:
            raise stop

    with pytest.raises(stop):
        make("criteo_twin", tmp_path / "t.tsv.gz", rows=2_000, advance=advance)
    assert not list(tmp_path.iterdir())


def test_progress_counts_every_line(tmp_path: Path) -> None:
    seen = []
    make("criteo_twin", tmp_path / "t.tsv.gz", rows=1_500, advance=seen.append)
    assert sum(seen) == 1_500


def test_command(tmp_path: Path) -> None:
    out = tmp_path / "t.tsv.gz"
    run = evaluate("datasets", "make", "criteo_twin", "--rows", "1000", "--seed", "4", "-o", str(out), "--json")
    assert run.code == 0, run.err
    assert run.json["schema"] == "evaluate.made/1"
    validate(run.json)
    for broken in ({"typo": 1}, {"rows": "1000"}, {"displays": 1, "sales": 0, "delays": 0}, {"sales": 0}):
        with pytest.raises(jsonschema.ValidationError):
            validate({**run.json, **broken})
    assert run.json["rows"] == 1_000
    again = evaluate("datasets", "make", "criteo_twin", "--rows", "1000", "-o", str(out))
    assert again.code == 2
    assert "exists" in again.err
    plain = evaluate("datasets", "make", "criteo_twin", "--rows", "1000", "-o", str(tmp_path / "u.tsv.gz"))
    assert "rows 1,000" in plain.out
    assert "truth.json" in plain.err


def test_show_says_how_to_make_it() -> None:
    assert "evaluate datasets make criteo_twin" in evaluate("datasets", "show", "criteo_twin").out.replace("\n", " ")


@pytest.mark.parametrize(
    ("section", "changes", "words"),
    [
        ("delays", {"seconds": [1, 2], "cdf": [0, 0.5]}, "from 0 to 1"),
        ("delays", {"seconds": [1, 1], "cdf": [0, 1]}, "must increase"),
        ("delays", {"seconds": [1, 2, 3], "cdf": [0, 1]}, "3 seconds for 2"),
        ("delays", {"seconds": [1, 9e6], "cdf": [0, 1]}, "shorter than the log"),
        ("contexts", {"classes": [1, 2], "effect1": 0.5, "effect4": 0.1, "lean": 1}, "values of cat4"),
        ("contexts", {"classes": [1, 20], "effect1": 0.5, "effect4": 0.5, "lean": 1}, "below 1"),
        ("journey_rows", {"single": 0.5, "exponent": 3, "longst": 9}, "did you mean longest"),
    ],
)
def test_wrong_parameters_are_explained(section: str, changes: dict[str, Any], words: str) -> None:
    data = dataset_spec("criteo_twin").model_dump(mode="json", exclude_none=True)
    data["twin"][section] = changes
    with pytest.raises(SpecError, match=words):
        parse_spec(data)


@pytest.mark.parametrize("rate", [0.5, 0.44])
def test_rates_that_do_not_fit_are_refused(rate: float) -> None:
    """Above the campaign's click rate (0.4455); below it on average, but above 1 in the best context for it."""
    twin = dataset_spec("criteo_twin").twin
    rates = [rate, *twin.campaigns.conversion_rates[1:]]
    campaigns = twin.campaigns.model_copy(update={"conversion_rates": rates})
    contexts = twin.contexts.model_copy(update={"effect1": 0.69, "lean": -3.0})
    with pytest.raises(SpecError, match="conversion rates reach 1"):
        plan_twin(twin.model_copy(update={"contexts": contexts, "campaigns": campaigns}), rows=1_000, seed=0)
