"""How often intervals of outcomes leave out the truth, and guardrails would be answered wrongly at their boundary.

``python -m tests.bench.guardrails`` prints Markdown: for each kind of log, the share of the logs on which all intervals
of outcomes hold, adjusted for their number as those of guardrails are, and the share on which an answer by the estimate
alone would be wrong somewhere. Limits are the truth itself (`tests.statistical.test_guardrails`).
"""

from __future__ import annotations

import argparse

from tests.bench.spread import add_options, spread_by
from tests.statistical.test_guardrails import UNTIDY, answers, tidy, untidy


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.guardrails", description=__doc__)
    parser.add_argument("--logs", type=int, default=400, help="tidy ones; a fourth as many of each untidy kind")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first; the tests' begin at 0")
    parser.add_argument("--level", type=float, default=0.95)
    add_options(parser)
    asked = parser.parse_args()
    print("| kind | logs | no wrong answer | none by the estimate alone |")
    print("|---|---|---|---|")
    kinds = {name: asked.logs if name == "tidy" else asked.logs // 4 for name in ("tidy", *UNTIDY)}
    rows = [((name, asked.level), range(asked.first, asked.first + logs)) for name, logs in kinds.items()]
    with spread_by(asked) as by:
        for (name, logs), found in zip(kinds.items(), by.rows(wrong, rows), strict=True):
            shares = [1 - sum(of) / logs for of in zip(*found, strict=True)]
            errors = [(share * (1 - share) / logs) ** 0.5 for share in shares]
            cells = [f"{share:.1%} ± {error:.1%}" for share, error in zip(shares, errors, strict=True)]
            print(f"| {name} | {logs} | {' | '.join(cells)} |", flush=True)


def wrong(name: str, level: float, seed: int) -> tuple[bool, bool]:
    """Return whether any answer is wrong on one log of a kind, and whether any would be by the estimate alone."""
    found = answers((tidy if name == "tidy" else untidy(name))(seed), seed, level)
    return any(found.wrong), any(found.by_estimate)


if __name__ == "__main__":
    main()
