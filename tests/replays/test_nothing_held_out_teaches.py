"""With `final`, what a policy has learned does not depend on the displays that are left out, nor on what came later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from evaluator import compare, replay
from evaluator.api import plan
from evaluator.delays.product_limit import product_limit
from evaluator.log import Log
from evaluator.reading.canonical import open_canonical, write_canonical
from evaluator.replays.rounds.survey import survey
from tests.logs import build_log
from tests.policies.checks import leaves

N, K, LEFT = 6000, 3, 4500
# From the first display that is left out on, the changed log has another logger, pace, context, delay and currency.
OPTIONS: dict[str, Any] = {"final": "last:25%", "seed": 2, "window": 200}


def log_of(*, changed: bool, propensity: bool = True) -> Log:
    """Return a log of revenue in a daily rhythm; two are alike until display LEFT is shown."""
    rng = np.random.default_rng(5)
    late = changed * (np.arange(N) >= LEFT)
    gap = rng.integers(0, 3, N) + np.where(np.arange(N) % 1000 < 500, 2, 0) + 40 * late * (rng.random(N) < 0.5)
    time = np.cumsum(gap)
    context = rng.random((N, 5)) + 5.0 * late[:, None]
    p = np.where(late[:, None] == 1, [0.02, 0.9, 0.08], [0.2, 0.3, 0.5])
    action = (rng.random((N, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    shown = np.flatnonzero(rng.random(N) < np.array([0.5, 0.3, 0.2])[action])
    delay = rng.geometric(1 / 150, N)[shown]
    value = rng.integers(1, 5, N).astype(float)[shown]
    later = time[shown] + delay > time[LEFT - 1]
    delay[later] = np.maximum(delay * (1 + 3 * changed), time[LEFT - 1] + 1 - time[shown])[later]
    value[later] *= 1 + 99 * changed
    return build_log(
        time=time, action=action, n_actions=K, context=context, tick="s",
        propensity=p[np.arange(N), action] if propensity else None,
        conversion_display=shown, conversion_time=time[shown] + delay, conversion_value=value,
        reward_max=None,
    )  # fmt: skip


POLICIES = (
    "ucb1", "thompson", "delayed-ucb", "delayed-thompson", "discarding-klucb", "odaaf-v", "adapt-patient-bandits",
    "qpm-d", "otflinucb", "otflints", "waitlinucb",
)  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"window": "10min"},
        {"sampler": "rejection", "accept_quantile": 0.1},
        {"propensity": "estimate", "sampler": "rejection"},
        {"traffic_share": 2.0},
    ],
    ids=str,
)
def test_what_was_learned_stays(options: dict[str, Any]) -> None:
    known = options.get("propensity") is None
    logs = [log_of(changed=changed, propensity=known) for changed in (False, True)]
    windows = [options.get("window", 200)]
    rest = {key: value for key, value in {**OPTIONS, **options}.items() if key != "window"}
    policies = list(POLICIES)
    found = [compare(log, policies, windows=windows, baseline=policies[0], bootstrap=0, **rest).results for log in logs]
    for spec, one, two in zip(POLICIES, *found, strict=True):
        assert one.rounds == two.rounds > 500, spec
        np.testing.assert_array_equal(one.trajectory["display_id"], two.trajectory["display_id"])
        assert one.learned.setting == two.learned.setting, spec
        for a, b in zip(leaves(one.learned.state), leaves(two.learned.state), strict=True):
            np.testing.assert_array_equal(a, b)
        assert one.learned.setting.reward_max <= 4.0
        # They are judged on other displays.
        assert one.final.logging != two.final.logging


def test_without_final_all_of_it_teaches() -> None:
    """The logs differ in everything that could teach."""
    one, two = (plan(log_of(changed=changed), "delayed-klucb", window="10min") for changed in (False, True))
    assert one.setting.delay_cdf != two.setting.delay_cdf
    assert one.setting.reward_max < two.setting.reward_max
    assert one.window.rounds != two.window.rounds
    assert one.matched.c.min() != two.matched.c.min()


def test_the_delays_told_are_those_known_then_by_hand() -> None:
    log = log_of(changed=False)
    time, of, when = log.column("time"), *(log.conversions[c].to_numpy() for c in ("display_id", "time"))
    now = time[LEFT - 1]
    seen = (of < LEFT) & (when <= now)
    # Displays that follow one no later than its conversion; the longest delay that could have been seen.
    delay = np.searchsorted(time[:LEFT], when[seen], side="right") - 1 - of[seen]
    expected = product_limit(delay, LEFT - 1 - of[seen])
    found = plan(log, "delayed-klucb", **OPTIONS).setting.delay_cdf
    ages = np.arange(0, 200, 7)
    assert (expected(ages) - found(ages) < 1 / 256 + 1e-9).all()
    assert (found(ages) <= expected(ages)).all()
    said = replay(log, "delayed-klucb", **OPTIONS).assumptions
    assert any("as it was known when the displays that are left out began" in line for line in said)
    assert any("the largest that a display had earned when those that are left out began" in line for line in said)


def test_a_late_large_reward_is_still_bounded() -> None:
    """The policy is told what was known; the interval of the value is bounded by what the displays earn."""
    changed = plan(log_of(changed=True), "ucb1", **OPTIONS)
    assert changed.setting.reward_max <= 4.0
    assert changed.rewards.largest >= 100.0


def test_a_stored_log_tells_the_same(tmp_path: Path) -> None:
    log = log_of(changed=False)
    write_canonical(log, tmp_path)
    stored = open_canonical(tmp_path)
    one, two = (x.until(LEFT) for x in (log, stored))
    assert len(one) == len(two) == LEFT
    assert one.schema.names == two.schema.names
    assert one.conversions == two.conversions
    for name in ("time", "action", "propensity", "context"):
        np.testing.assert_array_equal(one.column(name), two.column(name))
    assert one.meta.observed_until == two.meta.observed_until == log.column("time")[LEFT - 1]
    assert pc.max(one.conversions["time"]).as_py() <= one.meta.observed_until
    assert survey(one).delay.tolist() == survey(two).delay.tolist()
    twice = stored.after(100).until(400)
    np.testing.assert_array_equal(twice.column("time"), log.column("time")[100:500])
    results = [replay(x, "delayed-klucb", **OPTIONS) for x in (log, stored)]
    assert results[0].final == results[1].final
