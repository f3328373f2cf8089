"""How often numbers hold where young displays are corrected: ``python -m tests.bench.immature``.

Logs of known truth that end with their last display. Held is the share of the logs on which a 95 % interval holds the
truth, of the worst of three policies; *called real* is how often `compare` calls the difference of two fixed actions
real; *worst bias* is that of the three values, relative. The last rule is the tempting one: one delay law for all.
"""

from __future__ import annotations

import argparse

import numpy as np

from tests.bench.spread import add_options, spread_by
from tests.statistical.young_logs import Young
from tests.statistical.young_runs import ONE_LAW, WORLDS, Held, held

LARGE = "large, hardly longer than its window"
RULES = ("drop", "correct", ONE_LAW)
TITLES = ("log", "rule", "used", "value", "uplift", "paired difference", "called real", "expected value", "worst bias")


ALL = {**WORLDS, LARGE: Young(displays=100_000, days=2.02)}


def on_log(name: str, rule: str, bootstrap: int, seed: int) -> Held:
    return held(ALL[name], rule, [seed], bootstrap=bootstrap)


def row(world: Young, found: Held, *, bootstrap: int) -> list[str]:
    """Return the cells of one row."""
    relative = found.off[:, :3] / [*world.rewards[:2], world.rewards.mean()]
    bias, error = relative.mean(axis=0), relative.std(axis=0, ddof=1) / len(relative) ** 0.5
    worst = int(np.argmax(np.abs(bias)))
    same = np.ptp(world.rewards[:2]) == 0.0
    return [
        f"{found.used.mean():.1%}", share(found.value), share(found.uplift), share(found.difference[:, None]),
        share(found.real[:, None]) + ("" if same else " (it is)"),
        share(found.expected) if bootstrap else "", f"{bias[worst]:+.2%} ± {error[worst]:.2%}",
    ]  # fmt: skip


def share(held: np.ndarray) -> str:
    """Return the smallest share of any policy, with its standard error."""
    p = float(held.mean(axis=0).min())
    return f"{p:.1%} ± {(p * (1 - p) / len(held)) ** 0.5:.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.immature", description=__doc__)
    parser.add_argument("worlds", nargs="*", default=list(ALL), help=f"of {', '.join(ALL)}")
    parser.add_argument("--rules", nargs="*", default=list(RULES))
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--first", type=int, default=1_000, help="seed of the first; the tests' begin at 0")
    parser.add_argument("--bootstrap", type=int, default=0, help="resampled logs for the expected value; 0 for none")
    add_options(parser)
    asked = parser.parse_args()
    unknown = set(asked.worlds) - set(ALL)
    if unknown:
        parser.error(f"no log {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    seeds = range(asked.first, asked.first + asked.logs)
    print(f"{asked.logs} logs a row, {asked.bootstrap} resampled logs\n")
    print("| " + " | ".join(TITLES) + " |\n" + "|---" * len(TITLES) + "|")
    cases = [(name, rule) for name in asked.worlds for rule in asked.rules]
    with spread_by(asked) as by:
        rows = by.rows(on_log, [((*case, asked.bootstrap), seeds) for case in cases], classes=[Held])
        for (name, rule), logs in zip(cases, rows, strict=True):
            found = Held(*(np.concatenate(column) for column in zip(*logs, strict=True)))
            print(f"| {name} | {rule} | {' | '.join(row(ALL[name], found, bootstrap=asked.bootstrap))} |", flush=True)


if __name__ == "__main__":
    main()
