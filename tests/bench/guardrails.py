"""How often intervals of outcomes leave out the truth, and guardrails would be answered wrongly at their boundary.

``python -m tests.bench.guardrails`` prints Markdown: for each kind of log, the share of the logs on which all intervals
of outcomes hold, adjusted for their number as those of guardrails are, and the share on which an answer by the estimate
alone would be wrong somewhere. Limits are the truth itself (`tests.statistical.test_guardrails`).
"""

from __future__ import annotations

import argparse

from tests.statistical.test_guardrails import UNTIDY, answers, tidy, untidy


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.guardrails", description=__doc__)
    parser.add_argument("--logs", type=int, default=400, help="tidy ones; a fourth as many of each untidy kind")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first; the tests' begin at 0")
    parser.add_argument("--level", type=float, default=0.95)
    asked = parser.parse_args()
    print("| kind | logs | no wrong answer | none by the estimate alone |")
    print("|---|---|---|---|")
    for name in ("tidy", *UNTIDY):
        draw, logs = (tidy, asked.logs) if name == "tidy" else (untidy(name), asked.logs // 4)
        found = [answers(draw(seed), seed, asked.level) for seed in range(asked.first, asked.first + logs)]
        shares = [1 - sum(map(any, of)) / logs for of in zip(*((f.wrong, f.by_estimate) for f in found), strict=True)]
        errors = [(share * (1 - share) / logs) ** 0.5 for share in shares]
        cells = [f"{share:.1%} ± {error:.1%}" for share, error in zip(shares, errors, strict=True)]
        print(f"| {name} | {logs} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
