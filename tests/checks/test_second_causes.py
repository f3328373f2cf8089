"""A wrong alarm beside or instead of the right one: the check that knows the cause says it, and only that one."""

from __future__ import annotations

import re

import numpy as np
import pytest

from evaluator import Log, check
from evaluator.checks.run import CheckReport
from tests.checks.awkward import site
from tests.checks.defects import DEFECTS
from tests.checks.shops import DAY, HOUR, shop
from tests.logs import build_log

Floats = np.ndarray
RATES = np.array([0.05, 0.09, 0.13, 0.16])


def alarms(report: CheckReport) -> set[str]:
    return {f.name for f in report.checks if f.verdict in ("warn", "fail")}


def learning(seed: int, *, days: float = 20.0, batch: float = 1.0, by_hour: float = 0.0, n: int = 20_000) -> Log:
    """Return the log of a logger that draws by what it has learned, and follows the hour too if asked.

    Its traffic has a daily rhythm; its propensities are taken for the shares.
    """
    rng = np.random.default_rng(seed)
    at = np.sort(rng.random(4 * n) * days)
    at = at[rng.random(4 * n) < 0.5 * (1.0 + 0.8 * np.sin(2 * np.pi * at))]
    at = np.sort(rng.choice(at, n, replace=False))
    action, paid, wins = np.zeros(n, int), np.zeros(n, bool), np.ones((2, 4))
    for rows in np.split(np.arange(n), np.flatnonzero(np.diff(at // batch)) + 1):
        p = 0.1 + 0.6 * np.exp(30 * wins[0] / wins.sum(axis=0)) / np.exp(30 * wins[0] / wins.sum(axis=0)).sum()
        p = p * np.exp(by_hour * np.outer(np.sin(2 * np.pi * at[rows]), np.linspace(-1, 1, 4)))
        p /= p.sum(axis=1, keepdims=True)
        action[rows] = np.minimum((rng.random((len(rows), 1)) > np.cumsum(p, axis=1)).sum(axis=1), 3)
        paid[rows] = rng.random(len(rows)) < RATES[action[rows]]
        wins += 0.2 * np.array([np.bincount(action[rows], of, minlength=4) for of in (paid[rows], ~paid[rows])])
    time, sold = (at * DAY).astype(int), np.flatnonzero(paid)
    return build_log(
        time=time, action=action, n_actions=4, tick="s", propensity=(np.bincount(action) / n)[action],
        conversion_display=sold, conversion_time=time[sold] + rng.exponential(HOUR, len(sold)).astype(int),
    ).with_meta(propensity="estimated")  # fmt: skip


@pytest.mark.parametrize(("days", "batch"), [(20.0, 1.0), (27.3, 1.0), (5.6, 0.2), (1.6, 0.1)])
def test_a_logger_that_learned_did_not_follow_the_clock(days: float, batch: float) -> None:
    report = check(learning(1, days=days, batch=batch))
    assert "drift of action shares" in alarms(report)
    assert report["hours and weekdays"].verdict == "pass"
    assert report["near copies"].verdict in ("pass", "not applicable")


def test_a_logger_that_learned_and_followed_the_clock_did() -> None:
    assert check(learning(1, by_hour=0.3))["hours and weekdays"].verdict in ("warn", "fail")


def paused(at: Floats) -> Floats:
    there = np.ones((len(at), 4))
    there[at % 1 > 9.27 / 24, 3] = 0.0
    return there


def launched(at: Floats) -> Floats:
    there = np.ones((len(at), 4))
    there[at < 3, 3] = 0.0
    return there


def test_an_action_that_pauses_every_evening_is_not_retired() -> None:
    report = check(site(1, days=20, available=paused))
    assert alarms(report) == {"calibration"}
    assert "is shown never in 10:00 to 24:00" in report["calibration"].what
    assert report["replay of the logger"].follows_from == "calibration"
    retired = check(site(1, days=20, available=lambda at: paused(at) * np.where(at[:, None] > 15, [1, 1, 1, 0], 1)))
    assert "only until day 15, 09:1" in retired["overlap"].what


def test_a_launch_is_one_finding_and_wrong_propensities_beside_it_another() -> None:
    log = site(1, available=launched)
    report = check(log)
    assert alarms(report) == {"overlap"}
    assert not report.fit
    assert report["calibration"].follows_from == report["replay of the logger"].follows_from == "overlap"
    # What overlap says to do makes the log fit.
    assert alarms(check(log.after(int(np.flatnonzero(log.column("action") == 3)[0])))) == set()
    p = np.where(log.column("action") == 1, 1.4, 1.0) * log.column("propensity")
    at = log.displays.schema.get_field_index("propensity")
    wrong = check(Log(log.displays.set_column(at, "propensity", [p]), log.conversions, log.actions, log.meta))
    assert wrong["calibration"].verdict == "fail"
    assert "(action a1)" in wrong["calibration"].number
    assert "propensity column" in wrong["calibration"].remedy


def thinned(seed: int, keep: float, *, weighted: bool = False, n: int = 60_000) -> Log:
    """Return a log of a uniform logger, of whose displays without a conversion a share was kept."""
    rng = np.random.default_rng(seed)
    time, action = np.sort(rng.integers(0, 10 * DAY, n)), rng.integers(0, 4, n)
    x = rng.normal(size=n)
    sold = rng.random(n) < RATES[action] * (1.0 + 0.5 * np.tanh(x))
    kept = np.flatnonzero(sold | (rng.random(n) < keep))
    paid = np.flatnonzero(sold[kept])
    log = build_log(
        time=time[kept], action=action[kept], n_actions=4, tick="s", context=x[kept, None].astype(np.float32),
        conversion_display=paid, conversion_time=time[kept][paid] + rng.exponential(HOUR, len(paid)).astype(int),
    )  # fmt: skip
    if not weighted:
        return log
    weight = np.where(sold[kept], 1.0, 1.0 / keep)
    return Log(log.displays.append_column("weight", [weight]), log.conversions, log.actions, log.meta)


def test_thinned_displays_are_named_and_weights_repair_the_log() -> None:
    report = check(thinned(1, 0.11))
    assert alarms(report) == {"uniformity"}
    said = report["uniformity"].what
    for words, true in (("leave if", 0.11), ("were kept;", RATES.mean())):
        low, high = map(float, re.search(rf"{words} ([\d.]+) to ([\d.]+)", said).groups())
        assert low < true < high < 2 * true
    assert "`weight`" in report["uniformity"].remedy
    assert alarms(check(thinned(1, 0.11, weighted=True))) == set()
    assert "uniformity" not in alarms(check(thinned(2, 1.0)))


def test_many_actions_are_looked_at_in_parts_and_thinning_is_found_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    log = thinned(1, 0.11)
    whole = check(log)
    # Most of the shares that are tried take a block of their own.
    monkeypatch.setattr("evaluator.checks.shares._CELLS", 5)
    assert "look thinned" in whole["uniformity"].what
    assert check(log)["uniformity"] == whole["uniformity"]


def test_no_other_wrong_propensity_is_taken_for_thinning() -> None:
    for defect in ("uniform claimed, one action 1.3 times as often", "the logger follows the hour, uniform claimed"):
        found = check(DEFECTS[defect][0](7))["uniformity"]
        assert "thinned" not in found.what
        assert found.verdict == "fail"
    # Some share of the displays without conversions fits any two shares.
    rng = np.random.default_rng(3)
    action = (rng.random(4_000) < 0.7).astype(int)
    paid = np.flatnonzero(rng.random(4_000) < np.array([0.1, 0.8])[action])
    two = build_log(
        time=np.arange(4_000) * 60, action=action, n_actions=2, tick="s", conversion_display=paid,
        conversion_time=paid * 60 + 30,
    )  # fmt: skip
    found = check(two, propensity="uniform")["uniformity"]
    assert (found.verdict, "thinned" in found.what) == ("fail", False)
    learned = check(learning(1).with_meta(propensity="absent"), propensity="uniform")["uniformity"]
    assert (learned.verdict, "thinned" in learned.what) == ("fail", False)


@pytest.mark.parametrize("size", [5, 40, 400])
@pytest.mark.parametrize("kinds", [1, 30])
def test_mails_of_one_second_are_no_copies_unless_they_are(size: int, kinds: int) -> None:
    rng = np.random.default_rng(size)
    n = 20_000
    time = np.repeat(np.sort(rng.integers(0, 10 * DAY, n // size)), size)
    action, x = rng.integers(0, 4, n), np.eye(kinds, dtype=np.float32)[rng.integers(0, kinds, n)]
    of = check(build_log(time=time, action=action, n_actions=4, context=x, tick="s"))["duplicated displays"]
    assert of.verdict in ("pass", "not applicable")
    if size == 5:
        twice = np.sort(np.append(np.arange(n), rng.choice(n, n // 20, replace=False)))
        log = build_log(time=time[twice], action=action[twice], n_actions=4, context=x[twice], tick="s")
        assert check(log)["duplicated displays"].verdict == "warn"


def test_copies_of_a_log_without_contexts_are_found() -> None:
    made = shop(3, n=20_000)
    rows = np.sort(np.append(np.arange(len(made.time)), np.arange(0, len(made.time), 50)))
    log = build_log(time=made.time[rows], action=made.action[rows], n_actions=6, tick="s")
    assert check(log)["duplicated displays"].verdict == "warn"


def test_hours_without_an_action_are_a_pause_where_propensities_are_shares_too() -> None:
    log = site(1, days=20, available=paused)
    found = check(log, propensity="estimate")["hours and weekdays"]
    assert found.verdict == "fail"
    assert "is shown never in 10:00 to 24:00" in found.what
    assert found.remedy.startswith("Leave out what pauses (`actions='")
    assert "estimate:context" not in found.remedy
    # Shares that rise and fall leave no hour without displays.
    assert "estimate:context" in check(learning(1, by_hour=0.3))["hours and weekdays"].remedy


def test_single_displays_are_neither_launched_nor_retired() -> None:
    rng = np.random.default_rng(4)
    time = np.sort(rng.integers(0, 30 * DAY, 320))
    few = check(build_log(time=time, action=rng.integers(0, 80, 320), n_actions=80, tick="s"))["overlap"]
    assert few.numbers["launched_or_retired"] == 0
    assert "has displays only" not in few.what
    # Thirty displays, all in the last half, are a launch.
    late = np.where((np.arange(320) >= 160) & (np.arange(320) % 5 == 0), 2, np.arange(320) % 2)
    log = build_log(time=time, action=late, n_actions=3, tick="s")
    assert check(log)["overlap"].numbers["launched_or_retired"] == 1
    assert "(a file that starts later)" in check(log)["overlap"].remedy
    gone = build_log(time=time, action=late[::-1], n_actions=3, tick="s")
    assert "(`limit`)" in check(gone)["overlap"].remedy
