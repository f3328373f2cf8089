"""What becomes of replays of untidy logs with known truth: ``python -m tests.bench.untidy``.

Prints, for each kind of untidiness, the share of the replays whose numbers all hold (covered), that are wrong but say
why (warned), that are not answered (refused), and that are wrong without a word (silent), which should be none.
"""

from __future__ import annotations

import argparse
import re

from tests.untidy.kinds import KINDS
from tests.untidy.verdict import OUTCOMES, judge, live_difference

LIVE_RUNS = 100


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.untidy", description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(KINDS), help="all by default")
    parser.add_argument("--logs", type=int, default=40, help="of each kind")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first; the tests' begin at 0")
    asked = parser.parse_args()
    print("| kind | logs | replays | covered | warned | refused | silent and wrong | learner − live |")
    print("|---|---|---|---|---|---|---|---|")
    for name in asked.kinds:
        kind = KINDS[name]
        found = [v for seed in range(asked.first, asked.first + asked.logs) for v in judge(kind, seed)]
        shares = [sum(v.outcome == outcome for v in found) / len(found) for outcome in OUTCOMES]
        live = ""
        if kind.live:
            difference, error = live_difference(kind, found, LIVE_RUNS)
            said = [text for v in found if v.policy == kind.live for text in v.said]
            named = bool(kind.causes) and any(re.search(kind.causes, text, re.IGNORECASE) for text in said)
            live = f"{difference:+.4f} ± {error:.4f}{' (warned)' if named else ''}"
        cells = [name, str(asked.logs), str(len(found)), *[f"{share:.1%}" for share in shares], live]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
