"""The check of eligibility after rewards: quiet where it does not follow, however untidy the log, else loud."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.checks.eligibility import PARTS, Lead, lead_of, read_cells
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from tests.logs import build_log

N, K, LEVEL, LOGS = 12_000, 8, 0.2, 60
Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

# What is eligible does not depend on outcomes in any of these.
TIDY = ("calendar", "random", "context")
UNTIDY = ("nights", "drift of all", "trend by action", "waves by action", "users", "ties and few rewards")


def flights(rng: np.random.Generator) -> Truths:
    """Return sets of actions that come and go on a calendar, of which the first two always are eligible."""
    at = np.arange(N) / N
    eligible = np.zeros((N, K), np.bool_)
    eligible[:, :2] = True
    for k in range(2, K):
        for _ in range(2):
            start = rng.uniform(-0.2, 0.9)
            eligible[:, k] |= (at >= start) & (at < start + rng.uniform(0.1, 0.4))
    return eligible


def rates_of(kind: str, x: Floats, rng: np.random.Generator) -> Floats:
    at = np.arange(N) / N
    rate = np.tile(rng.uniform(0.05, 0.3, K), (N, 1))
    if kind == "context":
        rate *= 1.0 + 0.5 * x[:, None]
    if kind == "nights":
        rate *= (1.0 + 0.6 * np.sin(2 * np.pi * 5 * at))[:, None]
    if kind == "drift of all":
        rate *= (1.5 - at)[:, None]
    if kind == "trend by action":
        rate *= 1.0 + np.outer(at - 0.5, rng.uniform(-1, 1, K))
    if kind == "waves by action":
        rate *= 1.0 + 0.5 * np.sin(2 * np.pi * np.outer(at, rng.uniform(1, 4, K)) + rng.uniform(0, 6, K))
    if kind == "ties and few rewards":
        rate *= 0.1
    return np.minimum(rate, 1.0)


def unrelated(kind: str, seed: int) -> Log:
    """Return a log in whose sets outcomes have no part."""
    rng = np.random.default_rng([seed, 1])
    x = rng.uniform(-1, 1, N) + np.sin(2 * np.pi * np.arange(N) / N)
    eligible = flights(rng)
    if kind == "random":
        eligible = rng.random((N, K)) < 0.4
    if kind == "context":
        eligible = x[:, None] > rng.uniform(-1, 1, K)
    eligible[:, 0] = True
    rate, u = rates_of(kind, x, rng), rng.random(N)
    if kind == "users":  # all displays of a user convert alike
        u = rng.random(N // 8)[np.arange(N) // 8]
    action = drawn(eligible, rng)
    return log_of(action, eligible, np.flatnonzero(u < rate[np.arange(N), action]), ties=kind.startswith("ties"))


def drawn(eligible: Truths, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    action: npt.NDArray[np.int64] = np.where(eligible, rng.random(eligible.shape), -1.0).argmax(axis=1)
    return action


def log_of(action: npt.NDArray[np.int64], eligible: Truths, sold: npt.NDArray[np.int64], *, ties: bool = False) -> Log:
    time = np.arange(N) // 10 * 10 if ties else np.arange(N)
    log = build_log(
        time=time, action=action, propensity=1.0 / eligible.sum(axis=1), eligible=eligible, n_actions=K,
        conversion_display=sold, conversion_time=time[sold] + 3,
    )  # fmt: skip
    return log.with_meta(propensity="uniform")


def related(kind: str, seed: int) -> Log:
    """Return a log in which actions sell out and are stocked again, or the worst of a span pauses for the next."""
    rng = np.random.default_rng([seed, 2])
    rate = rng.uniform(0.1, 0.3, K)
    eligible = np.ones((N, K), np.bool_)
    action, sold, reward = np.zeros(N, np.int64), np.zeros(K), np.zeros(N)
    span, back, tried = N // 20, np.zeros(K), np.zeros(K)
    own = np.ones(K, np.bool_)
    for i in range(N):
        if kind == "worst pauses" and i and i % span == 0:
            own[:] = True
            own[np.argmin(np.where(tried > 0, sold / np.maximum(tried, 1), 1.0))] = False
            sold[:] = tried[:] = 0
        if kind == "sells out":
            own = back <= i
            own[0] = True
        eligible[i] = own
        action[i] = k = rng.choice(np.flatnonzero(own))
        reward[i] = rng.random() < rate[k]
        sold[k] += reward[i]
        tried[k] += 1
        if kind == "sells out" and k and sold[k] >= 25:
            back[k], sold[k] = i + rng.integers(N // 20, N // 8), 0
    return log_of(action, eligible, np.flatnonzero(reward))


def found(log: Log, parts: int) -> Lead:
    return lead_of(read_cells(log, to_numpy(log.conversions["display_id"]), len(log), parts))


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("kind", TIDY + UNTIDY)
def test_it_is_quiet_where_outcomes_have_no_part_in_sets(kind: str, parts: int) -> None:
    told = np.mean([found(unrelated(kind, seed), parts).p_value <= LEVEL for seed in range(LOGS)])
    assert told <= LEVEL + 4 * math.sqrt(LEVEL * (1 - LEVEL) / LOGS)


@pytest.mark.parametrize(("kind", "sign", "parts"), [("sells out", -1, 400), ("worst pauses", 1, 40)])
def test_it_is_loud_where_outcomes_decide(kind: str, sign: int, parts: int) -> None:
    """The scores of independent logs add up: unrelated sets reach 5 once in three million times."""
    z = [found(related(kind, seed), parts).z for seed in range(12)]
    assert sign * sum(z) / math.sqrt(len(z)) > 5


def test_fixed_effects_are_those_of_a_regression() -> None:
    """The slope is that of least squares among dummies of actions and parts, trends and present shares."""
    cells = read_cells(log := unrelated("calendar", 3), to_numpy(log.conversions["display_id"]), N, 40)
    change = np.diff(cells.share, axis=0, append=cells.share[-1:])
    part, action = np.nonzero(cells.shown)
    columns = [action == k for k in range(K)] + [(action == k) * part for k in range(K)]
    columns += [part == p for p in range(40)] + [cells.share[part, action]]
    weight = np.sqrt(cells.shown[part, action])
    x = np.stack(columns, axis=1) * weight[:, None]
    wanted = change[part, action] * weight
    left = wanted - x @ np.linalg.lstsq(x, wanted, rcond=None)[0]
    rate = cells.rewarded[part, action] / cells.shown[part, action]
    assert lead_of(cells).slope == pytest.approx((left * weight * rate).sum() / (left**2).sum(), rel=1e-4)
