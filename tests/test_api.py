"""The public functions show their options: to readers by their signature and docstring, to checkers by their types."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import evaluator
from evaluator.audits.options import AuditOptions
from evaluator.checks.options import CheckOptions
from evaluator.comparisons.options import CompareOptions
from evaluator.delays.study.options import DelayOptions
from evaluator.options import keywords
from evaluator.options.declaration import Options, declaration, describe, kinds_of
from evaluator.reading.options import ReadingOptions
from evaluator.replays.options import ReplayOptions
from evaluator.simulations.options import SimulateOptions
from tests.packaging.test_readme_output import script

written = script("keywords")

FUNCTIONS: dict[str, type[Options]] = {
    "load": ReadingOptions,
    "replay": ReplayOptions,
    "compare": ReplayOptions,
    "audit": AuditOptions,
    "simulate": SimulateOptions,
    "study_delays": DelayOptions,
    "check": CheckOptions,
    "plan": ReplayOptions,
}
RIGHT = """
from pathlib import Path
from evaluator import audit, check, compare, load, load_policy, plan, replay, simulate, study_delays

class Mine:
    def __init__(self, setting: object) -> None: ...
    def choose(self, vectors: object, rng: object, round: int) -> int: return 0
    def displayed(self, vectors: object, action: int) -> None: ...
    def converted(self, vector: object, action: int, delay: int, value: float) -> None: ...

log = load("synthetic", limit=100, on_error="quarantine", actions=["a", "b"])
value: float = replay(log, "ucb1", window="7d", level=0.9, clock="wall", reward_max=3).value.estimate
replay(Path("log"), Mine)
compare(log, ["ucb1", Mine], windows=[500, "7d", None], baseline="ucb1", seed=3)
compare(log, "ucb1", window=500, study=None)
study_delays(log, windows="7d", family="weibull")
audit(log, "ucb1", twins=20, window=5)
simulate("vernade2017-low", ["ucb1"], runs=3)
study_delays(log, by=None, families=["weibull"])
fit: bool = check(log, propensity="estimate").fit
plan(log, "ucb1", horizon=10).to_dict()
load_policy("learned.npz")
"""
WRONG = {
    'replay(log, "ucb1", windw=3)': 'Unexpected keyword argument "windw"',
    'replay(log, "ucb1", level="high")': 'Argument "level"',
    'replay(log, "ucb1", clock="sundial")': 'Argument "clock"',
    "replay(log, 3)": 'Argument 2 to "replay"',
    "replay(3, 'ucb1')": 'Argument 1 to "replay"',
    'compare(log, ["ucb1"], window_=3)': 'Unexpected keyword argument "window_"',
    'compare(log, ["ucb1"], windows=1.5)': 'Argument "windows"',
    "study_delays(log, family=3)": 'Argument "family"',
    'load("synthetic", limit="all")': 'Argument "limit"',
    'audit(log, "ucb1", twin=3)': 'Unexpected keyword argument "twin"',
    'simulate("vernade2017-low", "ucb1", runs=1.5)': 'Argument "runs"',
    "study_delays(log, share='most')": 'Argument "share"',
    "check(log, propensity='guess')": 'Argument "propensity"',
    'plan(log, "ucb1", horizon="long")': 'Argument "horizon"',
}
# What a user's call is held against. The bodies behind it are checked by mypy's own run, and libraries are large.
SIGNATURES_ALONE = """
[mypy]
follow_imports = silent
[mypy-evaluator.*]
ignore_errors = True
[mypy-altair.*,numba.*,numpy.*,polars.*,pyarrow.*,pydantic.*,rich.*,scipy.*,sklearn.*,typer.*,vl_convert.*]
follow_imports = skip
"""


def test_the_keywords_are_those_of_the_declarations() -> None:
    assert written.FILE.read_text(encoding="utf-8") == written.source(), "run: python docs/keywords.py"


@pytest.mark.parametrize(("name", "options"), [*FUNCTIONS.items(), ("compare", CompareOptions)])
def test_signature_and_docstring_show_every_option(name: str, options: type[Options]) -> None:
    function = getattr(evaluator, name)
    shown, fields = inspect.signature(function).parameters, {f.name: f for f in dataclasses.fields(options)}
    if (
        name == "compare"
    ):  # which takes several windows and schedules, any policy as a baseline, and resamples as it needs
        of_replays = {"bootstrap", "learn_from"} if options is ReplayOptions else set()
        others = {"window", "learn_every", "baseline"} | of_replays
        fields = {own: field for own, field in fields.items() if own not in others}
    for field in fields.values():
        assert shown[field.name].default == field.default
        assert shown[field.name].annotation == kinds_of(options)[field.name]
        if one := declaration(field).singular:
            assert one in shown
            assert f"`{one}`" in function.__doc__
    assert not [p for p in shown.values() if p.kind is inspect.Parameter.VAR_KEYWORD]
    assert "See below" not in function.__doc__
    for told in describe(options):
        if told["name"] in fields:
            assert f"\n{told['name']} : {told['type']}, default {told['default']!r}\n" in function.__doc__


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_public_function_takes_what_is_not_typed(name: str) -> None:
    function = getattr(evaluator, name)
    # As they are written: some name what is imported for type checkers alone.
    said = {given: str(hint) for given, hint in function.__annotations__.items()}
    assert "return" in said
    assert not {given: hint for given, hint in said.items() if "Any" in hint}


def test_what_is_named_is_exported() -> None:
    assert {*FUNCTIONS, "load_policy"} <= set(evaluator.__all__)
    assert all(getattr(evaluator, name) is not None for name in evaluator.__all__)
    assert all(hasattr(keywords, name) for name, *_ in written._CLASSES)


def test_a_checker_knows_right_calls_from_wrong_ones(tmp_path: Path) -> None:
    wrong = list(WRONG)
    script = tmp_path / "user.py"
    script.write_text(RIGHT + "\n".join(wrong) + "\n")
    first = RIGHT.count("\n") + 1
    settings = tmp_path / "mypy.ini"
    settings.write_text(SIGNATURES_ALONE)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", str(settings), str(script)],
        capture_output=True,
        text=True,
        cwd=Path(evaluator.__file__).parents[1],
        env=None,
    )
    said = [line for line in done.stdout.splitlines() if ": error:" in line and "user.py" in line]
    by_line = {int(line.split("user.py:")[1].split(":")[0]): line for line in said}
    assert sorted(by_line) == [first + i for i in range(len(wrong))], done.stdout
    for i, call in enumerate(wrong):
        assert WRONG[call] in by_line[first + i], by_line[first + i]
