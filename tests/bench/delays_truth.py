"""Larger runs of tests against known truth: ``python -m tests.bench.delays_truth [job ...]``.

Jobs: ends, joint, lengthen, bands, aic, verdicts, surrogates.

The logs of a row are drawn from one stream, one after the other: it is computed as a whole, but for those of
verdicts and lengthen.
"""

from __future__ import annotations

import argparse
import math
from functools import cache

import numpy as np

from evaluator.delays.nonparametric import fit_nonparametric
from evaluator.delays.study.changes import delay_drift
from evaluator.delays.study.fitting import compare_families
from evaluator.delays.study.goodness import delays_under_test, goodness_of_fit
from evaluator.delays.study.heterogeneity import grouped_delays, heterogeneity
from evaluator.delays.study.likelihood import sample_of
from evaluator.delays.study.result import FEWEST
from evaluator.delays.study.surrogates import StudiedKind, find_surrogates
from evaluator.delays.study.tail import tail_delays, tail_index
from evaluator.log.log_tables import SALES
from evaluator.log.reward_kinds import events_of
from tests.bench.spread import Spread, add_options, spread_by
from tests.delays import ends as worlds
from tests.delays import joint_logs, lengthening, surrogate_worlds
from tests.delays.laws import truncated_draws
from tests.delays.test_fitting import PLAIN

LOGS = 100
BAND_LOGS = 5000
END_LOGS = 2000
JOINT_LOGS = 100
VERDICT_LOGS = 400
CHANGED_LOGS = 150
SURROGATE_LOGS = 400


def picked_of(logs: int, name: str) -> tuple[tuple[str, int], ...]:
    """Return how often each family is picked, where one is true."""
    rng = np.random.default_rng(0)
    rivals = PLAIN if name in PLAIN else [*PLAIN, name]
    picked: dict[str, int] = {}
    for _ in range(logs):
        delays, limits = truncated_draws(rng, name, displays=14_000)
        best = compare_families(sample_of(delays[:10_000], limits[:10_000]), families=rivals).best
        picked[best] = picked.get(best, 0) + 1
    return tuple(picked.items())


def aic(by: Spread) -> None:
    print(f"AIC at 10,000 conversions, {LOGS} logs a family: share in which the true one is picked")
    names = [*PLAIN, "lognormal-mixture-2"]
    for name, (found,) in zip(names, by.rows(picked_of, [((LOGS,), (name,)) for name in names]), strict=True):
        picked = dict(found)
        print(f"  {name:<22}{picked.get(name, 0) / LOGS:>6.2f}   {picked}", flush=True)


def covered_by(logs: int, displays: int) -> tuple[np.ndarray, int]:
    """Return on how many logs bands cover each decile, and all of the law at once."""
    rng = np.random.default_rng(1)
    covered, simultaneous = np.zeros(9), 0
    for _ in range(logs):
        limits, delays = rng.uniform(0, 1000, displays), rng.exponential(300, displays)
        fit = fit_nonparametric(delays[delays <= limits], limits[delays <= limits])
        levels = np.arange(1, 10) / 10
        deciles = -300 * np.log1p(levels * math.expm1(-fit.longest / 300))
        low, high = fit.interval(deciles)
        covered += (low <= levels) & (levels <= high)
        truth = np.expm1(-fit.delays / 300) / math.expm1(-fit.longest / 300)
        simultaneous += bool((fit.band_low <= truth).all() and (truth[1:] <= fit.band_high[:-1]).all())
    return covered, simultaneous


def bands(by: Spread) -> None:
    error = math.sqrt(0.95 * 0.05 / BAND_LOGS)
    print(f"coverage of 95 % bands, {BAND_LOGS} logs, standard error {error:.4f}: pointwise by decile, simultaneous")
    sizes = (300, 1500, 10_000)
    rows = by.rows(covered_by, [((BAND_LOGS,), (displays,)) for displays in sizes])
    for displays, ((covered, simultaneous),) in zip(sizes, rows, strict=True):
        print(
            f"  {displays:>6,} displays  {(covered / BAND_LOGS).round(3)}  {simultaneous / BAND_LOGS:.3f}", flush=True
        )


