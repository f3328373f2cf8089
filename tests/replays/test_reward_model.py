"""The reward model is the dense ridge regression of the displays it may use, whatever the batches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from evaluator.estimates.confidence import SparseRewards
from evaluator.log import Log
from evaluator.log.schema import fixed_size_lists
from evaluator.replays.values.doubly_robust import FittedTo, fit_reward_model
from tests.logs import build_log

N, K, D, USED = 500, 3, 2, 470
RNG = np.random.default_rng(1)
ACTION = RNG.integers(0, K, N)
Y = RNG.random(N) * (RNG.random(N) < 0.5)
VECTORS = {
    "none": np.ones((N, K, 0)),
    "context": np.repeat(RNG.normal(size=(N, 1, D)), K, axis=1),
    "action_set": RNG.normal(size=(N, K, D)),
    "features": np.repeat(RNG.normal(size=(1, K, D)), N, axis=0),
}


def make(kind: str) -> Log:
    vectors = VECTORS[kind]
    given = {"context": {"context": vectors[:, 0]}, "action_set": {"action_set": vectors}}.get(kind, {})
    log = build_log(time=np.arange(N), action=ACTION, n_actions=K, **given)
    if kind != "features":
        return log
    actions = log.actions.append_column("features", fixed_size_lists(vectors[0]))
    return Log(log.displays, log.conversions, actions, log.meta)


def dense(kind: str, rows: np.ndarray, action: int) -> np.ndarray:
    """Return the coefficients for an action, fitted to some displays."""
    shown = VECTORS[kind][rows, ACTION[rows]]
    centre, deviation = (shown.mean(axis=0), shown.std(axis=0)) if len(rows) else (np.zeros(shown.shape[1]),) * 2
    deviation = np.where(deviation > 0, deviation, np.inf)
    f = np.concatenate([(VECTORS[kind] - centre) / deviation, np.ones((N, K, 1))], axis=2)
    own = kind in ("none", "context")
    mine = [i for i in rows if not own or ACTION[i] == action]
    x = np.array([f[i, ACTION[i]] for i in mine]).reshape(len(mine), f.shape[2])
    theta = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ Y[mine])
    slope = theta[:-1] / deviation
    return np.append(slope, theta[-1] - slope @ centre)


@pytest.mark.parametrize("to", ["others", "earlier"])
@pytest.mark.parametrize("kind", VECTORS)
def test_against_a_dense_regression(kind: str, to: FittedTo) -> None:
    model = fit_reward_model(make(kind), SparseRewards.of(Y[:USED]), to=to)
    vectors = VECTORS[kind]
    as_read = {"none": np.zeros((1, 1, 0)), "context": vectors[:, :1], "action_set": vectors, "features": vectors[:1]}
    values = model.values(0, USED, as_read[kind] if len(as_read[kind]) == 1 else as_read[kind][:USED])
    assert model.bounds[-1] == USED
    for group in (0, 1, 7, len(model.bounds) - 2):
        low, high = model.bounds[group], model.bounds[group + 1]
        rows = np.concatenate([np.arange(0, low), np.arange(high, USED) if to == "others" else []]).astype(int)
        for action in range(K):
            theta = dense(kind, rows, action)
            f = np.concatenate([vectors[low:high, action], np.ones((high - low, 1))], axis=1)
            np.testing.assert_allclose(values[low:high, action], f @ theta, atol=1e-10)
    parts = [model.values(i, 47, as_read[kind] if len(as_read[kind]) == 1 else as_read[kind][i : i + 47])
             for i in range(0, USED, 47)]  # fmt: skip
    np.testing.assert_allclose(np.concatenate(parts), values, rtol=1e-12)


@pytest.mark.parametrize("to", ["others", "earlier"])
def test_no_display_is_predicted_by_its_own_reward_nor_the_running_value_by_later_ones(to: FittedTo) -> None:
    log, changed = make("context"), Y[:USED].copy()
    changed[200] += 5.0
    before, after = (
        fit_reward_model(log, SparseRewards.of(y), to=to).values(0, USED, VECTORS["context"][:USED, :1])
        for y in (Y[:USED], changed)
    )
    bounds = fit_reward_model(log, SparseRewards.of(changed), to=to).bounds
    group = int(np.searchsorted(bounds, 200, side="right")) - 1
    own = slice(bounds[group], bounds[group + 1])
    np.testing.assert_allclose(after[own], before[own], atol=1e-12)
    moved = np.abs(after - before).max(axis=1) > 1e-9
    assert moved[bounds[group + 1] :].all()
    assert moved[: bounds[group]].all() if to == "others" else not moved[: bounds[group]].any()


def test_displays_of_float32_are_read_alike() -> None:
    log = make("action_set")
    narrow = log.displays.set_column(
        log.displays.schema.get_field_index("action_set"), "action_set",
        pa.chunked_array([fixed_size_lists(VECTORS["action_set"].astype(np.float32))]),
    )  # fmt: skip
    narrow_log = Log(narrow, log.conversions, log.actions, log.meta)
    wide, small = (fit_reward_model(one, SparseRewards.of(Y), to="others").theta for one in (log, narrow_log))
    np.testing.assert_allclose(small, wide, atol=1e-5)
