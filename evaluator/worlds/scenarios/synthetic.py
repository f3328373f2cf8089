"""Logs with known truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.delays.laws import LONGEST, NEVER, DelayLaw
from evaluator.errors import ParameterError
from evaluator.log import Log, LogMeta
from evaluator.log.eligible import pack
from evaluator.log.fingerprint import content_hash
from evaluator.log.schema import ELIGIBLE, fixed_size_lists
from evaluator.streams import Stream, child_streams
from evaluator.units import ROUND, SECONDS, Tick, is_whole
from evaluator.worlds.scenarios.problem import LinearProblem, Problem, problem_of
from evaluator.worlds.scenarios.promotion_scenario import PromotionsScenario
from evaluator.worlds.scenarios.scenario import Scenario, ScenarioArrivals, flight_parts

# Of logs whose displays arrive in time.
TICK: Tick = "ms"
# Numbers of a log's contexts, all of which are in memory: 8 GB.
LARGEST = 10**9

Floats = npt.NDArray[np.float64]
DAY_S = 86_400
# The rate is taken as constant for so long.
STEP_S = 60
_LONGEST_DAYS = 10_000


def generate(
    scenario: Scenario,
    *,
    displays: int | None = None,
    seed: int | None = None,
    name: str = "synthetic",
    folder: Path = Path(),
) -> Log:
    """Return a complete synthetic log: every conversion that ever comes is in it, also those past the last display.

    Parameters
    ----------
    scenario
        Linear or Bernoulli scenario of the log.
    displays, seed
        Number of displays and seed that replace those of the scenario; None keeps the scenario's.
    name
        Name of the log in its metadata.
    folder
        Folder that the file names in the scenario are relative to.

    Returns
    -------
    Log
        Log with tick ``round``, display i at time i, or ``ms`` where the scenario has arrivals; with
        ``expected_reward`` (K,), counting the conversions that come, and, for a linear scenario, ``action_set`` (K, d)
        float64 for each display; with ``eligible`` where the scenario has flights: its logger then chooses among the
        eligible actions, in proportion to their propensities.

    Raises
    ------
    ParameterError
        The argument `displays` is below 1 or `seed` is negative; or so many displays never arrive, or are more than fit
        in memory.
    SourceError, SpecError
        A delay law cannot be made; see `evaluator.worlds.scenarios.problem.scenario_laws`.

    Examples
    --------
    >>> from evaluator.worlds.scenarios.scenario import BernoulliScenario
    >>> generate(BernoulliScenario(kind="bernoulli", means=[0.1, 0.9]), displays=1000)
    Log('synthetic', displays=1000, conversions=515, actions=2, tick='round')
    """
    return draw_log(problem_of(scenario, name, folder), displays=displays, seed=seed)


def draw_log(problem: Problem, *, displays: int | None = None, seed: int | None = None) -> Log:
    """Return a log drawn from a problem, as `generate` does."""
    k, laws = problem.n_actions, list(problem.laws)
    n, seed = size_and_seed(problem, displays, seed, problem.name, each=k * max(problem.dimension, 1))
    # One stream a quantity: a longer log starts with the shorter one's contexts, actions, rewards and delays.
    vectors, logger, rewards, waits, arrivals = log_streams(5, seed)
    columns: dict[str, pa.Array] = {}
    if isinstance(problem, LinearProblem):
        sets = action_sets(n, k, problem.dimension, vectors)
        expected = rates_of(sets)
        columns["action_set"] = fixed_size_lists(sets)
    else:
        expected = np.tile(np.asarray(problem.means, dtype=np.float64), (n, 1))
    columns["expected_reward"] = fixed_size_lists(expected * [law.reach for law in laws])

    propensities = logging_chances(problem, expected)
    if problem.flights:
        eligible = eligible_rounds(problem, n)
        columns[ELIGIBLE] = pack(eligible)
        propensities = propensities * eligible
        propensities /= propensities.sum(axis=1, keepdims=True)
    action = _draw(propensities, logger.random(n))
    shown = np.arange(n)
    converted = np.flatnonzero(rewards.random(n) < expected[shown, action])
    delay = _delays(laws, action[converted], waits.random(n)[converted])
    converted, delay = converted[delay != NEVER], delay[delay != NEVER]

    time, unit, tick = _times(problem.arrivals, n, arrivals)

    log = Log(
        displays=pa.table(
            {
                "display_id": pa.array(shown, pa.int64()),
                "time": pa.array(time, pa.int64()),
                "action": pa.array(action, pa.int32()),
                "propensity": pa.array(propensities[shown, action], pa.float64()),
                **columns,
            }
        ),
        events=pa.table(
            {
                "display_id": pa.array(converted, pa.int64()),
                "time": pa.array(time[converted] + np.minimum(delay, LONGEST // unit) * unit, pa.int64()),
                "value": pa.array(np.ones(len(converted)), pa.float64()),
            }
        ),
        actions=pa.table(
            {
                "action": pa.array(range(k), pa.int32()),
                "label": pa.array([str(i) for i in range(k)], pa.string()),
            }
        ),
        meta=LogMeta(
            name=problem.name,
            tick=tick,
            propensity="uniform" if is_uniform(problem) else "logged",
            reward_max=1.0,
            counts={"displays": n, "conversions": len(converted)},
            notes=("Synthetic log: its truth is known.",),
        ),
    ).validated()
    return log.with_meta(fingerprint=content_hash(log))


def log_streams(count: int, seed: int) -> list[np.random.Generator]:
    """Return the streams that a generated log is drawn from, one a quantity."""
    return child_streams(count, Stream.SYNTHETIC_LOG, seed)


def size_and_seed(
    scenario: Problem | PromotionsScenario, displays: int | None, seed: int | None, name: str, *, each: int
) -> tuple[int, int]:
    """Return the number of displays and the seed of a log, of `each` numbers a display; errors as of `generate`."""
    n = scenario.displays if displays is None else displays
    seed = scenario.seed if seed is None else seed
    if not is_whole(n, 1) or not is_whole(seed, 0):
        raise ParameterError(f"displays={n}, seed={seed}.", remedy="displays is 1 to 2^63 - 1, seed 0 to 2^63 - 1.")
    if n * each > LARGEST:
        raise ParameterError(
            f"{name}: {n:,} displays of {each:,} numbers each are more than a generated log may hold.",
            remedy=f"take fewer displays (`limit`), actions or dimensions: {LARGEST:,} numbers at most.",
        )
    return n, seed


def _times(
    traffic: ScenarioArrivals | None, n: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], int, Tick]:
    """Return the time of each display, shape (n,), ticks in a unit of the delays, and the tick."""
    if traffic is None:
        return np.arange(n), 1, ROUND
    # A tick so short that hardly two displays share one.
    time = np.floor(arrival_times(traffic, n, rng) / SECONDS[TICK]).astype(np.int64)
    return time, round(SECONDS[traffic.delay_unit] / SECONDS[TICK]), TICK


def action_sets(n: int, k: int, d: int, rng: np.random.Generator) -> Floats:
    """Return the action vectors of n rounds of a linear problem, shape (n, K, d)."""
    sets = rng.random((n, k, d))
    sets /= np.linalg.norm(sets, axis=2, keepdims=True)
    return sets


def rates_of(sets: Floats) -> Floats:
    """Return the conversion rates of action vectors, <a, theta>, shape (n, K)."""
    d = sets.shape[2]
    return np.asarray(np.minimum(sets @ np.full(d, d**-0.5), 1.0))


def is_uniform(problem: Problem) -> bool:
    """Whether the logging policy shows all eligible actions alike."""
    return problem.logger is None and (not isinstance(problem, LinearProblem) or problem.temperature is None)


def logging_chances(problem: Problem, expected: Floats) -> Floats:
    """Return the chance that the logging policy shows each action, given its rate, shape (n, K), were all eligible."""
    n, k = expected.shape
    if problem.logger is not None:
        return np.broadcast_to(np.asarray(problem.logger, dtype=np.float64), (n, k))
    if isinstance(problem, LinearProblem) and problem.temperature is not None:
        scores = expected / problem.temperature
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))
    return np.broadcast_to(np.float64(1 / k), (n, k))


def eligible_rounds(problem: Problem, n: int) -> npt.NDArray[np.bool_]:
    """Return which actions are eligible in each of the first n rounds, shape (n, K)."""
    sets = np.zeros((n, problem.n_actions), np.bool_)
    for part in flight_parts(problem.flights, problem.n_actions):
        sets[part.start :] = False
        sets[part.start :, list(part.eligible)] = True
    return sets


def _draw(propensities: Floats, uniform: Floats) -> npt.NDArray[np.int64]:
    """Return one action per row by inversion; the last edge is open so that rounding never leaves the range."""
    edges = np.cumsum(propensities, axis=1)[:, :-1]
    return np.asarray((uniform[:, None] >= edges).sum(axis=1), dtype=np.int64)


def _delays(laws: list[DelayLaw], action: npt.NDArray[np.int64], uniform: Floats) -> npt.NDArray[np.int64]:
    """Return delays in rounds, of the action's own law if there are several."""
    if len(laws) == 1:
        return laws[0].draw(uniform)
    delay = np.empty(len(uniform), np.int64)
    for k, law in enumerate(laws):
        delay[action == k] = law.draw(uniform[action == k])
    return delay


