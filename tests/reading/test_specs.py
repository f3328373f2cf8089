from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest

from evaluator.datasets import json_schema, load, names
from evaluator.errors import SpecError, UnknownNameError
from evaluator.reading.locate import bundled_folder
from evaluator.reading.roles import CALENDAR, CANDIDATE, DISPLAY, EVENT, TARGETS, VECTORS, Role
from evaluator.reading.spec import parse_spec, read_spec
from evaluator.reading.spec_sections import Table
from tests.reading.sources import spec_data, spec_validator, write_spec

SHIPPED = [
    "criteo_attribution", "criteo_conversion_logs", "criteo_twin", "open_bandit", "promotions", "synthetic",
    "vw_dsjson", "vw_text",
]  # fmt: skip


def test_shipped_names() -> None:
    folders = {path.parent.name for path in bundled_folder().glob("*/spec.toml")}
    assert folders == set(SHIPPED) < set(names())


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_spec_validates_and_has_a_card(name: str) -> None:
    path = bundled_folder() / name / "spec.toml"
    spec = read_spec(path)
    assert spec.name == name
    card = (path.parent / "README.md").read_text()
    for word in ("Licence", "Source", "replay"):
        assert word in card
    assert spec.licence in card


@pytest.mark.parametrize("name", SHIPPED)
def test_json_schema_accepts_shipped_specs_and_refuses_a_misspelling(name: str) -> None:
    data = tomllib.loads((bundled_folder() / name / "spec.toml").read_text())
    spec_validator().validate(data)
    with pytest.raises(jsonschema.ValidationError):
        spec_validator().validate({**data, "titel": "x"})


def test_specs_hold_no_python() -> None:
    assert list(bundled_folder().rglob("*.py")) == []


def _scenario(**changes: Any) -> dict[str, Any]:
    scenario = {"kind": "linear", **changes}
    return {"name": "s", "title": "S", "licence": "none", "scenario": scenario}


