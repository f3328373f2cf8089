"""What becomes of replays of untidy logs with known truth: ``python -m tests.bench.untidy``.

Prints, for each kind of untidiness, the share of the replays whose numbers all hold (covered), that are wrong but say
why (warned), that are not answered (refused), and that are wrong without a word (silent), which should be none.
"""

from __future__ import annotations

import argparse
import re
from itertools import chain

from tests.bench.spread import add_options, spread_by
from tests.untidy.kinds import KINDS
from tests.untidy.verdict import OUTCOMES, Verdict, judge, live_value, off_live

LIVE_RUNS = 100


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.untidy", description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(KINDS), help="all by default")
    parser.add_argument("--logs", type=int, default=40, help="of each kind")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first; the tests' begin at 0")
    add_options(parser)
    asked = parser.parse_args()
    print("| kind | logs | replays | covered | warned | refused | silent and wrong | learner − live |")
    print("|---|---|---|---|---|---|---|---|")
    played = [name for name in asked.kinds if KINDS[name].live]
    with spread_by(asked) as by:
        lived = dict(zip(played, by.rows(live, [((name,), range(LIVE_RUNS)) for name in played]), strict=True))
        rows = [((name,), range(asked.first, asked.first + asked.logs)) for name in asked.kinds]
        for name, logs in zip(asked.kinds, by.rows(judged, rows, classes=[Verdict], at_once=5), strict=True):
            kind, found = KINDS[name], list(chain.from_iterable(logs))
            shares = [sum(v.outcome == outcome for v in found) / len(found) for outcome in OUTCOMES]
            difference = ""
            if kind.live:
                mean, error = off_live(kind, found, lived[name])
                said = [text for v in found if v.policy == kind.live for text in v.said]
                named = bool(kind.causes) and any(re.search(kind.causes, text, re.IGNORECASE) for text in said)
                difference = f"{mean:+.4f} ± {error:.4f}{' (warned)' if named else ''}"
            cells = [name, str(asked.logs), str(len(found)), *[f"{share:.1%}" for share in shares], difference]
            print(f"| {' | '.join(cells)} |", flush=True)


def judged(name: str, seed: int) -> tuple[Verdict, ...]:
    return tuple(judge(KINDS[name], seed))


def live(name: str, run: int) -> float:
    return live_value(KINDS[name], run)


if __name__ == "__main__":
    main()
