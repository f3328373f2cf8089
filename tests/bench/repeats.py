"""What repeats in other orders of a log buy, and what they cost: ``python -m tests.bench.repeats``.

For each kind of log and number of repeats: the standard deviation of the value and of the regret over logs, the mean
width of the value's interval, how often the intervals hold their truth, and two biases in units of the value: what the
rounds are expected to earn minus that of the first repeat alone, on the same logs, and minus what the policy earns
live, each with its standard error.
"""

from __future__ import annotations

import argparse

import numpy as np

from tests.bench.spread import add_options, spread_by
from tests.statistical.repeated import CASES, INTERVALS, POLICIES, Floats, Found, found_of, live_value


def on_log(name: str, repeats: int, level: float, seed: int) -> Found:
    case = CASES[name]
    return found_of(case.draw(seed), case, repeats=repeats, seed=seed, level=level)


def live(name: str, run: int) -> float:
    return live_value(CASES[name], run)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.repeats", description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), help="all by default")
    parser.add_argument("--logs", type=int, default=60, help="of each kind")
    parser.add_argument("--repeats", type=int, nargs="+", default=[1, 5, 20])
    parser.add_argument("--live", type=int, default=200, help="live runs")
    parser.add_argument("--level", type=float, default=0.95)
    add_options(parser)
    asked = parser.parse_args()
    print(f"{POLICIES[0]}, compared with {POLICIES[1]}; intervals at {asked.level:.0%}.\n")
    print("| logs | n | repeats | value sd | regret sd | width | " + " | ".join(f"{x} held" for x in INTERVALS)
          + " | − first repeat | − live |")  # fmt: skip
    print("|---" * (8 + len(INTERVALS)) + "|")
    played = [name for name in asked.cases if CASES[name].live is not None]
    shown = [(name, repeats) for name in asked.cases for repeats in sorted({1, *asked.repeats})]
    with spread_by(asked) as by:
        lived = dict(zip(played, by.rows(live, [((name,), range(asked.live)) for name in played]), strict=True))
        rows = [((name, repeats, asked.level), range(asked.logs)) for name, repeats in shown]
        firsts: dict[str, Floats] = {}
        for (name, repeats), found in zip(shown, by.rows(on_log, rows, classes=[Found], at_once=5), strict=True):
            realised = np.array([f.realised for f in found])
            first = firsts.setdefault(name, realised)
            held = np.array([f.held for f in found]).mean(axis=0)
            se = np.sqrt(held * (1 - held) / len(found))
            shares = [f"{share:.1%} ± {error:.1%}" for share, error in zip(held, se, strict=True)]
            spread = [f"{np.std([getattr(f, of) for f in found], ddof=1):.4g}" for of in ("value", "regret")]
            width = f"{np.mean([f.width for f in found]):.4f}"
            of_first, of_live = "", ""
            if repeats > 1:
                of_first = _with_error(realised - first, np.zeros(1))
            if name in lived:
                of_live = _with_error(realised, np.array(lived[name]))
            cells = [name, str(len(found)), str(repeats), *spread, width, *shares, of_first, of_live]
            print(f"| {' | '.join(cells)} |", flush=True)


def _with_error(a: Floats, b: Floats) -> str:
    """Return the difference of two means with its standard error; a single b is known."""
    error = a.var(ddof=1) / len(a) + (b.var(ddof=1) / len(b) if len(b) > 1 else 0.0)
    return f"{a.mean() - b.mean():+.4f} ± {error**0.5:.4f}"


if __name__ == "__main__":
    main()
