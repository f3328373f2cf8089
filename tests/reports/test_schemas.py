"""What commands write as JSON, on stdout and in a folder, is what their schemas say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from evaluator.policies.base import PolicyList
from evaluator.policies.registry import describe, names
from evaluator.reading.canonical import write_canonical
from evaluator.reports.manifest import write_json, write_manifest
from evaluator.simulations.options import SimulateOptions
from tests.cli.runs import Run, evaluate, validate, validator
from tests.delays.joint_logs import WORLDS, joint_log
from tests.packaging.test_readme_output import script
from tests.reading.sources import dataset, spec_validator

schemas = script("schemas")

QUICK = ("--families", "geometric,lognormal", "--bootstraps", "19")


def valid(run: Run) -> Any:
    """Return the JSON of a run that went well, validated."""
    assert run.code == 0, run.err
    validate(run.json)
    return run.json


@pytest.mark.parametrize("more", [(), ("--windows", "100,2000,9000", "--by", "none"), ("--limit", "40")])
def test_delays_of_the_bundled_log(more: tuple[str, ...]) -> None:
    valid(evaluate("delays", "--limit", "3000", *QUICK, *more, "--json"))


def test_delays_on_context_of_a_log_that_stops_looking(tmp_path: Path) -> None:
    log, _ = joint_log(WORLDS["2 contexts, window"], 1500, np.random.default_rng(0))
    (tmp_path / "log").mkdir()
    write_canonical(log, tmp_path / "log")
    out = tmp_path / "out"
    found = valid(evaluate("delays", str(tmp_path / "log"), *QUICK, "--joint", "--out", str(out), "--json"))
    assert found["joint"]["cohorts"]
    assert found["fit"]["longest"] is not None
    written = json.loads((out / "result.json").read_text("utf-8"))
    assert written == found


def test_delays_of_a_bare_file(tmp_path: Path) -> None:
    file = tmp_path / "delays.csv"
    file.write_text("delay_s\n" + "\n".join(map(str, range(1, 80))) + "\n", encoding="utf-8")
    found = valid(evaluate("delays", "--file", str(file), "--delay-column", "delay_s", *QUICK, "--json"))
    assert found["displays"] is None
    few = tmp_path / "few.csv"
    few.write_text("delay_s\n3\n5\n", encoding="utf-8")
    found = valid(evaluate("delays", "--file", str(few), "--delay-column", "delay_s", *QUICK, "--json"))
    assert found["laws"] is None
    assert found["missing"]["laws"]


@pytest.mark.parametrize(
    ("scenario", "more"),
    [
        ("vernade2017-low", ("-p", "ucb1", "--window", "50")),
        ("vernade2017-low", ("--runs", "1", "--window", "none")),
        ("vernade2020-100-100", ()),
        ("manegueu2020-figure4", ()),
    ],
)
def test_simulations(scenario: str, more: tuple[str, ...], tmp_path: Path) -> None:
    words = ("simulate", "-s", scenario, "-p", "random", "--horizon", "200", "--runs", "2", *more, "--json")
    found = valid(evaluate(*words, "--out", str(tmp_path / "out")))
    assert json.loads((tmp_path / "out" / "result.json").read_text("utf-8")) == found


def test_plans(tmp_path: Path) -> None:
    file = tmp_path / "learned.npz"
    words = ("replay", "-p", "delayed-klucb", "--limit", "2000", "--propensity", "uniform")
    plan = valid(evaluate(*words, "-w", "50", "--final", "last:50%", "--dry-run", "--save-policy", str(file)))
    assert not file.exists()
    assert plan["window_rounds"] == 50
    learned = evaluate(*words, "-w", "50", "--final", "last:50%", "--save-policy", str(file), "--json")
    validate({"schema": plan["schema"], **learned.json["plan"]})
    later = ("--warm-start", str(file), "--delays-from", "first:50%", "--cluster-by", "every:20", "--cap", "0.5")
    plan = valid(evaluate(*words, *later, "--dry-run"))
    for part in ("options", "reward_bound", "warm_start", "cap", "clusters"):
        with pytest.raises(jsonschema.ValidationError):
            validate({**plan, part: {**plan[part], "typo": 1}})
    for broken in ({"typo": 1}, {"sampler": "greedy"}, {"displays": 0}, {"tau_window": 1.5}, {"warnings": ""}):
        with pytest.raises(jsonschema.ValidationError):
            validate({**plan, **broken})


def test_comparisons_hold_documents_of_replays_and_of_the_check() -> None:
    found = valid(evaluate("compare", "-p", "ucb1,random", "--limit", "2000", "--ship-if", "uplift > 0", "--json"))
    variant, check = found["variants"][0], found["check"]
    validate(variant)
    validate(check)
    for broken in (
        {"variants": [{**variant, "schema": check["schema"]}]},
        {"variants": [{**variant, "plan": {**variant["plan"], "typo": 1}}]},
        {"variants": []},
        {"check": {name: value for name, value in check.items() if name != "schema"}},
        {"curves": [{**found["curves"][0], "rounds": [1.5]}]},
        {"ranking": {**found["ranking"], "tests": [{**found["ranking"]["tests"][0], "p": 2}]}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            validate({**found, **broken})


def test_a_dataset_of_known_truth() -> None:
    assert len(valid(evaluate("datasets", "show", "promotions", "--limit", "500", "--json"))["truth"]) == 9


def test_a_dataset_of_files(tmp_path: Path) -> None:
    rows = ["t,ad,sold,user", "1,a,5,x", "2,b,,y", "x,a,,y", "3,a,,z"]
    spec, out = str(dataset(tmp_path, rows, context={"columns": ["user"]})), str(tmp_path / "log")
    quarantine = ("--on-error", "quarantine", "--quarantine-at-most", "25%", "--json")
    shown = valid(evaluate("datasets", "show", spec, *quarantine))
    spec_validator().validate(shown["spec"])
    refused = evaluate("datasets", "validate", spec, *quarantine)
    assert refused.code == 3
    validate(refused.json)
    assert refused.json["ok"] is False
    converted = valid(evaluate("datasets", "convert", spec, out, *quarantine))
    assert (converted["out"], converted["displays"], converted["quarantined"]) == (out, 3, 1)
    assert valid(evaluate("datasets", "show", out, "--json"))["spec"] is None
    valid(evaluate("datasets", "validate", out, "--json"))
    for document, broken in (
        (shown, {"log": {**shown["log"], "typo": 1}}),
        (shown, {"missing": "files"}),
        (shown, {"log": None}),
        (refused.json, {"counts": {"rows": "3"}}),
        (converted, {"counted": "3"}),
        (converted, {"displays": "3"}),
    ):
        with pytest.raises(jsonschema.ValidationError):
            validate({**document, **broken})


@pytest.mark.parametrize("name", names())
def test_every_policy_is_described(name: str) -> None:
    document = describe(name).to_dict()
    validate(document)
    for parameter in document["parameters"]:
        with pytest.raises(jsonschema.ValidationError):
            validate({**document, "parameters": [{**parameter, "typo": 1}]})
    listed = PolicyList((describe(name),)).to_dict()
    validate(listed)
    with pytest.raises(jsonschema.ValidationError):
        validate({**listed, "policies": [document]})


def test_schemas_refuse_what_is_not_so() -> None:
    simulated = evaluate(
        "simulate", "-s", "vernade2017-low", "-p", "random", "--horizon", "200", "--runs", "2", "--json"
    )
    for broken in ({"runs": 0}, {"policies": []}, {"tau_window": [1.5]}, {"typo": 1}, {"delays": "geometric"}):
        with pytest.raises(jsonschema.ValidationError):
            validate({**simulated.json, **broken})
    studied = evaluate("delays", "--limit", "3000", *QUICK, "--json").json
    for broken in ({"tick": "week"}, {"quantiles": []}, {"conversions": -1}, {"typo": 1}, {"period": "month"}):
        with pytest.raises(jsonschema.ValidationError):
            validate({**studied, **broken})
    for part in ("fit", "laws", "advice", "tail", "heterogeneity", "drift", "options"):
        with pytest.raises(jsonschema.ValidationError):
            validate({**studied, part: {**studied[part], "typo": 1}})


def properties(schema: Any, name: str) -> list[Any]:
    """Return what a schema says of a property, wherever it has one of this name."""
    if isinstance(schema, list):
        return [found for part in schema for found in properties(part, name)]
    if not isinstance(schema, dict):
        return []
    own = [schema["properties"][name]] if name in schema.get("properties", {}) else []
    return own + [found for part in schema.values() for found in properties(part, name)]


@pytest.mark.parametrize("file", schemas.FILES, ids=lambda file: str(file.name))
def test_options_in_schemas_are_the_declared_ones(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert text == schemas.source(file), "run: python docs/schemas.py"
    schema = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(schema)
    for one in properties(schema, "options") + properties(schema, "reading"):
        for option in one.get("anyOf", [one]):
            name = option["$ref"].removeprefix("#/$defs/")
            assert name.endswith("Options"), f"{file.name}: refer to a definition of docs/schemas.py"
            assert schema["$defs"][name]["properties"]


def test_a_manifest_with_another_option_is_refused(tmp_path: Path) -> None:
    asked = SimulateOptions(horizon=500).to_dict()
    log: dict[str, Any] = {"dataset": "synthetic", "fingerprint": "0"}

    write_json(tmp_path / "result.json", {})

    def validate_manifest(**done: Any) -> None:
        (tmp_path / "manifest.json").unlink(missing_ok=True)
        write_manifest(tmp_path, **done)
        validator("manifest").validate(json.loads((tmp_path / "manifest.json").read_text("utf-8")))

    validate_manifest(scenario="vernade2017-low", policies=["ucb1"], options=asked)
    validate_manifest(source={**log, "reading": {"limit": 5}})
    for wrong in ({**asked, "typo": 1}, {**asked, "runs": 0}, {**asked, "delays": 3}, {"runs": 5}):
        with pytest.raises(jsonschema.ValidationError):
            validate_manifest(scenario="vernade2017-low", policies=["ucb1"], options=wrong)
    for reading in ({"limit": 0}, {"limits": 5}, {"deduplicate": "none"}):
        with pytest.raises(jsonschema.ValidationError):
            validate_manifest(source={**log, "reading": reading})
