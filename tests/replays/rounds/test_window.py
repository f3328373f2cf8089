"""The cut-off in rounds and in time, by hand and against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import ParameterError
from evaluator.log import Log
from evaluator.replays.rounds import survey as surveys
from evaluator.replays.rounds.clock import ReplayClock, ReplayWindow, resolve_window, start_clock
from evaluator.replays.rounds.survey import Survey, survey
from evaluator.units import NO_WINDOW
from tests.logs import build_log

# Six displays, two of them tied: one in 10 s.
TIMES = [0, 10, 10, 20, 40, 50]


def log_at(times: list[int], tick: str = "s", conversions: list[tuple[int, int]] = ()) -> Log:  # type: ignore[assignment]
    of, when = ([c[i] for c in conversions] for i in (0, 1))
    return build_log(
        time=times, action=np.arange(len(times)) % 2, conversion_display=of, conversion_time=when, n_actions=2,
        tick=tick,
    )  # fmt: skip


def clock_of(seen: Survey, share: float = 1.0) -> ReplayClock:
    return start_clock(seen, "traffic", traffic_share=share, acceptance=0.5)


def window_of(log: Log, text: str | int | None, share: float = 1.0) -> ReplayWindow:
    seen = survey(log)
    return resolve_window(text, clock_of(seen, share), seen)


@pytest.mark.parametrize(
    ("text", "rounds", "ticks"),
    [
        ("2000", 2000, None),
        (2000, 2000, None),
        ("10s", 2, 10),  # from 0 s on: both displays at 10 s
        ("20s", 3, 20),
        ("1s", 1, 1),  # the two at 10 s
        ("30s", 3, 30),
        ("15min", 90, 900),  # past the end at the mean rate: one in 10 s
        ("7d", 60_480, 604_800),
    ],
)
def test_a_window_is_rounds_or_a_duration(text: str | int, rounds: int, ticks: int | None) -> None:
    window = window_of(log_at(TIMES), text)
    assert window.ticks == ticks
    assert window.rounds == rounds


def brute_span(times: list[int], ticks: int) -> int:
    rate = (len(times) - 1) / (times[-1] - times[0])
    later = [
        sum(t <= when + ticks for t in times) + int(np.floor(max(when + ticks - times[-1], 0) * rate)) - 1 - i
        for i, when in enumerate(times)
    ]
    return max(later)


@given(
    st.lists(st.integers(0, 200), min_size=2, max_size=40).map(sorted).filter(lambda t: t[0] < t[-1]),
    st.integers(0, 300),
    st.integers(1, 41),
)
def test_the_longest_span_bounds_every_delay(times: list[int], ticks: int, marks: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(surveys, "_MARKS", marks)
        seen = survey(log_at(times))
    exact, step = brute_span(times, ticks), -(-len(times) // marks)
    assert exact <= seen.longest_span(ticks) <= exact + 2 * (step - 1)


def test_a_duration_is_cut_in_time_and_rounds_in_rounds() -> None:
    # A quiet hour, then a busy one: a display in 10 min, then in 10 s. Each display converts 40 min later.
    quiet, busy = np.arange(0, 3600, 600), np.arange(3600, 7200, 10)
    time = np.concatenate([quiet, busy])
    log = build_log(
        time=time, action=np.arange(len(time)) % 2, conversion_display=np.arange(len(time)),
        conversion_time=time + 2400, n_actions=2, tick="s",
    )  # fmt: skip
    seen = survey(log)
    clock = clock_of(seen)
    hour, short, rounds = (resolve_window(text, clock_of(seen), seen) for text in ("1h", "39min", "100"))
    assert (hour.revealed(seen, clock) <= hour.rounds).all()
    assert (short.revealed(seen, clock) == NO_WINDOW).all()
    # 100 rounds let through what came within 100 displays: all of the quiet hour but its end.
    assert ((rounds.revealed(seen, clock) <= 100) == (seen.delay <= 100)).all()
    assert 0 < (seen.delay <= 100).sum() < len(time)
    # An hour at the mean rate is 183 displays, in the busy hour twice as many: what was wrong before.
    mean = clock_of(seen).rate * 3600
    assert mean < 190
    assert hour.rounds == 359
    assert (seen.delay <= mean).sum() < len(time)


def test_plans_with_one_window_share_their_delays() -> None:
    seen = survey(build_log(time=np.arange(20), action=np.arange(20) % 2, conversion_display=[3], conversion_time=[9],
                            n_actions=2, tick="s"))  # fmt: skip
    found = [resolve_window("7s", clock_of(seen), seen).revealed(seen, clock_of(seen)) for _ in range(2)]
    assert found[0] is found[1]
    assert resolve_window("5s", clock_of(seen), seen).revealed(seen, clock_of(seen)) is not found[0]


def test_no_revealed_conversion_is_later_than_m() -> None:
    rng = np.random.default_rng(1)
    time = np.sort(rng.integers(0, 86_400, 3_000) ** 2 // 86_400)
    of = np.sort(rng.choice(3_000, 2_000, replace=False))
    log = build_log(
        time=time, action=rng.integers(0, 2, 3_000), conversion_display=of,
        conversion_time=time[of] + rng.integers(0, 7_200, 2_000), n_actions=2, tick="s",
    )  # fmt: skip
    seen = survey(log)
    for share in (1.0, 0.37):
        clock = clock_of(seen, share)
        window = resolve_window("1h", clock, seen)
        told = window.revealed(seen, clock)
        assert ((told == NO_WINDOW) == (seen.delay_ticks > 3600)).all()
        assert told[told < NO_WINDOW].max() <= window.rounds


def test_a_window_is_described_in_both_units() -> None:
    log = log_at(TIMES)
    clock = clock_of(survey(log))
    assert window_of(log, "1s").describe(clock) == "1 s, at most 1 rounds"
    assert window_of(log, 12).describe(clock) == "12 rounds, 2 min on average"
    assert window_of(log, None).describe(clock) == "none"
    assert window_of(log, None).rounds == NO_WINDOW


@pytest.mark.parametrize("text", ["0", "-5", "0d", "-7d", "abc", "", "7 parsecs", "1.5", "nan"])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(ParameterError):
        window_of(log_at(TIMES), text)


def test_a_duration_on_a_log_of_rounds_is_refused() -> None:
    with pytest.raises(ParameterError, match="counts rounds, not time"):
        window_of(log_at(TIMES, "round"), "7d")


@pytest.mark.parametrize(("unit", "words"), [(60, "1 min"), (3600, "1 h"), (86400, "1 d")])
def test_a_window_shorter_than_the_stamps_is_refused(unit: int, words: str) -> None:
    log = log_at([7 + unit * t for t in TIMES], conversions=[(0, 7 + unit)])
    assert survey(log).stamp == unit
    with pytest.raises(ParameterError, match=f"all are multiples of {words}"):
        window_of(log, f"{unit - 1}s")
    assert window_of(log, f"{unit}s").ticks == unit
    # One time between, of a display or a conversion, and the stamps are finer.
    assert survey(log_at([7, 8, *(7 + unit * t for t in range(1, 5))])).stamp == 1
    assert survey(log_at([7 + unit * t for t in TIMES], conversions=[(0, 8 + unit)])).stamp == 1