def ends(by: Spread) -> None:
    error = math.sqrt(0.95 * 0.05 / END_LOGS)
    print(f"Pointwise intervals at 95 %, {END_LOGS} logs a row, standard error {error:.4f}; least over the levels")
    print(f"{worlds.LEVELS.tolist()}. Wrong: the last delay seen bounds the 99 % quantile.\n")
    names = ["log", "conversions", "share holds", "quantile holds", "90 % bounded", "99 % bounded"]
    names += ["window recommended", "keeps its 90 %", "wrong way"]
    print(f"| {' | '.join(names)} |\n|---{'|---:' * (len(names) - 1)}|")
    cases = [(kind, n) for kind in worlds.LOGS for n in (50, 100, 400)]
    rows = by.rows(worlds.held, [(case, (END_LOGS,)) for case in cases], classes=[worlds.Held])
    for (kind, n), (found,) in zip(cases, rows, strict=True):
        bounded = found.bounded[worlds.LEVELS >= 0.9][[0, -1]]
        rates = (
            found.share.min(),
            found.quantile.min(),
            *bounded,
            found.recommended,
            found.recommended_keeps,
            found.last_bounds[-1],
        )
        print(f"| {kind} | {n} | {' | '.join(f'{100 * rate:.1f} %' for rate in rates)} |", flush=True)


