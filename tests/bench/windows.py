"""The cost of a round under a short and a long window. Only otflinucb:bonus=exact, left out here, pays for the window.

Delays reach beyond the short window, so that the long one shows the delayed policies more steps of the delay CDF: at
most 256, whatever the window.
"""

from __future__ import annotations

from tests.bench.scenarios import ARMS, CONTEXTUAL, arms, linear, planned
from tests.bench.tables import Row, print_table
from tests.bench.timing import replay, seconds
from tests.logged_rounds import in_memory

WINDOWS = (2_000, 2_000_000)
MEAN_DELAY = 1000


def rows(displays: int) -> list[Row]:
    logs = {
        **dict.fromkeys(CONTEXTUAL, linear(displays, mean_delay=MEAN_DELAY)),
        **dict.fromkeys(ARMS, arms(displays, "rates .03-.08", mean_delay=MEAN_DELAY)),
    }
    out: list[Row] = []
    for policy, log in logs.items():
        jobs = {}
        for window in WINDOWS:
            p = planned(log, policy, window=window)
            sampler = p.sampler if policy in CONTEXTUAL else "keep"
            jobs[f"{window}"] = replay(p.policy, p.setting, in_memory(p.rounds), sampler=sampler)
        short, long = seconds(jobs).values()
        out.append((policy, displays / short / 1e6, displays / long / 1e6, long / short))
    return out


def print_section(displays: int) -> None:
    short, long = WINDOWS
    print(f"Windows of {short:,} and {long:,} rounds: {displays:,} logged displays, mean delay {MEAN_DELAY:,} rounds")
    print("(the long window never closes within the log: waitlinucb then plays at random)")
    headers = ("policy", f"million displays/s at {short:,}", f"at {long:,}", "time at long / short")
    print_table(headers, rows(displays))
