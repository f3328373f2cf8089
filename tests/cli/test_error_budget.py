"""Every interval and verdict that a command prints is in the error budget, with what it promises and how often it held.

The table is in `tests/bench/README.md`, the page that explains it is `docs/why/intervals.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator.reading.canonical import write_canonical
from tests.cli.runs import evaluate
from tests.cli.test_commands import COMMANDS
from tests.logs import build_log, with_outcome

ROOT = Path(__file__).parents[2]
DAY = 86_400
# Every command that answers a question of statistics, with every option that adds a number.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "replay": (
        "-p", "linucb", "-w", "2d", "--horizon", "300", "--final", "last:20%", "--doubly-robust", "--bootstrap", "20",
        "--guardrail", "click < +0.1", "--guardrail", "click > -50%", "--by", "device,age",
    ),
    "compare": (
        "-p", "ucb1,random,fixed:action=1", "-b", "random", "--windows", "1d,2d", "--horizon", "300",
        "--bootstrap", "20", "--final", "last:20%", "--doubly-robust", "--guardrail", "click < 0.5",
        "--by", "device,age", "--ship-if", "uplift > 0", "--look", "2 of 3",
    ),
    "check": (),
    "delays": ("--families", "geometric,lognormal", "--bootstraps", "19", "--windows", "1d,5d", "--joint"),
    "audit": ("-p", "ucb1", "-p", "random", "--twins", "10"),
}  # fmt: skip
# What a verdict is called in JSON.
VERDICTS = {"verdict", "real", "p", "p_value", "p_adjusted", "adjusted_p", "conclusion", "answer"}
INTERVAL = re.compile(r"\[([+-]?[\d.,e+-]+%?), ([+-]?[\d.,e+-]+%?)\]")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A log with contexts, late conversions and displays too young to be judged."""
    rng = np.random.default_rng(2)
    n = 6000
    x = rng.standard_normal((n, 5))
    time = np.sort(rng.integers(0, 40 * DAY, n))
    delay = rng.exponential(4 * DAY * np.exp(0.5 * x[:, 0])).astype(np.int64)
    of = np.flatnonzero((rng.random(n) < 1 / (1 + np.exp(-x[:, 1]))) & (time + delay <= 40 * DAY) & (delay <= 20 * DAY))
    action, device = rng.integers(0, 2, n), np.array(["phone", "desk"])[rng.integers(0, 2, n)]
    # The second action harms whoever comes by phone.
    of = of[(action[of] == 0) | (device[of] == "desk") | (rng.random(len(of)) < 0.5)]
    made = build_log(
        time=time, action=action, conversion_display=of, conversion_time=(time + delay)[of], n_actions=2,
        context=x, tick="s", name="shop", observed_until=40 * DAY, attribution_window=20 * DAY, reward_max=1.0,
    )  # fmt: skip
    kept = {"device": pa.array(device), "age": pa.array(rng.random(n))}
    for name, column in kept.items():
        made = made.changed(displays=made.displays.append_column(name, column))
    made = with_outcome(made, "click", of[::3], time[of[::3]], attribution_window=DAY, observed_until=40 * DAY)
    folder = tmp_path_factory.mktemp("budget") / "shop"
    folder.mkdir()
    write_canonical(made, folder)
    return str(folder)


@pytest.fixture(scope="module")
def answers(log: str) -> dict[str, Any]:
    """What each command says in JSON."""
    runs = {command: evaluate(command, "-d", log, *words, "--json") for command, words in EXAMPLES.items()}
    for run in runs.values():
        assert run.code in (0, 3), run.err
    return {command: run.json for command, run in runs.items()}


def budget() -> set[str]:
    """Return the numbers that the table lists."""
    page = (ROOT / "tests" / "bench" / "README.md").read_text(encoding="utf-8")
    section = page.partition("\n## Error budget\n")[2].partition("\n## ")[0]
    first = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {name for cell in first for name in re.findall(r"`([^`]+)`", cell)}


def claims(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every interval and verdict in a JSON document; [] stands for each entry of a list."""
    if isinstance(value, dict):
        if {"low", "high"} <= set(value):
            yield path
        for key, inner in value.items():
            own = f"{path}.{key}" if path else key
            if key.endswith("_low") and f"{key[:-4]}_high" in value:
                yield own[:-4]
            if key in VERDICTS:
                yield own
            yield from claims(inner, own)
    elif isinstance(value, list):
        for inner in value:
            yield from claims(inner, f"{path}[]")


def ends(value: Any) -> Iterator[tuple[float, float]]:
    """Yield the ends of every interval and band in a JSON document."""
    if isinstance(value, dict):
        for low in value:
            high = "high" if low == "low" else f"{low[:-4]}_high" if low.endswith("_low") else ""
            if high in value:
                pairs = (
                    [(value[low], value[high])]
                    if not isinstance(value[low], list)
                    else zip(value[low], value[high], strict=True)
                )
                yield from ((a, b) for a, b in pairs if a is not None and b is not None)
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from ends(inner)


def test_every_statistical_command_has_an_example() -> None:
    others = {path for path in COMMANDS if path.split()[0] in ("datasets", "policies")}
    # Means of simulated runs with their standard errors, no intervals; what others found, once more; and words.
    assert set(EXAMPLES) | others | {"simulate", "report", "explain"} == set(COMMANDS)


def test_every_interval_and_verdict_is_in_the_error_budget(answers: dict[str, Any]) -> None:
    # The study of an outcome's delays promises what that of the conversions does.
    found = {
        (command, path.removeprefix("outcomes.click.")) for command, said in answers.items() for path in claims(said)
    }
    assert {f"{command}: {path}" for command, path in found} == budget()


@pytest.mark.parametrize("command", EXAMPLES)
def test_the_terminal_prints_no_interval_that_is_not_in_the_json(
    command: str, log: str, answers: dict[str, Any]
) -> None:
    shown = INTERVAL.findall(evaluate(command, "-d", log, *EXAMPLES[command], "--full").out)
    known = list(ends(answers[command]))
    for pair in shown:
        percent = pair[0].endswith("%")
        low, high = (float(end.rstrip("%").replace(",", "")) / (100 if percent else 1) for end in pair)
        step = [10.0 ** -len(end.rstrip("%").partition(".")[2]) / (100 if percent else 1) for end in pair]
        assert any(
            abs(low - a) <= max(step[0], 1e-3 * abs(a)) and abs(high - b) <= max(step[1], 1e-3 * abs(b))
            for a, b in known
        ), pair