def joint(by: Spread) -> None:
    error = math.sqrt(0.95 * 0.05 / JOINT_LOGS)
    print(
        f"`delays --joint`, {JOINT_LOGS} logs a row, 95 % intervals of the corrected rate, standard error {error:.3f}."
    )
    print("Wrong: the share that has converted so far, with a binomial interval.\n")
    print("| log | conversions | rate given | interval holds | wrong way | estimate / truth | model refuted |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    cases = [(name, conversions) for name in joint_logs.WORLDS for conversions in (60, 160, 600)]
    rows = by.rows(joint_logs.outcome, [(case, (JOINT_LOGS,)) for case in cases], classes=[joint_logs.Outcome])
    for (name, conversions), (of,) in zip(cases, rows, strict=True):
        shares = [f"{100 * share:.0f} %" for share in (of.given, of.held, of.naive_held, of.refuted)]
        print(
            f"| {name} | {conversions} | {shares[0]} | {shares[1]} | {shares[2]} | {of.ratio:.2f} | {shares[3]} |",
            flush=True,
        )


def lengthen(by: Spread) -> None:
    print(f"Delays that change along a log of 30 days, mean 2 days at first; {CHANGED_LOGS} logs a row.")
    print("Truth: the newest law. Silently wrong: the interval of the share within 7 days misses, or the")
    print("window keeps less than its 90 %, and no change is said.\n")
    names = ["delays", "law, traffic", "displays", "interval holds", "window keeps", "said", "silently wrong", "window"]
    print(f"| {' | '.join(names)} |\n|---|---{'|---:' * (len(names) - 2)}|")
    worlds = [(change, "exponential", n, "even") for n in (1200, 3000) for change in lengthening.CHANGES]
    worlds += [(change, law, 3000, "even") for law in list(lengthening.LAWS)[1:] for change in lengthening.CHANGES]
    worlds += [("none", "exponential", 1200, traffic) for traffic in lengthening.TRAFFIC[1:]]
    calls = [((world,), range(CHANGED_LOGS)) for world in worlds]
    rows = by.rows(lengthening.verdict, calls, classes=[lengthening.Verdict])
    for (change, law, displays, traffic), of_logs in zip(worlds, rows, strict=True):
        *rates, days = np.mean(of_logs, axis=0)
        said = " | ".join(
            f"{100 * rate:.1f} ± {100 * math.sqrt(rate * (1 - rate) / CHANGED_LOGS):.1f} %" for rate in rates
        )
        print(f"| {change} | {law}, {traffic} | {displays:,} | {said} | {days:.1f} d |", flush=True)


def verdicts(by: Spread) -> None:
    print(f"How often tests speak up at .05 where nothing is wrong, and 95 % intervals hold; {VERDICT_LOGS} logs a row")
    print("| log | groups differ | delays drift | law refuted (Anderson-Darling) | tail index holds |")
    print("|---|---|---|---|---|")
    kinds = (("even", 1), ("daily rhythm, stamps of a tenth of the mean", 15))
    rows = by.rows(verdicts_of, [((*kind, VERDICT_LOGS), range(VERDICT_LOGS)) for kind in kinds])
    for (name, _), of_logs in zip(kinds, rows, strict=True):
        found = np.array(of_logs)
        rates = found.mean(axis=0)
        errors = np.sqrt(rates * (1 - rates) / VERDICT_LOGS)
        print(f"| {name} | " + " | ".join(f"{r:.1%} ± {e:.1%}" for r, e in zip(rates, errors, strict=True)) + " |")


DAY = 100


@cache
def _logs(name: str, stamp: int, logs: int) -> list[tuple[np.ndarray, ...]]:
    """Return delays, limits, times and groups of conversions on each log, and the ends and draws of a heavy tail."""
    rng = np.random.default_rng(5)
    return [_drawn(rng, name, stamp) for _ in range(logs)]


def _drawn(rng: np.random.Generator, name: str, stamp: int) -> tuple[np.ndarray, ...]:
    days, length, mean = 8, DAY, 150.0
    time = rng.integers(0, days * length, 600)
    if name != "even":  # all displays of a day within a fifth of it
        time = time // length * length + 30 + time % length // 5
    limit = (days * length - time) // stamp * stamp
    delay = rng.exponential(mean, time.size).astype(int) // stamp * stamp
    seen = delay <= limit
    delay, limit, time = delay[seen], limit[seen], time[seen]
    groups = rng.integers(0, 3, time.size)
    ends = rng.uniform(5, 400, 1500)
    heavy = rng.random(1500) ** (-1 / 0.7)
    return delay, limit, time, groups, ends, heavy


def verdicts_of(name: str, stamp: int, logs: int, seed: int) -> tuple[bool, ...]:
    delay, limit, time, groups, ends, heavy = _logs(name, stamp, logs)[seed]
    differ = heterogeneity(grouped_delays(delay, limit, groups=groups, seed=seed), permutations=99).p <= 0.05
    drifts = delay_drift(delay, limit, days=time // DAY, false_alarms=0.05, permutations=99, seed=seed).changed
    # As a study does: in stamps.
    tested = delays_under_test(delay // stamp, limit // stamp, seed=seed)
    refuted = goodness_of_fit(tested, family="exponential", bootstraps=19, seed=seed)
    tail = tail_index(tail_delays(heavy[heavy <= ends], ends[heavy <= ends]), threshold=1.0)
    return differ, drifts, refuted.anderson_darling_p <= 0.05, tail.low <= 0.7 <= tail.high


def surrogates(by: Spread) -> None:
    print(f"How often intervals of outcomes before the reward hold, {SURROGATE_LOGS} logs a row")
    print("| log | displays | followed | preceded | actions, followed | actions, preceded | differ | foretell |")
    print("|---|---|---|---|---|---|---|---|")
    rows = [(name, per_user, n) for name in surrogate_worlds.WORLDS for per_user in (1, 3) for n in (1500, 12_000)]
    tasks = [((*row,), range(SURROGATE_LOGS)) for row in rows]
    for (name, per_user, n), of_logs in zip(rows, by.rows(surrogates_of, tasks), strict=True):
        rates = np.array(of_logs).mean(axis=0)
        errors = np.sqrt(rates * (1 - rates) / SURROGATE_LOGS)
        said = " | ".join(f"{r:.1%} ± {e:.1%}" for r, e in zip(rates, errors, strict=True))
        print(f"| {name}{', users of 3 displays' if per_user > 1 else ''} | {n:,} | {said} |", flush=True)


@cache
def _true_shares(name: str) -> surrogate_worlds.Truth:
    return surrogate_worlds.truth(surrogate_worlds.WORLDS[name], np.random.default_rng(7), n=20_000_000)


def surrogates_of(name: str, per_user: int, n: int, seed: int) -> tuple[bool, ...]:
    log = surrogate_worlds.a_log(surrogate_worlds.WORLDS[name], n, np.random.default_rng(seed), per_user=per_user)
    reward, click = (StudiedKind(kind, events_of(log, kind), 0.0, 0.0, 1) for kind in (SALES, "click"))
    (of,) = find_surrogates(log, reward, [click], displays=n, fewest=FEWEST, level=0.95)
    pooled_hold, actions_hold, true = [], [], _true_shares(name)
    for share, (pooled, *by_action) in ((of.followed_by_reward, true.followed), (of.reward_preceded, true.preceded)):
        pooled_hold.append(share.pooled.low <= pooled <= share.pooled.high)
        ends = [one for one in (share.least, share.most) if one is not None]
        actions_hold.append(
            all(one.share.low <= by_action[log.labels.index(one.action)] <= one.share.high for one in ends)
        )
    return *pooled_hold, *actions_hold, of.differs, of.foretells


def main() -> None:
    jobs = {job.__name__: job for job in (ends, joint, lengthen, bands, aic, verdicts, surrogates)}
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.delays_truth", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("jobs_shown", nargs="*", metavar="job", help=f"of {', '.join(jobs)}; all by default")
    add_options(parser)
    asked = parser.parse_args()
    if unknown := set(asked.jobs_shown) - set(jobs):
        parser.error(f"no job {', '.join(sorted(unknown))}; there are {', '.join(jobs)}")
    with spread_by(asked) as by:
        for name, job in jobs.items():
            if not asked.jobs_shown or name in asked.jobs_shown:
                job(by)


if __name__ == "__main__":
    main()