def _missing_time() -> dict[str, Any]:
    return spec_data(display={"time": None})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (spec_data(display={"tyme": "t"}), ["$.display.tyme", "did you mean time?"]),
        (spec_data(display={"time": None, "tyme": "t"}), ["$.display.tyme", "did you mean time?"]),
        (spec_data(sourc={}), ["$.sourc", "did you mean source?"]),
        (_missing_time(), ["display.time is missing: name its column", 'unit = "round" under [time]']),
        (spec_data(display={"time": 3}), ["`$.display.time`", "expected a valid string, got 3 (int)"]),
        (spec_data(time={"unit": "secs"}), ["`$.time.unit`", "'secs'"]),
        (
            spec_data(conversion={"deduplicate": "last_clik"}),
            ["`$.conversion.deduplicate`", "did you mean last_click?"],
        ),
        (spec_data(conversion={"delay": "d"}), ["$.conversion", "exactly one of time, delay"]),
        (spec_data(conversion={"deduplicate": "share"}), ["$.conversion", "needs key"]),
        (spec_data(conversion={"attributed_only": True}), ["needs attributed"]),
        (spec_data(conversion={"time": None, "immediate": True}), ["needs indicator"]),
        (spec_data(conversion={"source": {"files": "c.csv", "display": "id"}}), ["display.id"]),
        (
            spec_data(conversion={"source": {"files": "c.csv", "dislay": "id"}}),
            ["$.conversion.source.dislay", "display?"],
        ),
        (spec_data(display={"propensity_kind": "column"}), ["needs propensity"]),
        (spec_data(display={"propensity_kind": "uniform", "propensity": "p"}), ["takes no propensity column"]),
        (spec_data(source={"header": False}), ["header = false"]),
        (spec_data(context={"columns": ["x", "late"]}, leakage={"columns": ["late"]}), ["'late'", "outcome"]),
        (_scenario(dimension=3), ["$.scenario.dimension", "did you mean dimensions?"]),
        (_scenario(delay={"famly": "fixed"}), ["$.scenario.delay.famly", "did you mean family?"]),
        (_scenario(logger=[0.5, 0.5]), ["2 propensities for 10 actions"]),
        (_scenario(logger="softmax"), ["temperature"]),
        (_scenario(kind="linaer"), ["`$.scenario.kind`", "did you mean linear?"]),
        (_scenario(kind=None), ["`$.scenario.kind`"]),
        (_scenario(actions=2, logger=[0.5, 0.6]), ["sum to 1"]),
        (_scenario(delay={"mean": 0.5}), ["support = 0"]),
        (_scenario(delay={"family": "fixed", "mean": 0.5}), ["whole number"]),
    ],
)
def test_wrong_spec_is_explained_in_one_line(data: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(SpecError) as raised:
        parse_spec(data, where="mine/spec.toml")
    message = str(raised.value)
    assert "\n" not in message
    for word in ["mine/spec.toml", *words]:
        assert word in message


def test_no_toml(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text("name = \n")
    with pytest.raises(SpecError, match="not valid TOML"):
        load(path)


def test_no_spec_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such spec file"):
        load(tmp_path / "spec.toml")


def test_unknown_dataset() -> None:
    with pytest.raises(UnknownNameError, match="did you mean synthetic"):
        load("sinthetic")


def test_a_name_like_no_other_gets_the_bundled_logs_and_not_each_scenario_of_a_paper() -> None:
    with pytest.raises(
        UnknownNameError, match=r"known: criteo_attribution, .*synthetic, .* and \d\d more\."
    ) as refused:
        load("zozo")
    assert "vernade2017" not in str(refused.value)
    with pytest.raises(UnknownNameError, match="criteo_attribution or criteo_conversion_logs or criteo_twin"):
        load("crit")
    with pytest.raises(UnknownNameError, match=r"did you mean promotions\?"):
        load("prom")


def test_duration_window_needs_a_clock(tmp_path: Path) -> None:
    from tests.reading.sources import ROWS, write_rows

    path = write_spec(tmp_path, time={"unit": "round"}, log={"attribution_window": "30d"})
    write_rows(tmp_path / "log.csv", ROWS)
    with pytest.raises(SpecError, match="number of rounds"):
        load(path)


SECTIONS = {
    "Display": DISPLAY, "Conversion": EVENT, "Candidates": CANDIDATE, "Calendar": CALENDAR,
    "TargetSource": {"display": TARGETS["display"]}, "NamedTarget": {k: TARGETS[k] for k in ("action", "columns")},
    "ActionSet": {"columns": VECTORS},
}  # fmt: skip
ROLES = [(section, role) for section, roles in SECTIONS.items() for role in roles.values()]


def test_every_role_is_a_key_of_its_section_and_described_there() -> None:
    schema = json_schema()["$defs"]
    for section, role in ROLES:
        properties = schema[section]["properties"]
        key = "from" if role.key == "start" else role.key
        assert properties[key]["description"] == role.what
        assert SECTIONS[section][role.key] is role
    # No other key names columns: those of tables say where they lie, and others are words and numbers.
    for section in ("Candidates", "Calendar", "TargetSource"):
        of_roles = {"from" if key == "start" else key for key in SECTIONS[section]}
        assert {*schema[section]["properties"]} - of_roles == {*Table.model_fields}


@pytest.mark.parametrize("role", [role for _, role in ROLES], ids=[f"{of}.{role.key}" for of, role in ROLES])
def test_rules_of_roles_are_predicates_that_say_true_or_false_of_every_cell(role: Role) -> None:
    cells = pl.Series([None, 0, 1, -(2**63), 2**63 - 1], dtype=pl.Int64)
    if role.kind == "float":
        cells = pl.Series([None, 0.0, 1.0, -1.0, 2.0, float("nan"), float("inf"), 1e300])
    for rule in role.rules:
        broken = rule.breaks(cells)
        assert broken.dtype == pl.Boolean
        assert not broken[2]
        assert rule.problem
        assert rule.repair