def intensity(arrivals: ScenarioArrivals, seconds: Floats) -> Floats:
    """Return the displays a second expected at each time, shape of `seconds` (since the start of the log)."""
    days = seconds / DAY_S
    rhythm = 1.0 - arrivals.amplitude * np.cos(2 * np.pi * (seconds - arrivals.trough_s) / DAY_S)
    jumped: Floats | float = 1.0
    if arrivals.step is not None and arrivals.step_at_s is not None:
        jumped = np.where(seconds < arrivals.step_at_s, 1.0, arrivals.step)
    return np.asarray(arrivals.displays_per_day / DAY_S * arrivals.growth**days * rhythm * jumped)


def arrival_times(arrivals: ScenarioArrivals, n: int, rng: np.random.Generator) -> Floats:
    """Return the times of the first `n` displays in seconds, increasing, shape (n,).

    The process of rate 1 is stretched: its times are the cumulative rates at ours. More displays begin with fewer.

    Raises
    ------
    ParameterError
        The traffic falls so fast that `n` displays do not come within 10,000 days.
    """
    due = np.cumsum(rng.exponential(size=n))
    days = 1
    while True:
        edges = np.arange(0, days * DAY_S + 1, STEP_S, dtype=np.float64)
        cumulative = np.concatenate([[0.0], np.cumsum(intensity(arrivals, edges[:-1] + STEP_S / 2) * STEP_S)])
        if cumulative[-1] >= due[-1]:
            return np.interp(due, cumulative, edges)
        if days >= _LONGEST_DAYS:
            raise ParameterError(
                f"{n:,} displays do not come within {days:,} days at {arrivals.displays_per_day:g} a day.",
                remedy="ask for fewer displays, more a day, or a growth closer to 1.",
            )
        days = min(2 * days, _LONGEST_DAYS)
