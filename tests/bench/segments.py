"""How often intervals of groups hold, all at once, and groups that are alike are told apart.

``python -m tests.bench.segments`` prints Markdown: for each kind of log, the share of the logs on which all intervals
of all groups hold, of the values and uplifts of one line and of all differences, and on which normal ones that stand
alone do; and the share on which groups in which no action earns more than another are told apart.
"""

from __future__ import annotations

import argparse

from tests.bench.spread import add_options, spread_by
from tests.statistical.test_segments import NAMES, TIDY, UNTIDY, World, missed, tidy, told_apart, untidy


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.segments", description=__doc__)
    parser.add_argument("--logs", type=int, default=100, help="tidy ones; a fourth as many of each untidy kind")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first; the tests' begin at 0")
    parser.add_argument("--level", type=float, default=0.95)
    add_options(parser)
    asked = parser.parse_args()
    print(f"| kind | logs | {' | '.join(NAMES)} | normal, each alone |")
    print("|---|---|" + "---|" * (len(NAMES) + 1))
    kinds = {name: asked.logs if name in TIDY else asked.logs // 4 for name in (*TIDY, *UNTIDY)}
    pairs = (("random", "fixed:action=1"), ("thompson", "ucb1"))
    with spread_by(asked) as by:
        rows = [((name, asked.level), range(asked.first, asked.first + logs)) for name, logs in kinds.items()]
        for (name, logs), found in zip(kinds.items(), by.rows(held, rows, at_once=5), strict=True):
            cells = [_share(list(of)) for of in zip(*found, strict=True)]
            print(f"| {name} | {logs} | {' | '.join(cells)} |", flush=True)
        print("\n| told apart though alike | logs | uplift | difference |\n|---|---|---|---|")
        seeds = range(asked.first, asked.first + asked.logs)
        rows = [((policies, asked.level), seeds) for policies in pairs]
        for policies, found in zip(pairs, by.rows(told, rows), strict=True):
            cells = [_share(list(of)) for of in zip(*found, strict=True)]
            print(f"| {', '.join(policies)} | {asked.logs} | {' | '.join(cells)} |", flush=True)


def held(name: str, level: float, seed: int) -> tuple[bool, ...]:
    """Return whether the intervals of each of `NAMES` all hold on one log, and whether normal ones do."""
    found = missed(_world(name, seed), seed, level)
    return (*(not bool(found.given[number]) for number in NAMES), not any(found.alone.values()))


def told(policies: tuple[str, ...], level: float, seed: int) -> tuple[bool, ...]:
    return tuple(told_apart(tidy(seed, effect=0.0), policies, level, seed))


def _world(name: str, seed: int) -> World:
    return tidy(seed, **TIDY[name]) if name in TIDY else untidy(name)(seed)


def _share(of: list[bool]) -> str:
    share = sum(of) / len(of)
    return f"{share:.1%} ± {(share * (1 - share) / len(of)) ** 0.5:.1%}"


if __name__ == "__main__":
    main()
