"""Whether delays depend on the context or the time is told, whatever the displays' ages; on the action they may."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator import check
from evaluator.checks.delay_groups import YOUNG_DELAYS, SeenConversions, log_rank
from evaluator.checks.significance import chi_square_tail
from tests.logs import bernoulli_log
from tests.statistical.young_logs import DAY, Young


def drawn(rng: np.random.Generator, slow: float = 1.0, n: int = 800) -> tuple[SeenConversions, np.ndarray]:
    """Return conversions of two actions and three groups, the last of which is younger, and perhaps slower."""
    action, group = rng.integers(2, size=n), rng.integers(3, size=n)
    limit = np.where(group == 2, rng.integers(10, 60, n), rng.integers(20, 200, n))
    delay = rng.geometric(1.0 / np.where(action == 1, 80, 20) / np.where(group == 2, slow, 1.0)) - 1
    seen = delay <= limit
    return SeenConversions(delay[seen], limit[seen], action[seen]), group[seen]


def p_value(seen: SeenConversions, group: np.ndarray) -> float:
    observed, expected, variance = log_rank(seen, group, n_groups=3)
    gap = observed - expected
    assert abs(gap.sum()) < 1e-9
    return chi_square_tail(float(gap @ np.linalg.pinv(variance, rcond=1e-9, hermitian=True) @ gap), 2)


def test_the_log_rank_holds_its_level_although_groups_differ_in_age_and_action() -> None:
    logs, level = 600, 0.05
    rng = np.random.default_rng(1)
    p, raw = [], []
    for _ in range(logs):
        seen, group = drawn(rng)
        p.append(p_value(seen, group))
        # The tempting way: the group's delays as they were seen, beside those of the others.
        a, b = seen.delay[group == 2], seen.delay[group != 2]
        z = (a.mean() - b.mean()) / np.hypot(a.std() / len(a) ** 0.5, b.std() / len(b) ** 0.5)
        raw.append(abs(z) > 1.96)
    error = (level * (1 - level) / logs) ** 0.5
    assert abs(np.mean(np.array(p) <= level) - level) < 4 * error
    assert np.mean(raw) > level + 4 * error


def test_a_slower_group_is_found() -> None:
    rng = np.random.default_rng(2)
    assert np.median([p_value(*drawn(rng, slow=3.0, n=4000)) for _ in range(20)]) < 1e-3


def test_delays_by_a_column_are_found_and_repaired_by_it() -> None:
    found = check(Young(device=2.5, displays=12_000).draw(1))[YOUNG_DELAYS.name]
    assert (found.verdict, found.numbers["by"]) == ("warn", "device")
    assert "`immature='correct:device'`" in found.remedy
    assert "for a policy that chooses by the context it does not" in found.what


def test_delays_that_change_with_time_are_found() -> None:
    log = Young(displays=20_000, days=8.0, delays=(0.2, 0.3)).draw(2)
    when, of = log.conversions["time"].to_numpy(), log.conversions["display_id"].to_numpy()
    shown = log.column("time")[of]
    sooner = np.where(shown > 4 * DAY, shown + (when - shown) // 3, when)
    changed = log.conversions.set_column(1, "time", [sooner])
    found = check(type(log)(log.displays, changed, log.actions, log.meta))[YOUNG_DELAYS.name]
    assert (found.verdict, found.numbers["by"]) == ("warn", "day")
    assert found.remedy == "Replay with `immature='drop'`."


@pytest.mark.parametrize("delays", [(0.2, 1.0), (0.5, 0.5)])
def test_delays_by_action_are_no_finding(delays: tuple[float, float]) -> None:
    found = check(Young(delays=delays, displays=12_000).draw(3))[YOUNG_DELAYS.name]
    assert found.verdict == "pass"
    assert "corrects by action" in found.what


def test_without_young_displays_there_is_nothing_to_correct() -> None:
    assert "none is young" in check(bernoulli_log(3000, [0.2, 0.3], mean_delay=10, seed=1))[YOUNG_DELAYS.name].what
    log = Young(displays=3000).draw(4)
    old = log.with_meta(observed_until=int(log.column("time")[-1]) + 3 * DAY)
    assert "none is young" in check(old)[YOUNG_DELAYS.name].what
    few = Young(displays=300, rates=(0.1, 0.1)).draw(5)
    assert "too few conversions" in check(few)[YOUNG_DELAYS.name].what
