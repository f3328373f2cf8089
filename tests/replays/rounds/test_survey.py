"""What one pass over a log finds: of its actions and propensities, and of the delays of its events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from evaluator.log import EventKind, Log
from evaluator.log.log_tables import CONVERSION, merge_events, with_kind
from evaluator.log.reward_kinds import with_rewards
from evaluator.replays.rounds.survey import survey, surveys
from tests.logs import build_log

N = 150_000  # three batches
RNG = np.random.default_rng(1)
ACTION = RNG.integers(0, 3, N)


@pytest.mark.parametrize(
    "p",
    [
        np.array([0.2, 0.3, 0.5])[ACTION],
        RNG.uniform(0.1, 0.9, N),
        np.where(np.arange(N) < 80_000, 0.3, RNG.uniform(0.2, 0.5, N)),  # one an action, at first
    ],
)
def test_sums_of_inverse_propensities(p: np.ndarray) -> None:
    found = survey(build_log(time=np.arange(N), action=ACTION, n_actions=4, propensity=p)).inverse
    np.testing.assert_allclose(found, [np.bincount(ACTION, p**-k, 4) for k in (1, 2)], rtol=1e-9)


def test_there_are_none_without_propensities() -> None:
    log = build_log(time=np.arange(N), action=ACTION, n_actions=4).with_meta(propensity="absent")
    assert np.isnan(survey(log).inverse).all()


@pytest.mark.parametrize("first", [0, 1, 70_000, N])
def test_actions_among_the_first_displays(first: int) -> None:
    found = survey(build_log(time=np.arange(N), action=ACTION, n_actions=4)).shown_first(first)
    assert found.tolist() == np.bincount(ACTION[:first], minlength=4).tolist()


def events(rng: np.random.Generator, time: np.ndarray, longest: int, until: int) -> pa.Table:
    """Return events within so long of random displays, some of which share one, by display and time."""
    of = np.sort(rng.integers(0, len(time), 4_000))
    when = time[of] + rng.integers(0, longest + 1, len(of))
    order = np.lexsort((when, of))[(when <= until)[np.lexsort((when, of))]]
    return pa.table({"display_id": of[order], "time": when[order], "value": np.ones(len(order))})


def test_delays_of_events_of_several_kinds_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a log whose rewards are of two kinds, each followed by its own rule, and of an outcome that is no reward."""
    rng, until, longest = np.random.default_rng(2), {"": 210_000, "order": 205_000}, {"": 30_000, "order": 90_000}
    time = np.sort(rng.integers(0, 200_000, N))  # followed beyond the last display
    parts = {name: events(rng, time, longest[name], until[name]) for name in until}
    parts["click"] = events(rng, time, 500, 200_500)
    orders = EventKind(
        name="order", observed_until=until["order"], attribution_window=longest["order"], reward=True, told=True
    )
    whole = build_log(
        time=time, action=ACTION, n_actions=4, observed_until=until[""], attribution_window=longest[""],
        outcomes=(orders, EventKind(name="click")), tick="s", reward_max=None,
    )  # fmt: skip
    whole = whole.changed(events=merge_events(*(with_kind(part, name) for name, part in parts.items())))
    logs = [with_rewards(whole, costs=False), whole.of_outcome("click")]
    scans, batches = [], Log.batches
    monkeypatch.setattr(Log, "batches", lambda log, *names, **how: scans.append(names) or batches(log, *names, **how))
    rewards, clicks = surveys(logs)
    assert len(scans) == 1
    rate = (N - 1) / (time[-1] - time[0])

    def followed(shown: np.ndarray, when: np.ndarray) -> np.ndarray:
        beyond = np.floor(np.maximum(when - time[-1], 0) * rate).astype(int)
        return np.searchsorted(time, when, side="right") + beyond - 1 - shown

    for found, log in zip((rewards, clicks), logs, strict=True):
        of, when = (log.conversions[name].to_numpy() for name in ("display_id", "time"))
        assert found.delay.tolist() == followed(of, when).tolist()
        assert found.shown_at.tolist() == time[of].tolist()
        alone = survey(log)
        assert (found.limit is None) == (alone.limit is None) == (found is clicks)
    names = np.array(rewards.log.conversions["kind"].to_pylist())
    for name in (CONVERSION, "order"):
        of = rewards.display[names == name]
        ends = np.minimum(until[name], time[of] + longest[name])
        assert rewards.limit is not None
        assert rewards.limit[names == name].tolist() == followed(of, ends).tolist()
