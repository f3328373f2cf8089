"""Learning from clicks: replays agree with live loops where clicks foretell sales, and where they mislead."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt
import pytest

from evaluator import compare
from evaluator.log import Log
from tests.logs import build_log, with_outcome

Floats = npt.NDArray[np.float64]

DISPLAYS, LOGS, ARMS = 9_000, 40, 3
CLICK_DELAY, SALE_DELAY = 20.0, 900.0
# Of each action, the probability of a click, and of a sale after one: sales are .03, .06, .15, or .03, .06, .16.
WORLDS = {
    "clicks foretell sales": (np.array([0.1, 0.2, 0.5]), np.array([0.3, 0.3, 0.3])),
    "clickbait": (np.array([0.6, 0.3, 0.2]), np.array([0.05, 0.2, 0.8])),
}


def live(world: str, teacher: str, rounds: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the mean sales and clicks a round of UCB1 on all traffic, told one of the two as they come."""
    clicks, sales = WORLDS[world]
    pulls, sums = np.zeros((2, ARMS))
    coming: dict[int, list[int]] = defaultdict(list)
    sold = clicked = 0
    for t in range(rounds):
        for arm in coming.pop(t - 1, []):
            sums[arm] += 1
        with np.errstate(divide="ignore", invalid="ignore"):
            index = sums / pulls + np.sqrt(2 * np.log(t + 1) / pulls)
        arm = t if t < ARMS else int(np.argmax(index + 1e-9 * rng.random(ARMS)))
        pulls[arm] += 1
        if rng.random() >= clicks[arm]:
            continue
        clicked += 1
        delay = rng.geometric(1 / CLICK_DELAY)
        if teacher == "click":
            coming[t + delay].append(arm)
        if rng.random() < sales[arm]:
            sold += 1
            if teacher == "sales":
                coming[t + delay + rng.geometric(1 / SALE_DELAY)].append(arm)
    return sold / rounds, clicked / rounds


def a_log(world: str, rng: np.random.Generator) -> Log:
    """Return a log of a uniform logger, whose times are the numbers of its displays."""
    clicks, sales = WORLDS[world]
    action = rng.integers(0, ARMS, DISPLAYS)
    clicked = np.flatnonzero(rng.random(DISPLAYS) < clicks[action])
    at = clicked + rng.geometric(1 / CLICK_DELAY, len(clicked))
    sold = rng.random(len(clicked)) < sales[action[clicked]]
    when = at[sold] + rng.geometric(1 / SALE_DELAY, int(sold.sum()))
    log = build_log(
        time=np.arange(DISPLAYS), action=action, conversion_display=clicked[sold], conversion_time=when,
        n_actions=ARMS, reward_max=1.0,
    )  # fmt: skip
    return with_outcome(log, "click", clicked, at, value_max=1.0)


@pytest.mark.parametrize("world", WORLDS)
def test_a_replay_taught_by_either_is_live_play_taught_by_it(world: str) -> None:
    """Within 4 standard errors, in sales and in clicks; and the report shows which teacher earns more of which."""
    off: dict[tuple[str, str], list[float]] = defaultdict(list)
    lived: dict[tuple[str, str], list[float]] = defaultdict(list)
    for seed in range(LOGS):
        rng = np.random.default_rng(seed)
        found = compare(a_log(world, rng), ["ucb1"], learn_from="sales,click", sampler="keep", seed=seed, bootstrap=0)
        for teacher, result in zip(("sales", "click"), found.results[:2], strict=True):
            assert result.plan["options"]["learn_from"] == teacher
            (click,) = result.outcomes
            truth = live(world, teacher, result.rounds, rng)
            for what, own, of in zip(("sales", "click"), (result.value, click.value), truth, strict=True):
                off[teacher, what].append(own.estimate - of)
                lived[teacher, what].append(own.estimate)
        names = str(found)
        assert "ucb1, told sales" in names
        assert "ucb1, told click" in names
    for key, differences in off.items():
        error = np.std(differences, ddof=1) / np.sqrt(LOGS)
        assert abs(np.mean(differences)) < 4 * error, (key, np.mean(differences) / error)
    gain = {what: np.subtract(lived["click", what], lived["sales", what]) for what in ("sales", "click")}
    z = {what: float(of.mean() / (of.std(ddof=1) / np.sqrt(LOGS))) for what, of in gain.items()}
    # Clicks come sooner and more often: where they foretell sales they teach better; else they win at clicks alone.
    assert z["click"] > 4
    assert z["sales"] > 4 if world == "clicks foretell sales" else z["sales"] < -4
