"""Larger runs of tests against known truth: ``python -m tests.bench.delays_truth [ends|joint|bands|aic|verdicts]``."""

from __future__ import annotations

import math
import sys

import numpy as np

from evaluator.delays.nonparametric import fit_nonparametric
from evaluator.delays.study.changes import delay_drift
from evaluator.delays.study.criteria import compare_families
from evaluator.delays.study.goodness import goodness_of_fit
from evaluator.delays.study.heterogeneity import heterogeneity
from evaluator.delays.study.tail import tail_index
from tests.delays import ends as worlds
from tests.delays import joint_logs
from tests.delays.laws import truncated_draws
from tests.delays.test_fitting import PLAIN

LOGS = 100
BAND_LOGS = 5000
END_LOGS = 2000
JOINT_LOGS = 100
VERDICT_LOGS = 400


def aic() -> None:
    print(f"AIC at 10,000 conversions, {LOGS} logs a family: share in which the true one is picked")
    for name in [*PLAIN, "lognormal-mixture-2"]:
        rng = np.random.default_rng(0)
        rivals = PLAIN if name in PLAIN else [*PLAIN, name]
        picked: dict[str, int] = {}
        for _ in range(LOGS):
            delays, limits = truncated_draws(rng, name, displays=14_000)
            best = compare_families(delays[:10_000], limits[:10_000], families=rivals).best
            picked[best] = picked.get(best, 0) + 1
        print(f"  {name:<22}{picked.get(name, 0) / LOGS:>6.2f}   {picked}", flush=True)


def bands() -> None:
    error = math.sqrt(0.95 * 0.05 / BAND_LOGS)
    print(f"coverage of 95 % bands, {BAND_LOGS} logs, standard error {error:.4f}: pointwise by decile, simultaneous")
    for displays in (300, 1500, 10_000):
        rng = np.random.default_rng(1)
        covered, simultaneous = np.zeros(9), 0
        for _ in range(BAND_LOGS):
            limits, delays = rng.uniform(0, 1000, displays), rng.exponential(300, displays)
            fit = fit_nonparametric(delays[delays <= limits], limits[delays <= limits])
            levels = np.arange(1, 10) / 10
            deciles = -300 * np.log1p(levels * math.expm1(-fit.longest / 300))
            low, high = fit.interval(deciles)
            covered += (low <= levels) & (levels <= high)
            truth = np.expm1(-fit.delays / 300) / math.expm1(-fit.longest / 300)
            simultaneous += bool((fit.band_low <= truth).all() and (truth[1:] <= fit.band_high[:-1]).all())
        print(
            f"  {displays:>6,} displays  {(covered / BAND_LOGS).round(3)}  {simultaneous / BAND_LOGS:.3f}", flush=True
        )


def ends() -> None:
    error = math.sqrt(0.95 * 0.05 / END_LOGS)
    print(f"Pointwise intervals at 95 %, {END_LOGS} logs a row, standard error {error:.4f}; least over the levels")
    print(f"{worlds.LEVELS.tolist()}. Wrong: the last delay seen bounds the 99 % quantile.\n")
    names = ["log", "conversions", "share holds", "quantile holds", "90 % bounded", "99 % bounded"]
    names += ["window recommended", "keeps its 90 %", "wrong way"]
    print(f"| {' | '.join(names)} |\n|---{'|---:' * (len(names) - 1)}|")
    for kind in worlds.LOGS:
        for n in (50, 100, 400):
            found = worlds.held(kind, n, END_LOGS)
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


def joint() -> None:
    error = math.sqrt(0.95 * 0.05 / JOINT_LOGS)
    print(
        f"`delays --joint`, {JOINT_LOGS} logs a row, 95 % intervals of the corrected rate, standard error {error:.3f}."
    )
    print("Wrong: the share that has converted so far, with a binomial interval.\n")
    print("| log | conversions | rate given | interval holds | wrong way | estimate / truth | model refuted |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in joint_logs.WORLDS:
        for conversions in (60, 160, 600):
            of = joint_logs.outcome(name, conversions, JOINT_LOGS)
            shares = [f"{100 * share:.0f} %" for share in (of.given, of.held, of.naive_held, of.refuted)]
            print(
                f"| {name} | {conversions} | {shares[0]} | {shares[1]} | {shares[2]} | {of.ratio:.2f} | {shares[3]} |",
                flush=True,
            )


def verdicts() -> None:
    print(f"How often tests speak up at .05 where nothing is wrong, and 95 % intervals hold; {VERDICT_LOGS} logs a row")
    print("| log | groups differ | delays drift | law refuted (Anderson-Darling) | tail index holds |")
    print("|---|---|---|---|---|")
    for name, stamp in (("even", 1), ("daily rhythm, stamps of a tenth of the mean", 15)):
        rng = np.random.default_rng(5)
        found = np.array([_verdicts_of(rng, name, stamp, seed) for seed in range(VERDICT_LOGS)])
        rates = found.mean(axis=0)
        errors = np.sqrt(rates * (1 - rates) / VERDICT_LOGS)
        print(f"| {name} | " + " | ".join(f"{r:.1%} ± {e:.1%}" for r, e in zip(rates, errors, strict=True)) + " |")


def _verdicts_of(rng: np.random.Generator, name: str, stamp: int, seed: int) -> list[bool]:
    days, length, mean = 8, 100, 150.0
    time = rng.integers(0, days * length, 600)
    if name != "even":  # all displays of a day within a fifth of it
        time = time // length * length + 30 + time % length // 5
    limit = (days * length - time) // stamp * stamp
    delay = rng.exponential(mean, time.size).astype(int) // stamp * stamp
    seen = delay <= limit
    delay, limit, time = delay[seen], limit[seen], time[seen]
    groups = rng.integers(0, 3, time.size)
    differ = heterogeneity(delay, limit, groups=groups, permutations=99, seed=seed).p <= 0.05
    drifts = delay_drift(delay, limit, days=time // length, false_alarms=0.05, permutations=99, seed=seed).changed
    # As a study does: in stamps.
    refuted = goodness_of_fit(delay // stamp, limit // stamp, family="exponential", bootstraps=19, seed=seed)
    ends = rng.uniform(5, 400, 1500)
    heavy = rng.random(1500) ** (-1 / 0.7)
    tail = tail_index(heavy[heavy <= ends], ends[heavy <= ends], threshold=1.0)
    return [differ, drifts, refuted.anderson_darling_p <= 0.05, tail.low <= 0.7 <= tail.high]


if __name__ == "__main__":
    for job in [ends, joint, bands, aic, verdicts]:
        if not sys.argv[1:] or job.__name__ in sys.argv[1:]:
            job()
