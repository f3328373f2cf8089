"""The cost of a round under a short and a long window, and under schedules.

Only otflinucb:bonus=exact, left out here, pays for the window.

Delays reach beyond the short window, so that the long one shows the delayed policies more steps of the delay CDF: at
most 256, whatever the window.
"""

from __future__ import annotations

import numpy as np

from evaluator.log import Log
from tests.bench.scenarios import ARMS, CONTEXTUAL, arms, linear, planned
from tests.bench.tables import Row, print_table
from tests.bench.timing import replay, turns
from tests.logged_rounds import in_memory

WINDOWS = (2_000, 2_000_000)
SCHEDULES = ("event", 100, 1_000)
MEAN_DELAY = 1000


def logs(displays: int) -> dict[str, Log]:
    return {
        **dict.fromkeys(CONTEXTUAL, linear(displays, mean_delay=MEAN_DELAY)),
        **dict.fromkeys(ARMS, arms(displays, "rates .03-.08", mean_delay=MEAN_DELAY)),
    }


def schedule_rows(displays: int) -> list[Row]:
    """Return the speed of each policy that learns at each event, and the time of its schedules over that."""
    out: list[Row] = []
    for policy, log in logs(displays).items():
        jobs = {}
        for every in SCHEDULES:
            p = planned(log, policy, window=WINDOWS[0], learn_every=every)
            sampler = p.sampler if policy in CONTEXTUAL else "keep"
            jobs[str(every)] = replay(p.policy, p.setting, in_memory(p.rounds), sampler=sampler, pushes=p.pushes)
        event, *others = turns(jobs).values()
        if p.policy.learns:
            speed = displays / float(np.median(event)) / 1e6
            out.append((policy, speed, *(float(np.median(other / event)) for other in others)))
    return out


def rows(displays: int) -> list[Row]:
    out: list[Row] = []
    for policy, log in logs(displays).items():
        jobs = {}
        for window in WINDOWS:
            p = planned(log, policy, window=window)
            sampler = p.sampler if policy in CONTEXTUAL else "keep"
            jobs[f"{window}"] = replay(p.policy, p.setting, in_memory(p.rounds), sampler=sampler)
        short, long = turns(jobs).values()
        speeds = (displays / float(np.median(took)) / 1e6 for took in (short, long))
        out.append((policy, *speeds, float(np.median(long / short))))
    return out


def print_section(displays: int) -> None:
    short, long = WINDOWS
    print(f"Windows of {short:,} and {long:,} rounds: {displays:,} logged displays, mean delay {MEAN_DELAY:,} rounds")
    print("(the long window never closes within the log: waitlinucb then plays at random)")
    headers = ("policy", f"million displays/s at {short:,}", f"at {long:,}", "time at long / short")
    print_table(headers, rows(displays))
    print()
    print(f"Schedules: a push after each {', '.join(f'{every:,}' for every in SCHEDULES[1:])} rounds, window {short:,}")
    others = [f"time at {every:,} / event" for every in SCHEDULES[1:]]
    print_table(("policy", "million displays/s at each event", *others), schedule_rows(displays))
